"""One agent's turn as durable steps, for every system: asking its model, the requests it makes, the evidence they bring,
fencing, guardrails, and what it cost. Knows no rounds, no protocols and no decisions."""
