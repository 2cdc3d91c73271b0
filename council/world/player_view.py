"""The world as a player's code sees it, inside the cage. Standard library alone: this file is handed to the cage as text.

`agent_action(engine, member_id)` gets an `EngineProxy`. Its verbs change nothing; they are noted in `engine.actions`, and
the world does them when the round is settled. `propose_modification(engine)` gets one too; the values that it sets in
`engine.rules` are its proposal. Source: Leviathan phase 2, component 1, *EngineProxy*.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class LandProxy:
    """The land: `shape` is (width, height). It has no edges."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape


class MemberProxy:
    """A living member. `land` counts its cells, `neighbors` are the ids of those beside them. `relationships` are what it
    remembers: by id, `victim`, `benefit` and `benefit_land`. Of another member you see there what it remembers of you.
    `messages` are your own alone: (from id, text)."""

    def __init__(self, row: list[Any]) -> None:
        """Quantities in `row` are thousandths."""
        self.id: int = row[0]
        self.vitality: float = row[1] / 1000
        self.cargo: float = row[2] / 1000
        self.land: int = row[3]
        self.age: int = row[4]
        self.productivity: float = row[5] / 1000
        self.neighbors: list[int] = row[6]
        self.relationships: dict[int, dict[str, float]] = {}
        self.last_round_actions: list[str] = []
        self.messages: list[tuple[int, str]] = []


class Members:
    """The living. `members[7]` is the member with the id 7; going through them gives each one, by id."""

    def __init__(self, rows: list[list[Any]], last_actions: Mapping[int, list[str]]) -> None:
        self._rows = {row[0]: row for row in rows}
        self._last_actions = last_actions
        self._made: dict[int, MemberProxy] = {}  # those that were looked at: thousands take longer than most code

    def __getitem__(self, member_id: int) -> MemberProxy:
        member = self._made.get(member_id)
        if member is None:
            member = self._made[member_id] = MemberProxy(self._rows[member_id])
            member.last_round_actions = self._last_actions.get(member_id, [])
        return member

    def __iter__(self) -> Iterator[MemberProxy]:
        return map(self.__getitem__, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, member: object) -> bool:
        return member in self._rows if isinstance(member, int) else any(member is one for one in self._made.values())

    def get(self, member_id: int, default: Any = None) -> Any:
        return self[member_id] if member_id in self._rows else default


_MISSING = object()


class EngineProxy:
    """The world, and the verbs of the member whose code this is: `me`."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        world = json.loads(told["world"])
        self.round_id: int = world["round_id"]
        self.rules: dict[str, int] = world["rules"]
        self.land = LandProxy((world["shape"][0], world["shape"][1]))
        last_actions = {
            who: [verb for verb, count in zip(world["verbs"], counts, strict=True) for _ in range(count)]
            for who, counts in world["last_actions"]
        }
        self.current_members = Members(world["members"], last_actions)
        self.me: MemberProxy = self.current_members[told["me"]]
        self.me.messages = [(one[0], one[1]) for one in told["messages"]]
        self.actions: list[dict[str, Any]] = []
        for who, whom, victim, benefit, cells in told["remembered"]:
            memory = {"victim": victim / 1000, "benefit": benefit / 1000, "benefit_land": cells}
            self.current_members[who].relationships[whom] = memory

    def attack(self, *arguments: Any) -> None:
        """`attack(target)` or `attack(member, target)`."""
        (target,) = self._after_member("attack", arguments, 1, 1)
        self._note("attack", target_id=_id(target))

    def offer(self, *arguments: Any) -> None:
        """`offer(target, amount)`, `offer(member, target, amount)`; without an amount a part of the cargo is drawn."""
        target, amount = self._after_member("offer", arguments, 1, 2)
        self._note("offer", target_id=_id(target), amount=None if amount is _MISSING else float(amount))

    def offer_land(self, *arguments: Any) -> None:
        """`offer_land(target)` or `offer_land(member, target)`: one cell, the one that lies nearest to the target."""
        (target,) = self._after_member("offer_land", arguments, 1, 1)
        self._note("offer_land", target_id=_id(target))

    def expand(self, *arguments: Any) -> None:
        """`expand()` or `expand(member)`: one free cell beside your own."""
        self._after_member("expand", arguments, 0, 0)
        self._note("expand")

    def send_message(self, *arguments: Any) -> None:
        """`send_message(to_id, text)` or `send_message(from_id, to_id, text)`."""
        to, text = self._after_member("send_message", arguments, 2, 2)
        self._note("message", target_id=_id(to), text=str(text))

    def _after_member(self, verb: str, arguments: tuple[Any, ...], least: int, most: int) -> list[Any]:
        """The arguments without a leading member, which counts as one when it is `me` or when all arguments are there."""
        rest = list(arguments)
        if len(rest) > most or (len(rest) > least and rest[0] is self.me):
            member = rest.pop(0)
            if _id(member) != self.me.id:
                raise PermissionError(f"{verb}: member {_id(member)} is not yours")
        if not least <= len(rest) <= most:
            raise TypeError(f"{verb} takes {most} arguments, and may begin with your own member")
        return rest + [_MISSING] * (most - len(rest))

    def _note(self, verb: str, **wish: Any) -> None:
        self.actions.append({"action": verb, "member_id": self.me.id, **wish})


def _id(member: Any) -> int:
    return int(getattr(member, "id", member))


def call(function: Callable[..., object], argument: Mapping[str, Any]) -> list[dict[str, Any]] | dict[str, int]:
    """The wishes of the player's code, or the rules as its proposal wants them. Its return value does not count."""
    engine = EngineProxy(argument)
    if argument.get("proposes"):
        function(engine)
        return engine.rules
    function(engine, engine.me.id)
    return engine.actions
