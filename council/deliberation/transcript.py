"""The course of one deliberation so far: turns and evidence in order, what the closing calls brought, and who changed its
mind. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from council.deliberation.record import ClosingRecord
from council.deliberation.stance import Stance
from council.llm.structured import Repair
from council.turns.evidence import STEWARD_INPUT, Evidence
from council.turns.result import Failure, ModelCall, TurnResult

Why = Literal["unanimity", "no_new_information", "repeated_turn", "budget", "cap"]


class Turn(msgspec.Struct, frozen=True):
    """The text of `result` is its speech: a block that was read is taken out of it. `stance` is None when no position
    was stated. `fault` says why a block could not be read; `repairs` are the calls that reading it took. With a
    `ballot` it was asked to rank those answers; `ranking` is empty where it gave none."""

    role: str
    round: int
    result: TurnResult
    stance: Stance | None = None
    fault: str = ""
    repair: Repair = "none"
    repairs: tuple[TurnResult, ...] = ()
    advocate: bool = False
    ballot: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()

    @property
    def step(self) -> str:
        return step_of(self.round, self.role)


def step_of(round_no: int, role: str) -> str:
    return f"round/{round_no}/{role}"


@dataclass(frozen=True)
class Standpoint:
    """A position as an agent stated it last, in `round`; `restated` False: it was asked again since and stated none."""

    stance: Stance
    round: int
    restated: bool


@dataclass(frozen=True)
class Closing:
    """Of the chair or, where that failed, of the next member. `record` is None while the reply is not read."""

    step: str
    role: str
    result: TurnResult
    record: ClosingRecord | None = None

    @property
    def repairs(self) -> tuple[TurnResult, ...]:
        return self.record.repairs if self.record is not None else ()


class Ending(msgspec.Struct, frozen=True):
    """The reason why the rounds ended, in a word and a sentence; `calls_saved` are turns that did not take place."""

    why: Why
    sentence: str
    calls_saved: int = 0


@dataclass
class Transcript:
    """`entries` is the order in which things happened after the inputs. `ending` is None while the rounds go on,
    `stopped` says which budget ended them early. `day` is the date that the agents are told."""

    task: str
    inputs: list[Evidence] = field(default_factory=list)
    entries: list[Turn | Evidence] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    ending: Ending | None = None
    stopped: str = ""
    day: str = ""

    def turns(self) -> list[Turn]:
        return [entry for entry in self.entries if isinstance(entry, Turn)]

    def evidence(self) -> list[Evidence]:
        """All evidence, inputs first, in the order of their ids."""
        return [*self.inputs, *(entry for entry in self.entries if isinstance(entry, Evidence))]

    def issued(self) -> list[str]:
        return [item.id for item in self.evidence() if item.id]

    def positions(self) -> dict[str, Standpoint]:
        """Each agent's last position, by role. A position stays until the agent states another."""
        held: dict[str, Standpoint] = {}
        for turn in self.turns():
            if turn.stance is not None:
                held[turn.role] = Standpoint(turn.stance, turn.round, restated=True)
            elif turn.role in held and not turn.ballot:
                held[turn.role] = Standpoint(held[turn.role].stance, held[turn.role].round, restated=False)
        return held

    @property
    def synthesis(self) -> Closing | None:
        return next((closing for closing in self.closings if closing.result.failure is None), None)

    @property
    def settled(self) -> ClosingRecord | None:
        return self.synthesis.record if self.synthesis is not None else None

    def failed_closings(self) -> list[tuple[str, Failure]]:
        return [(closing.role, closing.result.failure) for closing in self.closings if closing.result.failure]


def calls_of(transcript: Transcript, refused: Sequence[ModelCall], beside: Sequence[ModelCall]) -> list[ModelCall]:
    """All calls that were made; one that a spent budget forbade was not."""
    calls: list[ModelCall] = []
    for turn in transcript.turns():
        calls.append(ModelCall(turn.step, turn.role, turn.round, turn.result, "turn"))
        for number, result in enumerate(turn.repairs, start=1):
            calls.append(ModelCall(f"{turn.step}/repair/{number}", turn.role, turn.round, result, "repair"))
    for closing in transcript.closings:
        calls.append(ModelCall(closing.step, closing.role, 0, closing.result, "closing"))
        for number, result in enumerate(closing.repairs, start=1):
            calls.append(ModelCall(f"{closing.step}/repair/{number}", closing.role, 0, result, "closing repair"))
    calls += beside
    for item, step in evidence_by_step(transcript):
        for number, search in enumerate(item.embeddings):
            result = TurnResult("", search.model, usage=search.usage)
            place = f"{step}/embedding/{number}" if number else step
            calls.append(ModelCall(place, item.asked_by, item.round, result, "embedding"))
    return [call for call in (*calls, *refused) if call.result.was_asked]


def evidence_by_step(transcript: Transcript) -> Iterator[tuple[Evidence, str]]:
    asked: Counter[tuple[str, int]] = Counter()
    for item in transcript.evidence():
        who = (item.asked_by, item.round)
        asked[who] += 1
        place = "input" if item.asked_by == STEWARD_INPUT else f"round/{item.round}/{item.asked_by}/request"
        yield item, f"{place}/{asked[who]}"


@dataclass(frozen=True)
class Flip:
    """`evidence` are the ids it names that were new to the agent; empty: unexplained."""

    role: str
    round: int
    before: Stance
    after: Stance
    evidence: tuple[str, ...]


def flips(transcript: Transcript) -> list[Flip]:
    return [flip for flip in _moves(transcript) if flip.before.key != flip.after.key]


def unexplained(transcript: Transcript) -> set[str]:
    """The roles that hold a position by a change that new evidence explains neither then nor since."""
    roles: set[str] = set()
    for move in _moves(transcript):
        if move.evidence:
            roles.discard(move.role)
        elif move.before.key != move.after.key:
            roles.add(move.role)
    return roles


def _moves(transcript: Transcript) -> Iterator[Flip]:
    known = {item.id for item in transcript.inputs if item.id}
    last: dict[str, tuple[Stance, frozenset[str]]] = {}  # each agent's last stance, and what was issued by then
    for entry in transcript.entries:
        if not isinstance(entry, Turn):
            known |= {entry.id} if entry.id else set()
        elif entry.stance is not None:
            if entry.role in last:
                before, seen = last[entry.role]
                new = tuple(name for name in entry.stance.ids if name not in seen)
                yield Flip(entry.role, entry.round, before, entry.stance, new)
            last[entry.role] = (entry.stance, frozenset(known))
