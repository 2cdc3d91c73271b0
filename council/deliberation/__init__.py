"""The Commandable Council. `system` is all that the house knows of it. `membership` admits a command, `task` is the work of its
run, `deliberate` its rounds. `decision` and `decision_page` are what it comes to."""
