"""What can be said of runs afterwards, from their journals alone: `replay` (the page again), `diff` (where two part)."""
