"""The state that a decision page, its account and its receipt are made of, and the status: when a deliberation is degraded, and
not succeeded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from council.budgets.prices import Price
from council.deliberation.decision import Decision, decide
from council.deliberation.names import Names
from council.deliberation.stances_page import unread
from council.deliberation.transcript import Closing, Transcript, Turn, calls_of
from council.engine.records import RunHeader, RunStatus
from council.engine.runs import Finish
from council.errors import GuardrailBlocked
from council.settings.table import ProtocolName
from council.turns.changed_sources import SourcesNow
from council.turns.evidence import Evidence
from council.turns.requests import ECHOED, answered_in, target_of
from council.turns.result import ModelCall
from council.turns.run_guardrails import Judgement


@dataclass(frozen=True)
class PageState:
    """`finish` is None while the run goes on; `waits` says what for, if it does not just now. `displaced` says why the
    page is not where it was wanted, `replaces` whose page was there. `model` is the council's, or several, listed with commas,
    where it went on with another. `models` are the agents' by role, `prices` those
    of all models. `looked_up` is the decision. `beside` are calls beside turns and synthesis, `refused` those that ended
    the run."""

    header: RunHeader
    transcript: Transcript
    roles: Sequence[str]
    model: str
    notes: Sequence[str] = ()
    protocol: ProtocolName = "triad"
    names: Names = field(default_factory=Names)
    models: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    finish: Finish | None = None
    waits: str = ""
    audit_head: str = ""
    displaced: str = ""
    replaces: str = ""
    speaking: Sequence[tuple[str, int, str]] = ()
    sources: SourcesNow | None = None
    looked_up: Decision | None = None
    beside: Sequence[ModelCall] = ()
    refused: Sequence[ModelCall] = ()
    judged: Sequence[Judgement] = ()

    @cached_property
    def calls(self) -> list[ModelCall]:
        return calls_of(self.transcript, self.refused, self.beside)

    @cached_property
    def status(self) -> RunStatus | None:
        return None if self.finish is None else status_of(self.transcript, self.calls, self.finish)

    @property
    def answered_by(self) -> str:
        """The models that answered for the council's, which may be others; before any did, the council's own."""
        said: list[Turn | Closing] = [*self.transcript.turns(), *self.transcript.closings]
        answers = [each.result for each in said if self.models.get(each.role, self.model) == self.model]
        return ", ".join(dict.fromkeys(each.model for each in answers if each.failure is None)) or self.model

    @property
    def is_withheld(self) -> bool:
        return self.refusal is not None and self.refusal.stage == "decision"

    @property
    def refusal(self) -> Judgement | None:
        error = self.finish.error if self.finish is not None else None
        if error is None or error.code != GuardrailBlocked.code:
            return None
        blocked = (judged for judged in self.judged if judged.verdict.blocks)
        return next((judged for judged in blocked if judged.stage in ("task", "decision")), None)

    @cached_property
    def decision(self) -> Decision | None:
        """The decision with its look-up. None when there is no closing reply, and while the run goes on before it is looked
        up."""
        return self.looked_up if self.looked_up is not None or self.finish is None else self.read_decision()

    def read_decision(self) -> Decision | None:
        """Reads the decision and looks up what it quotes and cites: up to some seconds of work, so not for the event loop."""
        synthesis = self.transcript.synthesis
        if synthesis is None:
            return None
        reply, record = synthesis.result, synthesis.record
        return decide(reply, record, self.transcript, self.sources, self.roles, self.names, synthesis.role)


def status_of(transcript: Transcript, calls: Sequence[ModelCall], finish: Finish) -> RunStatus:
    if finish.cancelled:
        return "cancelled"
    if finish.error is not None:
        return "failed"
    turns, settled = transcript.turns(), transcript.settled
    degraded = (  # something that was to be there is missing, or came from somebody else
        any(turn.result.failure is not None for turn in turns)
        or any(not item.ok for item in transcript.inputs)
        or any(not answered for _, answered in refused_echoes(transcript))
        or any(unread(turns))
        or is_unranked(transcript)
        or transcript.synthesis is None
        or bool(transcript.failed_closings())
        or any(call.result.replaced for call in calls)
        or is_cut_off(transcript)
        or bool(transcript.stopped)
        or (settled is not None and bool(settled.fault or settled.failed_repairs))
    )
    return "degraded" if degraded else "succeeded"


def refused_echoes(transcript: Transcript) -> list[tuple[Evidence, bool]]:
    """True where somebody got that file or answer in the run."""
    evidence = transcript.evidence()
    answered = answered_in(evidence)
    refused = (item for item in evidence if item.error_code == ECHOED)
    return [(item, target_of(item.action, item.argument) in answered) for item in refused]


def is_unranked(transcript: Transcript) -> bool:
    """True when all ballots of a review came back and none could be read."""
    ballots = [turn for turn in transcript.turns() if turn.ballot and turn.result.failure is None]
    return bool(ballots) and not any(turn.ranking for turn in ballots)


def is_cut_off(transcript: Transcript) -> bool:
    results = [turn.result for turn in transcript.turns()]
    if not (transcript.settled and transcript.settled.record):  # a record that was read is whole
        results += [closing.result for closing in transcript.closings]
    return any(result.finish == "length" and result.failure is None for result in results)
