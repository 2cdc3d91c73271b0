"""The Commandable Council. `deliberate_admission` checks a command, `task` is its run, `deliberate` holds the rounds by one of
the `protocols`, `record` reads the closing reply, and `decision_page` shows what came of it."""
