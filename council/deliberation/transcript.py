"""The events of one deliberation so far: turns and evidence, in order. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from council.agents.turn import TurnResult
from council.artifacts.account import Purpose
from council.deliberation.stance import Stance
from council.llm.base import Source
from council.llm.embeddings import EmbeddingCall, Nearness
from council.llm.structured import Repair
from council.safety.verdict import ALLOWED, Verdict

STEWARD_INPUT = "STEWARD"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request (or a named input): text from outside with its place, or the reason it was refused.

    `id` (`E1`, `E2`, …) is empty for a refusal and for a repeated request, which names the earlier id in `repeats`.
    `embeddings` are the model calls that finding it took, `nearness` what they came to. `guard` is the verdict of a
    guardrail; a blocked text is a refusal, and not kept.
    """

    asked_by: str
    round: int
    request: str
    action: str = ""
    argument: str = ""
    id: str = ""
    title: str = ""
    path: str = ""
    first_line: int = 1
    last_line: int = 1
    sha256: str = ""
    text: str = ""
    repeats: str = ""
    error_code: str = ""
    error: str = ""
    embeddings: tuple[EmbeddingCall, ...] = ()
    nearness: Nearness | None = None
    guard: Verdict = ALLOWED

    @property
    def ok(self) -> bool:
        return not self.error_code

    def source(self) -> Source:
        return Source(self.id, self.path, self.text, self.first_line, self.sha256)


class Turn(msgspec.Struct, frozen=True):
    """A turn of an agent in a round. The text of `result` is its speech: a block that was read is taken out of it.

    `stance` is None when no position was stated. `fault` says why a block could not be read, `repair` what was done to
    read it, `repairs` are the calls that took. `advocate`: spoke as the devil's advocate. `ballot` are the answers that
    it was asked to rank instead of taking a stance. `ranking` has them in its order, empty where it gave none.
    """

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


@dataclass(frozen=True)
class Standpoint:
    """A position as an agent stated it last, in `round`; `restated` False: it was asked again since and stated none."""

    stance: Stance
    round: int
    restated: bool


@dataclass(frozen=True)
class Closing:
    """A closing call: of the chair or, where that failed, of the next member. `repairs`: the calls that a reply without an
    answer took."""

    role: str
    result: TurnResult
    repairs: tuple[TurnResult, ...] = ()


class Aside(msgspec.Struct, frozen=True):
    """A call beside turns and closing turns, and the step that recorded it."""

    step: str
    purpose: Purpose
    result: TurnResult


@dataclass
class Transcript:
    """Grows by appending; `entries` is the order in which things happened after the inputs."""

    task: str
    inputs: list[Evidence] = field(default_factory=list)
    entries: list[Turn | Evidence] = field(default_factory=list)

    def turns(self) -> list[Turn]:
        return [entry for entry in self.entries if isinstance(entry, Turn)]

    def evidence(self) -> list[Evidence]:
        """All evidence, inputs first, in the order of their ids."""
        return [*self.inputs, *(entry for entry in self.entries if isinstance(entry, Evidence))]

    def issued(self) -> list[str]:
        """The ids of all evidence so far."""
        return [item.id for item in self.evidence() if item.id]

    def last_stances(self) -> dict[str, Stance | None]:
        """By role, what each agent that answered held in its last turn that asks for it; None: not stated."""
        return {turn.role: turn.stance for turn in self.turns() if turn.result.failure is None and not turn.ballot}

    def positions(self) -> dict[str, Standpoint]:
        """By role, what each agent stated last: a position stays until the agent states another."""
        held: dict[str, Standpoint] = {}
        for turn in self.turns():
            if turn.stance is not None:
                held[turn.role] = Standpoint(turn.stance, turn.round, restated=True)
            elif turn.role in held and not turn.ballot:
                held[turn.role] = Standpoint(held[turn.role].stance, held[turn.role].round, restated=False)
        return held

    def next_id(self) -> str:
        return f"E{sum(bool(item.id) for item in self.evidence()) + 1}"

    def same_as(self, title: str, sha256: str, text: str) -> Evidence | None:
        """Evidence that already holds exactly this."""
        for item in self.evidence():
            if item.id and item.sha256 == sha256 and item.title == title and item.text == text:
                return item
        return None
