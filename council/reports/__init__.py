"""Reports on runs afterwards, from their journals alone: `past_run` (the page again), `explain` (how it came about), `diff`
(where two part), `stats` (sums over many)."""
