"""Specialists as a system: their tables, the agents that they are, and what changes them."""

from __future__ import annotations

from council.systems import System

SPECIALISTS = System(
    "specialists",
    tables="council.specialists.tables",
)
