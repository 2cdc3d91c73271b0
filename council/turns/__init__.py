"""One agent's turn as durable steps, for every system. A turn asks a model, answers its requests with evidence, fences that,
keeps the guardrails, and counts costs. Knows no rounds, no protocols and no decisions."""
