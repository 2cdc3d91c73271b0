"""Runs: which commands become one (`admission`), who runs when (`queue`, `run_order`), the work itself (`execution`), what is
recorded (`journal`, `records`), and how a run ends (`commit`, `receipts`)."""
