"""The rules of the island world: `settle(state, actions, seed)` makes the next state and a receipt, and does nothing else.

Quantities are whole thousandths, so that hashes agree on every machine. Each draw comes from the seed, the round, the phase
and the member: neither reading nor order changes one. Source: Leviathan phase 2, with the rules of its island. Mended here:
stolen cargo goes to the attacker, everybody consumes, nobody attacks themselves, relations begin at zero, and land may have
any shape.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import isqrt
from typing import Literal, NamedTuple

from council.ids import canonical_json, sha256_hex

Verb = Literal["attack", "offer", "offer_land", "expand", "message"]
MAX_ACTIONS = 64  # of one member in one round
MAX_MESSAGES, MAX_MESSAGES_OF_ONE = 64, 4  # to one member in one round: nobody can drown what others say
FREE = 0  # the owner of a cell that nobody owns; members count from 1
_UNIT = 1_000
_CLIMB_AGE, _MAX_AGE = 49, 99  # from the first on consumption climbs; at the second it takes all vitality


@dataclass(frozen=True)
class Rules:
    """The numbers of a world: thousandths, shares of a thousand, cells, or years."""

    max_vitality: int = 100_000
    standard_land: int = 4
    base_consumption: int = 15_000
    least_share: int = 100  # of vitality in an attack, of cargo in an offer
    greatest_share: int = 300
    least_offer: int = 1_000
    child_vitality: int = 50_000
    parents_wealth: int = 200_000  # of both together; the source's 100 leave them too weak to live on
    parents_age: int = 17
    heritage_land: int = 2


class Relation(NamedTuple):
    """What one member remembers of another."""

    victim: int = 0
    benefit: int = 0
    benefit_land: int = 0

    def plus(self, other: Relation) -> Relation:
        return Relation(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Member:
    """One inhabitant. `messages` and `last_round_actions` are those of the last round."""

    id: int
    vitality: int
    cargo: int
    age: int
    productivity: int
    messages: tuple[str, ...] = ()
    last_round_actions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorldState:
    """A world between two rounds. `owners` has one entry for each cell, row by row."""

    seed: int
    width: int
    height: int
    owners: tuple[int, ...]
    members: tuple[Member, ...]
    next_id: int
    round_id: int = 0
    relations: Mapping[tuple[int, int], Relation] = field(default_factory=dict)
    rules: Rules = Rules()
    last_receipt_hash: str = ""

    @cached_property
    def state_hash(self) -> str:
        """The hash of everything but `last_receipt_hash`."""
        return sha256_hex(
            canonical_json(
                {
                    "seed": self.seed,
                    "shape": [self.width, self.height],
                    "round_id": self.round_id,
                    "owners": self.owners,
                    "members": [list(vars(member).values()) for member in self.members],
                    "next_id": self.next_id,
                    "relations": sorted([*key, *relation] for key, relation in self.relations.items()),
                    "rules": vars(self.rules),
                }
            )
        )

    @cached_property
    def cells(self) -> Mapping[int, list[int]]:
        """The cells of each owner."""
        found: dict[int, list[int]] = defaultdict(list)
        for cell, owner in enumerate(self.owners):
            found[owner].append(cell)
        return found


@dataclass(frozen=True)
class Action:
    """One thing that a member wants. `amount`: thousandths of cargo; unset, a drawn share of it."""

    verb: Verb
    target: int = 0
    amount: int | None = None
    text: str = ""


@dataclass(frozen=True)
class RoundReceipt:
    """What a round did. `rejected_action_ids` has the reason of each; an id is `round-member-number`."""

    round_id: int
    seed: int
    snapshot_hash_before: str
    snapshot_hash_after: str
    accepted_action_ids: tuple[str, ...]
    rejected_action_ids: Mapping[str, str]
    round_metrics: Mapping[str, int]
    last_receipt_hash: str

    @cached_property
    def receipt_hash(self) -> str:
        return sha256_hex(canonical_json(asdict(self)))


def found_world(members: int, width: int, height: int, seed: int, rules: Rules | None = None) -> WorldState:
    """A new world. Each member has one cell of its own. Raises ValueError when there is not more land than members."""
    if not 0 < members < width * height:
        raise ValueError(f"{width}x{height} cells are not more than {members} members")
    cells = sorted(range(width * height), key=lambda cell: draw(seed, 0, "place", cell))
    owners = [FREE] * (width * height)
    people = []
    for number in range(1, members + 1):
        owners[cells[number - 1]] = number
        vitality, cargo, age, productivity = (
            _between(low, high, seed, 0, name, number)
            for name, low, high in (
                ("vitality", 10 * _UNIT, 90 * _UNIT), ("cargo", 0, 100 * _UNIT), ("age", 10, _MAX_AGE - 1),
                ("productivity", 15 * _UNIT, 20 * _UNIT),
            )
        )  # fmt: skip
        people.append(Member(number, vitality, cargo, age, productivity))
    return WorldState(seed, width, height, tuple(owners), tuple(people), members + 1, rules=rules or Rules())


def settle(state: WorldState, actions: Mapping[int, Sequence[Action]], seed: int) -> tuple[WorldState, RoundReceipt]:
    """One round: age, act, produce, consume, recover, give birth.

    `actions` has one entry for each member that a player leads, even an empty one. Every other member expands by one cell, so
    that a world without players lives on. The first action of each member comes before the second of any, and which member
    is first is drawn.
    """
    island = _Island(state, seed)
    wanted = [(0, member.id, Action("expand")) for member in state.members if member.id not in actions]
    wanted += [(number, actor, action) for actor, its in actions.items() for number, action in enumerate(its)]
    wanted.sort(key=lambda each: (each[0], island.draw(f"order {each[0]}", each[1]), each[1]))
    accepted: list[str] = []
    rejected: dict[str, str] = {}
    for number, actor, action in wanted:
        reason = island.act(actor, action) if number < MAX_ACTIONS else f"more than {MAX_ACTIONS} actions"
        action_id = f"{island.round_id}-{actor}-{number}"
        if not reason:
            island.done[actor][action.verb] += 1
        if actor in actions and reason:
            rejected[action_id] = reason
        elif actor in actions:
            accepted.append(action_id)
    island.produce()
    island.consume()
    for member in island.living:
        island.eat(member)
    island.give_birth()
    after = island.state()
    receipt = RoundReceipt(
        island.round_id, seed, state.state_hash, after.state_hash, tuple(accepted), rejected,
        metrics_of(after) | island.counted, state.last_receipt_hash,
    )  # fmt: skip
    settled = replace(after, last_receipt_hash=receipt.receipt_hash)
    vars(settled)["state_hash"] = after.state_hash  # which does not cover the receipt, and is costly
    return settled, receipt


def metrics_of(state: WorldState) -> dict[str, int]:
    """Population, total vitality, and how unequal vitality is (Gini's coefficient in thousandths)."""
    vitality = sorted(member.vitality for member in state.members)
    count, total = len(vitality), sum(vitality)
    weighed = sum((2 * place - count - 1) * each for place, each in enumerate(vitality, 1))
    gini = _UNIT * weighed // (count * total) if count > 1 and total else 0
    return {"population": count, "total_vitality": total, "gini": gini}


@lru_cache(maxsize=256)
def consumption(age: int, base: int = Rules.base_consumption) -> int:
    """What a member of that age needs in a round: `base`, and 85 ** ((age - 49) / 50) more."""
    with localcontext(Context(prec=40)):  # far more than a thousandth needs: the same on every machine
        climb = (Decimal(85).ln() * (age - _CLIMB_AGE) / (_MAX_AGE - _CLIMB_AGE)).exp()
        return base + int((climb * _UNIT).to_integral_value())


def production(productivity: int, cells: int, standard: int = Rules.standard_land) -> int:
    """`productivity * (cells / standard) ** 0.5`, rounded down."""
    return productivity * isqrt(cells * _UNIT**4 // standard) // _UNIT**2


def neighbours(state: WorldState, member: int) -> list[int]:
    """The members whose land touches that of a member."""
    beside = {
        state.owners[cell] for own in state.cells.get(member, ()) for cell in beside_of(own, state.width, state.height)
    }
    return sorted(beside - {FREE, member})


@lru_cache(maxsize=1 << 17)
def beside_of(cell: int, width: int, height: int) -> tuple[int, int, int, int]:
    """The four cells that touch a cell; the land has no edge."""
    row, column = divmod(cell, width)
    return (
        (row - 1) % height * width + column,
        (row + 1) % height * width + column,
        row * width + (column - 1) % width,
        row * width + (column + 1) % width,
    )


def draw(seed: int, round_id: int, phase: str, about: int) -> int:
    """A whole number below 2**64 that nothing else changes."""
    return int.from_bytes(blake2b(f"{seed}/{round_id}/{phase}/{about}".encode(), digest_size=8).digest())


def _between(low: int, high: int, seed: int, round_id: int, phase: str, about: int) -> int:
    return low + draw(seed, round_id, phase, about) % (high - low + 1)


class _Island:
    """The world in the middle of a round."""

    def __init__(self, state: WorldState, seed: int) -> None:
        self._before = state
        self._seed = seed
        self._rules = state.rules
        self.round_id = state.round_id + 1
        self._owners = list(state.owners)
        self._cells = {member.id: list(state.cells.get(member.id, ())) for member in state.members}
        self._members = {member.id: member for member in state.members}
        self._age = {member.id: member.age + 1 for member in state.members}
        self._vitality = {member.id: member.vitality for member in state.members}
        self._cargo = {member.id: member.cargo for member in state.members}
        self._relations = dict(state.relations)
        self._messages: dict[int, list[str]] = defaultdict(list)
        self._next_id = state.next_id
        self._uses: Counter[tuple[str, int]] = Counter()
        self.done: dict[int, Counter[str]] = defaultdict(Counter)
        self.counted = {"trade_volume": 0, "conflict_count": 0, "births": 0, "deaths": 0}

    def draw(self, phase: str, about: int) -> int:
        """A draw of this round. The same phase and member get a new one each time."""
        self._uses[phase, about] += 1
        return draw(self._seed, self.round_id, f"{phase} {self._uses[phase, about]}", about)

    @property
    def living(self) -> Iterable[int]:
        return tuple(self._vitality)

    def act(self, actor: int, action: Action) -> str:
        """Returns why nothing was done, or nothing."""
        if actor not in self._vitality:
            return "the member is dead"
        if action.verb == "expand":
            return self._expand(actor)
        if action.target == actor:
            return "a member cannot do that to itself"
        if action.target not in self._vitality:
            return f"no living member {action.target}"
        if action.verb == "attack":
            return self._attack(actor, action.target)
        if action.verb == "offer":
            return self._offer(actor, action.target, action.amount)
        if action.verb == "offer_land":
            return self._offer_land(actor, action.target)
        return self._tell(actor, action.target, action.text)

    def _attack(self, actor: int, target: int) -> str:
        damage = self._share("damage", actor, self._vitality[actor])
        theft = min(self._share("theft", actor, self._vitality[actor]), self._cargo[target])
        self.counted["conflict_count"] += 1
        self._vitality[target] -= damage
        self._cargo[target] -= theft
        self._cargo[actor] += theft
        self._remember(target, actor, Relation(victim=damage + theft))
        if self._vitality[target] <= 0:
            self._die(target)
            self._expand(actor)
        return ""

    def _offer(self, actor: int, target: int, amount: int | None) -> str:
        share = self._share("offer", actor, self._cargo[actor]) if amount is None else amount
        share = min(share, self._cargo[actor])
        if share < self._rules.least_offer:
            return "less than one unit of cargo"
        self.counted["trade_volume"] += share
        self._cargo[actor] -= share
        self._cargo[target] += share
        self._remember(target, actor, Relation(benefit=share))
        return ""

    def _offer_land(self, actor: int, target: int) -> str:
        if not self._cells[actor]:
            return "no land of its own"
        own, its = self._centre(actor), self._centre(target) if self._cells[target] else None

        def gain(cell: int) -> int:
            return self._distance(own, cell) - (self._distance(its, cell) if its is not None else 0)

        self._hand_over(max(sorted(self._cells[actor]), key=gain), actor, target)
        self._remember(target, actor, Relation(benefit_land=_UNIT))
        return ""

    def _expand(self, actor: int) -> str:
        width, height = self._before.width, self._before.height
        free = {
            cell for own in self._cells[actor] for cell in beside_of(own, width, height) if self._owners[cell] == FREE
        }
        if not free:
            return "no free cell beside its land"
        cell = sorted(free)[self.draw("expand", actor) % len(free)]
        self._owners[cell] = actor
        self._cells[actor].append(cell)
        return ""

    def _tell(self, actor: int, target: int, text: str) -> str:
        told = self._messages[target]
        name = f"From member_{actor}: "
        if len(told) >= MAX_MESSAGES or sum(each.startswith(name) for each in told) >= MAX_MESSAGES_OF_ONE:
            return "too many messages to one member"
        told.append(name + text)
        return ""

    def produce(self) -> None:
        for member in self._cargo:
            land = len(self._cells[member])
            self._cargo[member] += production(self._members[member].productivity, land, self._rules.standard_land)

    def consume(self) -> None:
        """Everybody consumes before anybody is counted out."""
        for member in self.living:
            self._vitality[member] -= consumption(self._age[member], self._rules.base_consumption)
        for member in self.living:
            if self._vitality[member] <= 0:
                self._die(member)

    def eat(self, member: int) -> None:
        food = min(self._cargo[member], self._rules.max_vitality - self._vitality[member])
        self._vitality[member] += food
        self._cargo[member] -= food

    def give_birth(self) -> None:
        """Members that are old enough and have land to give are paired by draw; a pair that is rich enough has a child."""
        able = [
            member
            for member in self.living
            if self._age[member] >= self._rules.parents_age and len(self._cells[member]) > self._rules.heritage_land
        ]
        able.sort(key=lambda member: self.draw("pair", member))
        for pair in zip(able[::2], able[1::2], strict=False):
            if sum(map(self._wealth, pair)) >= self._rules.parents_wealth:
                self._bear(pair)

    def _bear(self, pair: tuple[int, int]) -> None:
        child, self._next_id = self._next_id, self._next_id + 1
        productivity = _between(15 * _UNIT, 20 * _UNIT, self._seed, self.round_id, "productivity", child)
        self._members[child] = Member(child, 0, 0, 0, productivity)
        self._age[child], self._cargo[child], self._cells[child] = 0, 0, []
        self._vitality[child] = self._rules.child_vitality
        self.counted["births"] += 1
        middle = self._middle(*map(self._centre, pair))
        wealth = [self._wealth(parent) for parent in pair]
        first = self._rules.child_vitality * wealth[0] // sum(wealth)
        for parent, share in zip(pair, (first, self._rules.child_vitality - first), strict=True):
            from_cargo = min(share, self._cargo[parent])
            self._cargo[parent] -= from_cargo
            self._vitality[parent] -= share - from_cargo
            self._remember(child, parent, Relation(benefit=share))
            self._offer(parent, child, None)
            for cell in sorted(self._cells[parent], key=lambda cell: (self._distance(middle, cell), cell))[
                : self._rules.heritage_land
            ]:
                self._hand_over(cell, parent, child)
        self.eat(child)

    def state(self) -> WorldState:
        living = self._vitality.keys()
        return replace(
            self._before,
            owners=tuple(self._owners),
            members=tuple(
                Member(
                    member, self._vitality[member], self._cargo[member], self._age[member],
                    self._members[member].productivity, tuple(self._messages[member]), dict(self.done[member]),
                )
                for member in sorted(living)
            ),
            next_id=self._next_id,
            round_id=self.round_id,
            relations={
                (keeper, other): relation
                for (keeper, other), relation in self._relations.items()
                if keeper in living and other in living
            },
        )  # fmt: skip

    def _share(self, phase: str, member: int, of: int) -> int:
        shares = self._rules.greatest_share - self._rules.least_share + 1
        return of * (self._rules.least_share + self.draw(phase, member) % shares) // _UNIT

    def _wealth(self, member: int) -> int:
        return self._vitality[member] + self._cargo[member]

    def _remember(self, keeper: int, other: int, what: Relation) -> None:
        self._relations[keeper, other] = self._relations.get((keeper, other), Relation()).plus(what)

    def _die(self, member: int) -> None:
        self.counted["deaths"] += 1
        for cell in self._cells.pop(member):
            self._owners[cell] = FREE
        del self._vitality[member], self._cargo[member]

    def _hand_over(self, cell: int, giver: int, taker: int) -> None:
        self._cells[giver].remove(cell)
        self._cells[taker].append(cell)
        self._owners[cell] = taker

    def _centre(self, member: int) -> int:
        """The own cell with the smallest sum of squared distances to the others."""
        cells = sorted(self._cells[member])
        return min(cells, key=lambda cell: sum(self._squared(cell, other) for other in cells))

    def _middle(self, one: int, other: int) -> int:
        """The cell halfway between two, along the shorter way of each axis."""
        halfway = []
        for start, end, length in zip(self._place(one), self._place(other), self._shape, strict=True):
            way = (end - start + length // 2) % length - length // 2
            halfway.append((start + way // 2) % length)
        return halfway[0] * self._before.width + halfway[1]

    def _squared(self, one: int, other: int) -> int:
        total = 0
        for start, end, length in zip(self._place(one), self._place(other), self._shape, strict=True):
            apart = abs(start - end)
            total += min(apart, length - apart) ** 2
        return total

    def _distance(self, one: int, other: int) -> int:
        return isqrt(self._squared(one, other) * _UNIT**2)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._before.height, self._before.width

    def _place(self, cell: int) -> tuple[int, int]:
        return divmod(cell, self._before.width)
