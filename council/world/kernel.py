"""The world as a value: `settle(state, actions, seed) -> RoundOutcome`. Pure, and of the standard library alone.

A round goes in this order. Everybody is a year older; players join, propose and vote. The members act, in an order that is
drawn. All produce, consume, die or eat; pairs have children; votes are counted. Each draw comes from (seed, round, phase,
member), so that neither reading nor order changes another one. Members without a player live by `policy`.

Source: Leviathan phase 0 and 1, with the defects of the original mended. Stolen cargo goes to the attacker, an attack on
oneself has no effect, nobody skips consumption, relations start at nothing, ids are never used again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

from council.world.rule_changes import Mechanism, Verdict, flaw_in
from council.world.torus import Shape, beside, centre, distance, squared_distance
from council.world.world_rules import FULL_VITALITY, MAX_ACTIONS, MAX_AGE, RULES, UNIT, ageing

_CONTENT_AT = 6  # cells from which a member without a player takes no more


@dataclass(frozen=True)
class Member:
    """A member. Quantities are thousandths. `played`: a player has it. `cells` are in order."""

    id: int
    vitality: int
    cargo: int
    age: int
    productivity: int
    cells: tuple[int, ...]
    played: bool = False


@dataclass(frozen=True)
class Relation:
    """A member's memory of another one: harm done, cargo given, cells given."""

    victim: int = 0
    benefit: int = 0
    benefit_land: int = 0


@dataclass(frozen=True)
class World:
    """The state between two rounds. `relations` are by (who remembers, whom). `mechanisms` are those that are voted on."""

    world_id: str
    round_id: int
    shape: Shape
    members: Mapping[int, Member]
    next_member_id: int
    relations: Mapping[tuple[int, int], Relation] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=lambda: {name: rule.value for name, rule in RULES.items()})
    mechanisms: tuple[Mechanism, ...] = ()


@dataclass(frozen=True)
class Action:
    """A wish of one member. `verb` is one of VERBS, or of the house's own HOUSE_VERBS. `amount` is thousandths of cargo; None
    lets a draw decide. `text` is a message. Of a `propose` it is the rules as JSON; of a `vote` it is the mechanism, and an
    amount of 1 approves."""

    action_id: str
    member_id: int
    verb: str
    target_id: int | None = None
    amount: int | None = None
    text: str = ""


@dataclass(frozen=True)
class RoundReceipt:
    """The outcome of a round. `rejected` gives the reason by action id. `metrics` are numbers. `verdicts` are on mechanisms."""

    round_id: int
    seed: int
    snapshot_hash_before: str
    snapshot_hash_after: str
    accepted_action_ids: tuple[str, ...]
    rejected: Mapping[str, str]
    metrics: Mapping[str, float]
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundOutcome:
    """The world after a round, its receipt, and the messages that were sent in it."""

    world: World
    receipt: RoundReceipt
    letters: tuple[Action, ...]


def new_world(world_id: str, members: int, shape: Shape, seed: int) -> World:
    """The world before its first round. Raises ValueError for land that does not exceed the members."""
    width, height = shape
    if members < 1 or width < 1 or height < 1 or width * height <= members:
        raise ValueError("the land must have more cells than there are members, and at least one of these")
    cells = sorted(range(width * height), key=lambda cell: (draw(seed, 0, "placement", cell, 0, 1 << 62), cell))

    def born(number: int) -> Member:
        return Member(
            id=number,
            vitality=draw(seed, 0, "vitality", number, 10 * UNIT, 90 * UNIT),
            cargo=draw(seed, 0, "cargo", number, 0, 100 * UNIT),
            age=draw(seed, 0, "age", number, 10, 45),
            productivity=_productivity(seed, 0, number),
            cells=(cells[number - 1],),
        )

    return World(world_id, 0, shape, {n: born(n) for n in range(1, members + 1)}, members + 1)


