"""Mechanisms: changes of the rules that players propose and vote on. Pure, and of the standard library alone.

A mechanism is numbers. The code that proposed it ran once in the cage, and never runs again. Source: Leviathan phase 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

from council.world.world_rules import RULES

VOTING_ROUNDS = 20  # after its own, until a mechanism without a majority lapses
Verdict = Literal["active", "rejected", "lapsed"]


@dataclass(frozen=True)
class Mechanism:
    """New values of rules, by name, that are voted on. `yes` and `no` are the members that voted so, in order."""

    id: str
    member_id: int
    rules: Mapping[str, int]
    since_round: int
    yes: tuple[int, ...] = ()
    no: tuple[int, ...] = ()

    def with_vote(self, member_id: int, *, approves: bool) -> Mechanism:
        """A member's last vote counts."""
        yes, no = set(self.yes) - {member_id}, set(self.no) - {member_id}
        (yes if approves else no).add(member_id)
        return replace(self, yes=tuple(sorted(yes)), no=tuple(sorted(no)))

    def verdict(self, voters: Set[int], round_id: int) -> Verdict | None:
        """The outcome once more than half of the voters agree, or time is over. None: the vote goes on."""
        if 2 * len(voters & set(self.yes)) > len(voters):
            return "active"
        if 2 * len(voters & set(self.no)) > len(voters):
            return "rejected"
        return "lapsed" if round_id >= self.since_round + VOTING_ROUNDS else None


def flaw_in(rules: Mapping[str, Any]) -> str:
    """The reason why these are no values of rules; empty when they are."""
    if not rules:
        return "the proposal changes no rule"
    for name, value in rules.items():
        if name not in RULES:
            return f"there is no rule {name[:40]}"
        rule = RULES[name]
        if not isinstance(value, int) or isinstance(value, bool) or not rule.least <= value <= rule.most:
            return f"{name} takes whole numbers from {rule.least} to {rule.most}, not {str(value)[:40]}"
    return ""
