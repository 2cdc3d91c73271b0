"""The `council` command (`main`): one file per group of sub-commands, imported when it is asked for (`groups`)."""
