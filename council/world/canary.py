"""The canary of a mechanism: a copy of the world is settled with the new rules, another without, and both are compared.

It decides nothing. Voters read it. Source: Leviathan phase 3, *canary*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from council.world.kernel import World, settle
from council.world.world_rules import UNIT

CANARY_ROUNDS = 5
_SHARP_DROP_PCT = -50.0


def settle_copy(world: World, seed: int, rules: Mapping[str, int]) -> World:
    """The world some rounds on if nobody submits anything, with these rules changed."""
    copy = replace(world, rules={**world.rules, **rules})
    for _ in range(CANARY_ROUNDS):
        copy = settle(copy, [], seed).world
    return copy


def canary_report(without: World, changed: World) -> dict[str, Any]:
    """The effect of the new rules: each figure without them and with them. `members_died` live only without them."""
    vitality = [sum(one.vitality for one in world.members.values()) / UNIT for world in (without, changed)]
    drop_pct = round(100 * (vitality[1] / vitality[0] - 1), 1) if vitality[0] else 0.0
    died = sorted(without.members.keys() - changed.members.keys())
    flags = {"vitality_drop": drop_pct <= _SHARP_DROP_PCT, "members_died": bool(died)}
    return {
        "rounds": CANARY_ROUNDS,
        "population": [len(without.members), len(changed.members)],
        "total_vitality": vitality,
        "vitality_change_pct": drop_pct,
        "members_died": died,
        "divergence_flags": [flag for flag, raised in flags.items() if raised],
    }