def settle(world: World, actions: Iterable[Action], seed: int) -> RoundOutcome:
    """The next round. An action that cannot be done has no effect, and a reason; nothing here raises for one."""
    before = state_hash(world)
    now = _Round(world, seed)
    by_member: dict[int, list[Action]] = defaultdict(list)
    for action in actions:
        if action.verb in HOUSE_VERBS:
            now.apply(action)
        else:
            by_member[action.member_id].append(action)
    for member_id, member in now.members.items():
        if not member.played and member_id not in by_member:
            by_member[member_id] = policy(now, member)
    order = sorted(by_member, key=lambda who: (draw(seed, now.round_id, "order", who, 0, 1 << 62), who))
    for member_id in order:
        for number, action in enumerate(by_member[member_id]):
            if number < MAX_ACTIONS:
                now.apply(action)
            else:
                now.rejected[action.action_id] = f"more than {MAX_ACTIONS} actions in one round"
    now.produce()
    now.consume()
    now.give_birth()
    now.count_votes()
    after = now.frozen()
    receipt = RoundReceipt(
        after.round_id, seed, before, state_hash(after), tuple(now.accepted), now.rejected, now.metrics(), now.verdicts
    )
    return RoundOutcome(after, receipt, tuple(now.letters))


def policy(now: _Round, member: _Living) -> list[Action]:
    """A member without a player takes a free cell beside its own until it has six, and does no harm."""
    if len(member.cells) >= _CONTENT_AT or not now.free_beside(member):
        return []
    return [Action("", member.id, "expand")]


def at_older_state(older: World, newest: World) -> World:
    """The world after a rollback: `older` as it was, in a new round. No id of the rounds between is used again."""
    return replace(older, round_id=newest.round_id + 1, next_member_id=newest.next_member_id)


def snapshot(world: World) -> dict[str, Any]:
    """The world as JSON, complete: `world_of` makes the same world of it."""
    return {
        "world_id": world.world_id,
        "round_id": world.round_id,
        "land": {"shape": list(world.shape)},
        "members": [{**vars(one), "land": len(one.cells), "cells": list(one.cells)} for one in world.members.values()],
        "relationships": [
            [who, whom, one.victim, one.benefit, one.benefit_land]
            for (who, whom), one in sorted(world.relations.items())
        ],
        "rules": dict(world.rules),
        "mechanisms": [
            {**vars(one), "rules": dict(one.rules), "yes": list(one.yes), "no": list(one.no)}
            for one in world.mechanisms
        ],
        "next_member_id": world.next_member_id,
    }


def world_of(told: Mapping[str, Any]) -> World:
    """The world of a snapshot. Raises KeyError, TypeError or ValueError for what is none."""
    members = {
        one["id"]: Member(**{**one, "cells": tuple(one["cells"])})
        for one in ({name: value for name, value in row.items() if name != "land"} for row in told["members"])
    }
    (width, height), next_id, rules = told["land"]["shape"], told["next_member_id"], dict(told["rules"])
    relations = {(who, whom): Relation(*remembered) for who, whom, *remembered in told["relationships"]}
    voted_on = [{**one, "yes": tuple(one["yes"]), "no": tuple(one["no"])} for one in told["mechanisms"]]
    mechanisms = tuple(Mechanism(**one) for one in voted_on)
    return World(told["world_id"], told["round_id"], (width, height), members, next_id, relations, rules, mechanisms)


def state_hash(world: World) -> str:
    """SHA-256 of the snapshot in canonical JSON."""
    encoded = json.dumps(snapshot(world), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode()).hexdigest()


def draw(seed: int, round_id: int, phase: str, member: int, least: int, most: int, number: int = 0) -> int:
    """A number from `least` to `most`, the same for the same arguments on every machine."""
    digest = hashlib.sha256(f"{seed}:{round_id}:{phase}:{member}:{number}".encode()).digest()
    return least + (int.from_bytes(digest[:8]) * (most - least + 1) >> 64)


