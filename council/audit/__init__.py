"""The audit: an append-only chain of signed records of effects, approvals, secret reads and refusals."""
