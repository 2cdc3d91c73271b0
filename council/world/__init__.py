"""The island world: `kernel` (its rules, pure), `harness` (what an agent's code sees of it in the cage) and `answers` (what that
code may ask for)."""
