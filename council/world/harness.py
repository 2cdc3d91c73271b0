"""What an agent's code sees of the world in the cage. Handed over as text, so it needs the standard library alone.

The proxies record what the code wants, in order. Nothing here is trusted: whoever reads the answer checks it, and gives every
action to the member whose code ran. Source: Leviathan phase 2, component 1, with its signatures and shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MAX_ACTIONS = 64
_UNIT = 1_000  # outside, quantities are whole thousandths


def call(function: Callable[..., Any], argument: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs `agent_action(engine, member_id)`, and returns the actions that it recorded."""
    engine = EngineProxy(argument)
    function(engine, engine.me.id)
    return engine.actions


class MemberProxy:
    """A living member. Quantities are numbers, others are named by their ids.

    `relationships` is what this member remembers of others. Only the caller's own relationships and messages are known.
    """

    def __init__(self, row: list[Any], mine: dict[str, Any] | None) -> None:
        self.id: int
        self.id, vitality, cargo, self.land, self.age, productivity, self.neighbors, self.last_round_actions = row
        self.vitality, self.cargo, self.productivity = vitality / _UNIT, cargo / _UNIT, productivity / _UNIT
        self.messages: list[str] = mine["messages"] if mine else []
        self.relationships: dict[int, dict[str, float]] = {
            other: {"victim": victim / _UNIT, "benefit": benefit / _UNIT, "benefit_land": land / _UNIT}
            for other, victim, benefit, land in (mine["relationships"] if mine else [])
        }

    def __repr__(self) -> str:
        return f"member {self.id}"


class LandProxy:
    """The island. It has no edge: each side goes on at the other."""

    def __init__(self, shape: list[int]) -> None:
        self.shape = tuple(shape)


class Members:
    """The living, found by id: `members[7]`. Iterating gives each of them."""

    def __init__(self, members: list[MemberProxy]) -> None:
        self._by_id = {member.id: member for member in members}

    def __getitem__(self, member_id: int) -> MemberProxy:
        return self._by_id[member_id]

    def __contains__(self, member: object) -> bool:
        return getattr(member, "id", member) in self._by_id

    def __iter__(self) -> Iterator[MemberProxy]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)


class EngineProxy:
    """The world as it was when the round began. Each verb records one action; nothing happens before the round is settled.

    A target is a member or its id. The caller may stand first in each verb, as in the seed's signatures; nobody else may.
    """

    def __init__(self, argument: dict[str, Any]) -> None:
        self.round_id: int = argument["round_id"]
        self.land = LandProxy(argument["shape"])
        self.current_members = Members(
            [MemberProxy(row, argument if row[0] == argument["me"] else None) for row in argument["members"]]
        )
        self.me = self.current_members[argument["me"]]
        self.actions: list[dict[str, Any]] = []

    def attack(self, *given: Any) -> None:
        """`attack(target)` or `attack(me, target)`."""
        [target] = self._own("attack", given, 1, 1)
        self._record("attack", target)

    def offer(self, *given: Any) -> None:
        """`offer(target, amount)`, or with `me` first. Without an amount a share of the cargo is drawn."""
        target, *amount = self._own("offer", given, 1, 2)
        self._record("offer", target, **({"amount": round(amount[0] * _UNIT)} if amount else {}))

    def offer_land(self, *given: Any) -> None:
        """`offer_land(target)` or `offer_land(me, target)`: one cell."""
        [target] = self._own("offer_land", given, 1, 1)
        self._record("offer_land", target)

    def expand(self, *given: Any) -> None:
        """`expand()` or `expand(me)`: one free cell beside one's land."""
        self._own("expand", given, 0, 0)
        self._record("expand", 0)

    def send_message(self, *given: Any) -> None:
        """`send_message(to_id, text)`, or with one's own id first."""
        target, text = self._own("send_message", given, 2, 2)
        self._record("message", target, text=str(text))

    def _own(self, verb: str, given: tuple[Any, ...], least: int, most: int) -> tuple[Any, ...]:
        """The arguments without a leading member, who must be the caller. Raises ValueError, TypeError."""
        leads = bool(given) and (given[0] is self.me or len(given) == most + 1)
        if leads and getattr(given[0], "id", given[0]) != self.me.id:
            raise ValueError(f"{verb}: you are member {self.me.id}, and cannot act for {given[0]!r}")
        rest = given[1:] if leads else given
        if not least <= len(rest) <= most:
            raise TypeError(f"{verb}: takes {most} arguments, and got {len(rest)}")
        return rest

    def _record(self, verb: str, target: Any, **more: Any) -> None:
        if len(self.actions) == MAX_ACTIONS:
            raise ValueError(f"more than {MAX_ACTIONS} actions in a round")
        self.actions.append({"verb": verb, "target": getattr(target, "id", target), **more})
