"""The long-running process: `inbox` (files become runs and are taken), `service` (the loop), `terminal`, `state`."""
