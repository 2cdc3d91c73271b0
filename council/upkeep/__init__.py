"""Keeping a home in order: `doctor` looks at everything a council needs and names the command that mends it."""
