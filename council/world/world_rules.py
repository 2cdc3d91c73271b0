"""The numbers of the world's rules, with the bounds within which its players may change them.

Quantities are whole thousandths, so that every machine reckons alike: a vitality of 50 is 50_000.
Source: Leviathan phase 0 and 1, the island's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

UNIT = 1_000  # thousandths in one
FULL_VITALITY = 100 * UNIT
CLIMBING_AGE = 49  # from here on each year costs more
MAX_AGE = 99
MAX_ACTIONS = 64  # of one member in one round
MAX_MESSAGE_CHARS = 1_000


@dataclass(frozen=True)
class Rule:
    """A number that a vote may change, within `least` and `most`."""

    value: int
    least: int
    most: int
    meaning: str


RULES: Mapping[str, Rule] = {
    "base_consumption": Rule(
        15_000, 5_000, 30_000, "vitality that each member uses up in a round, before its age counts"
    ),
    "full_land": Rule(4, 1, 16, "cells on which a member produces exactly its productivity"),
    "attack_least": Rule(
        100, 0, 500, "least share of the attacker's vitality that an attack does as damage, and steals"
    ),
    "attack_most": Rule(300, 0, 1_000, "greatest such share"),
    "offer_least": Rule(100, 0, 1_000, "least share of the cargo that an offer without an amount gives"),
    "offer_most": Rule(300, 0, 1_000, "greatest such share"),
    "expands": Rule(1, 0, 8, "cells that a member may take in one round"),
    "birth_age": Rule(17, 1, 60, "age from which a member has children"),
    "birth_wealth": Rule(100_000, 50_000, 400_000, "vitality and cargo that both parents have together, at least"),
    "birth_cost": Rule(50_000, 10_000, 100_000, "what both parents pay together, and the vitality of the child"),
    "birth_cells": Rule(2, 1, 4, "cells that each parent gives, keeping at least one"),
}


@cache
def ageing(age: int) -> int:
    """Vitality that age costs in a round, in thousandths: exp(k (age - 49)) with k = ln 85 / 50. It is 1 at 49 and 85 at 99.
    Decimal, because a platform's `exp` may differ in its last bit."""
    with localcontext() as context:
        context.prec = 30
        k = Decimal(85).ln() / (MAX_AGE - CLIMBING_AGE)
        return int((k * (min(age, MAX_AGE) - CLIMBING_AGE)).exp() * UNIT)