def gini(values: Sequence[int]) -> float:
    """Inequality from 0 (all have the same) to almost 1 (one has all)."""
    total = sum(values)
    if not total:
        return 0.0
    weighted = sum(rank * value for rank, value in enumerate(sorted(values), 1))
    return (2 * weighted - (len(values) + 1) * total) / (len(values) * total)


# ── a round under way ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Living:
    id: int
    vitality: int
    cargo: int
    age: int
    productivity: int
    cells: set[int]
    played: bool
    expanded: int = 0


class _Refusal(Exception):
    pass


class _Round:
    """The working copy of a world while one round is settled."""

    def __init__(self, world: World, seed: int) -> None:
        self.round_id = world.round_id + 1
        self.shape = world.shape
        self.rules = dict(world.rules)
        self.accepted: list[str] = []
        self.rejected: dict[str, str] = {}
        self.letters: list[Action] = []
        self.verdicts: dict[str, Verdict] = {}
        self._world = world
        self._seed = seed
        self._relations = dict(world.relations)
        self._mechanisms = {one.id: one for one in world.mechanisms}
        self._next_id = world.next_member_id
        self._draws: dict[tuple[str, int], int] = defaultdict(int)
        self._trade = self._conflict = self._births = self._deaths = 0
        self.members = {
            one.id: _Living(one.id, one.vitality, one.cargo, one.age + 1, one.productivity, set(one.cells), one.played)
            for one in world.members.values()
        }
        self._owners = {cell: one.id for one in self.members.values() for cell in one.cells}

    # ── what members do ──────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, action: Action) -> None:
        """Does an action, or notes why it cannot be done. An action of the policy has no id, and is not told of."""
        verb = getattr(self, f"_{action.verb}") if action.verb in (*VERBS, *HOUSE_VERBS) else None
        try:
            if verb is None:
                raise _Refusal(f"no such action: {action.verb}")
            verb(action)
        except _Refusal as refusal:
            if action.action_id:
                self.rejected[action.action_id] = str(refusal)
        else:
            if action.action_id:
                self.accepted.append(action.action_id)

    def free_beside(self, member: _Living) -> list[int]:
        """Cells that nobody has, next to those of a member."""
        near = {cell for own in member.cells for cell in beside(own, self.shape)}
        return sorted(cell for cell in near if cell not in self._owners)

    def _attack(self, action: Action) -> None:
        attacker, target = self._both(action)
        least, most = self.rules["attack_least"], max(self.rules["attack_least"], self.rules["attack_most"])
        damage = attacker.vitality * self._draw("damage", attacker.id, least, most) // UNIT
        stolen = min(attacker.vitality * self._draw("theft", attacker.id, least, most) // UNIT, target.cargo)
        target.vitality -= damage
        target.cargo -= stolen
        attacker.cargo += stolen
        self._conflict += damage + stolen
        self._remember(target.id, attacker.id, victim=damage + stolen)
        if target.vitality <= 0:
            freed = sorted(target.cells)
            self._bury(target)
            if freed:
                self._own(attacker, self._pick(freed, "spoils", attacker.id))

    def _offer(self, action: Action) -> None:
        giver, target = self._both(action)
        least, most = self.rules["offer_least"], max(self.rules["offer_least"], self.rules["offer_most"])
        drawn = giver.cargo * self._draw("offer", giver.id, least, most) // UNIT
        given = drawn if action.amount is None else min(action.amount, giver.cargo)
        if given < UNIT:
            raise _Refusal("an offer must be at least 1")
        giver.cargo -= given
        target.cargo += given
        self._trade += given
        self._remember(target.id, giver.id, benefit=given)

    def _offer_land(self, action: Action) -> None:
        giver, target = self._both(action)
        if not giver.cells:
            raise _Refusal("there is no land to give")
        own = centre(giver.cells, self.shape)
        theirs = centre(target.cells, self.shape) if target.cells else None

        def is_nearer(cell: int) -> tuple[int, int]:
            away = distance(own, cell, self.shape)
            return (away - (distance(theirs, cell, self.shape) if theirs is not None else 0), -cell)

        self._own(target, max(giver.cells, key=is_nearer))
        self._remember(target.id, giver.id, benefit_land=1)

    def _expand(self, action: Action) -> None:
        member = self._alive(action.member_id)
        if member.expanded >= self.rules["expands"]:
            raise _Refusal(f"a member takes at most {self.rules['expands']} cells in one round")
        free = self.free_beside(member)
        if not free:
            raise _Refusal("there is no free cell beside yours")
        member.expanded += 1
        self._own(member, self._pick(free, "expand", member.id))

    def _message(self, action: Action) -> None:
        self._alive(action.member_id)
        self._alive(action.target_id)
        self.letters.append(action)

    def _join(self, action: Action) -> None:
        self._alive(action.member_id).played = True

    def _leave(self, action: Action) -> None:
        self._alive(action.member_id).played = False

    def _propose(self, action: Action) -> None:
        self._alive(action.member_id)
        rules = json.loads(action.text)
        if flaw := flaw_in(rules):
            raise _Refusal(flaw)
        self._mechanisms[action.action_id] = Mechanism(action.action_id, action.member_id, rules, self.round_id)

    def _vote(self, action: Action) -> None:
        self._alive(action.member_id)
        mechanism = self._mechanisms.get(action.text)
        if mechanism is None:
            raise _Refusal("there is no vote on this mechanism")
        self._mechanisms[mechanism.id] = mechanism.with_vote(action.member_id, approves=action.amount == 1)

    # ── what the year does ───────────────────────────────────────────────────────────────────────────────────────────

    def produce(self) -> None:
        """Each member's productivity times the root of its land over a full one, into its cargo."""
        full = self.rules["full_land"]
        for member in self.members.values():
            member.cargo += member.productivity * isqrt(len(member.cells) * UNIT * UNIT // full) // UNIT

    def consume(self) -> None:
        """Everybody uses up vitality; who has none left dies; the others eat."""
        for member in list(self.members.values()):
            member.vitality -= self.rules["base_consumption"] + ageing(member.age)
            if member.vitality <= 0 or member.age > MAX_AGE:
                self._bury(member)
                continue
            eaten = min(member.cargo, FULL_VITALITY - member.vitality)
            member.vitality += max(0, eaten)
            member.cargo -= max(0, eaten)

    def give_birth(self) -> None:
        """Neighbours who are old and rich enough have one child together, at most one each in a round."""
        age, cells = self.rules["birth_age"], self.rules["birth_cells"]
        ready = {one.id for one in self.members.values() if one.age >= age and len(one.cells) > cells}
        order = sorted(ready, key=lambda who: (draw(self._seed, self.round_id, "birth", who, 0, 1 << 62), who))
        for member_id in order:
            if member_id not in ready:
                continue
            near = {self._owners.get(cell) for own in self.members[member_id].cells for cell in beside(own, self.shape)}
            partners = sorted(one for one in near & ready if one is not None and one != member_id)
            needed = self.rules["birth_wealth"] - self._wealth(member_id)
            partners = [one for one in partners if self._wealth(one) >= needed]
            if not partners:
                continue
            partner_id = partners[self._draw("partner", member_id, 0, len(partners) - 1)]
            ready -= {member_id, partner_id}
            one, other = self.members[member_id], self.members[partner_id]
            cost = self.rules["birth_cost"]
            share = cost * self._wealth(one.id) // (self._wealth(one.id) + self._wealth(other.id))
            productivity = _productivity(self._seed, self.round_id, self._next_id)
            child = _Living(self._next_id, cost, 0, 0, productivity, set(), played=False)
            self._next_id += 1
            self._births += 1
            self.members[child.id] = child
            meeting = (centre(one.cells, self.shape), centre(other.cells, self.shape))
            for parent, pays in ((one, share), (other, cost - share)):
                from_cargo = min(parent.cargo, pays)
                parent.cargo -= from_cargo
                parent.vitality = max(1, parent.vitality - (pays - from_cargo))
                self._remember(child.id, parent.id, benefit=pays)
                nearest = sorted(
                    parent.cells, key=lambda cell: (sum(squared_distance(cell, at, self.shape) for at in meeting), cell)
                )
                for cell in nearest[:cells]:
                    self._own(child, cell)

    def count_votes(self) -> None:
        """The living members that have a player decide. What they decide holds from the next round."""
        voters = {one.id for one in self.members.values() if one.played}
        for mechanism in list(self._mechanisms.values()):
            if verdict := mechanism.verdict(voters, self.round_id):
                del self._mechanisms[mechanism.id]
                self.verdicts[mechanism.id] = verdict
                if verdict == "active":
                    self.rules.update(mechanism.rules)

    def _wealth(self, member_id: int) -> int:
        return self.members[member_id].vitality + self.members[member_id].cargo

    # ── the books ────────────────────────────────────────────────────────────────────────────────────────────────────

    def frozen(self) -> World:
        """The state after the round."""
        members = {
            one.id: Member(
                one.id, one.vitality, one.cargo, one.age, one.productivity, tuple(sorted(one.cells)), one.played
            )
            for one in self.members.values()
        }
        there = self.members.keys()
        relations = {pair: one for pair, one in self._relations.items() if pair[0] in there and pair[1] in there}
        return replace(
            self._world, round_id=self.round_id, members=members, next_member_id=self._next_id, relations=relations,
            rules=self.rules, mechanisms=tuple(self._mechanisms.values()),
        )  # fmt: skip

    def metrics(self) -> dict[str, float]:
        """Figures of the round, quantities in units."""
        wealth = [one.vitality + one.cargo for one in self.members.values()]
        count = len(self.members)
        return {
            "population": count,
            "births": self._births,
            "deaths": self._deaths,
            "mean_vitality": round(sum(one.vitality for one in self.members.values()) / (count or 1) / UNIT, 3),
            "mean_cargo": round(sum(one.cargo for one in self.members.values()) / (count or 1) / UNIT, 3),
            "owned_cells": len(self._owners),
            "gini": round(gini(wealth), 4),
            "trade_volume": self._trade / UNIT,
            "conflict_volume": self._conflict / UNIT,
        }

    def _alive(self, member_id: int | None) -> _Living:
        member = self.members.get(member_id) if member_id is not None else None
        if member is None:
            raise _Refusal("member not found")
        return member

    def _both(self, action: Action) -> tuple[_Living, _Living]:
        if action.target_id == action.member_id:
            raise _Refusal("the target is the member itself")
        return self._alive(action.member_id), self._alive(action.target_id)

    def _draw(self, phase: str, member_id: int, least: int, most: int) -> int:
        number = self._draws[phase, member_id]
        self._draws[phase, member_id] += 1
        return draw(self._seed, self.round_id, phase, member_id, least, most, number)

    def _pick(self, cells: Sequence[int], phase: str, member_id: int) -> int:
        return cells[self._draw(phase, member_id, 0, len(cells) - 1)]

    def _own(self, member: _Living, cell: int) -> None:
        if (owner := self._owners.get(cell)) is not None:
            self.members[owner].cells.discard(cell)
        self._owners[cell] = member.id
        member.cells.add(cell)

    def _bury(self, member: _Living) -> None:
        for cell in member.cells:
            del self._owners[cell]
        del self.members[member.id]
        self._deaths += 1

    def _remember(self, who: int, whom: int, *, victim: int = 0, benefit: int = 0, benefit_land: int = 0) -> None:
        known = self._relations.get((who, whom), Relation())
        land = known.benefit_land + benefit_land
        self._relations[who, whom] = Relation(known.victim + victim, known.benefit + benefit, land)


VERBS = ("attack", "offer", "offer_land", "expand", "message")
HOUSE_VERBS = ("join", "leave", "propose", "vote")


def _productivity(seed: int, round_id: int, member_id: int) -> int:
    return draw(seed, round_id, "productivity", member_id, 15 * UNIT, 20 * UNIT)
