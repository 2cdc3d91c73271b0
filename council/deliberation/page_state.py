"""The state that a decision page, its account and its receipt are made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from council.budgets.prices import Price
from council.deliberation.changed_sources import SourcesNow
from council.deliberation.decision import Decision, decide
from council.deliberation.names import Holders, Names
from council.deliberation.status import status_of
from council.deliberation.transcript import Transcript, calls_of
from council.engine.records import RunHeader, RunStatus
from council.engine.runs import Finish
from council.errors import GuardrailBlocked
from council.settings.table import ProtocolName
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
    def is_withheld(self) -> bool:
        return self.refusal is not None and self.refusal.stage == "decision"

    @property
    def refusal(self) -> Judgement | None:
        error = self.finish.error if self.finish is not None else None
        if error is None or error.code != GuardrailBlocked.code:
            return None
        return next(
            (judged for judged in self.judged if judged.verdict.blocks and judged.stage in ("task", "decision")), None
        )

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
        holders = Holders(self.roles, self.names)
        return decide(
            synthesis.result, synthesis.record, self.transcript, self.sources, holders, self.names, synthesis.role
        )
