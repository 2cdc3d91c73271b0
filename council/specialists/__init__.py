"""Specialists: agents that are designed, tested in the cage, registered and promoted at run time (source: Kingdom)."""
