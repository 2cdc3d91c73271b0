"""Keeping a home in order: `doctor` looks at everything a council needs and names the command that mends it. `repair` mends
what a crash left. `forget` takes a text or a run out of all that is kept; `retention` lets the oldest runs go."""
