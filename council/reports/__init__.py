"""Reports on runs afterwards, from their journals alone: `replay` (the page again), `diff` (where two part)."""
