"""The island world: `kernel` (its rules, pure), `harness` (what an agent's code sees of it in the cage) and `agent_code` (a
round of that code as a job, and its answer as actions)."""
