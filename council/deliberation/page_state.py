"""The state that a decision page, its account and its receipt are made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from council.agents.turn import Failure, TurnResult
from council.budgets.prices import Price
from council.deliberation.commands import ProtocolName
from council.deliberation.decision import Decision, SourcesNow, decide
from council.deliberation.guarding import Judgement
from council.deliberation.holders import Holders
from council.deliberation.names import Names
from council.deliberation.record import ClosingRecord
from council.deliberation.refused import RefusedCall
from council.deliberation.stopping import Ending
from council.deliberation.transcript import Aside, Closing, Transcript
from council.engine.receipts import ErrorRef
from council.engine.records import RunHeader
from council.errors import GuardrailBlocked


@dataclass(frozen=True)
class PageState:
    """The state of a run, for its page. `finished` is empty while the run goes on; `waits` says what for, if it does
    not just now. `displaced` says why the page is not where it was wanted. `models` are the agents' by role,
    `prices` those of all models by name. `sources` are the files that were read, looked at again. `speaking`: role,
    round and text so far of those who speak just now. `beside` are calls beside turns and synthesis, `refused` those
    that ended the run. `judged` are the verdicts of guardrails."""

    header: RunHeader
    transcript: Transcript
    closings: Sequence[Closing]
    roles: Sequence[str]
    model: str
    notes: Sequence[str]
    protocol: ProtocolName = "triad"
    names: Names = field(default_factory=Names)
    ending: Ending | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    stopped: str = ""
    waits: str = ""
    error: ErrorRef | None = None
    cancelled: bool = False
    cancelled_by: str = ""
    finished: str = ""
    audit_head: str = ""
    displaced: str = ""
    speaking: Sequence[tuple[str, int, str]] = ()
    settled: ClosingRecord | None = None
    sources: SourcesNow | None = None
    beside: Sequence[Aside] = ()
    refused: Sequence[RefusedCall] = ()
    judged: Sequence[Judgement] = ()

    @property
    def is_withheld(self) -> bool:
        """True when the decision is withheld, and with it the words it was made of."""
        return self.refusal is not None and self.refusal.stage == "decision"

    @property
    def refusal(self) -> Judgement | None:
        """The verdict for which there is no decision, None when it is none."""
        if self.error is None or self.error.code != GuardrailBlocked.code:
            return None
        return next(
            (judged for judged in self.judged if judged.verdict.blocks and judged.stage in ("task", "decision")), None
        )

    @cached_property
    def decision(self) -> Decision | None:
        """None when there is no closing reply."""
        if self.synthesis is None:
            return None
        holders = Holders(self.roles, self.names)
        reply, writer = self.synthesis.result, self.synthesis.role
        return decide(reply, self.settled, self.transcript, self.sources, holders, self.names, writer)

    @property
    def synthesis(self) -> Closing | None:
        """The closing call that brought the decision, None when none did."""
        return next((closing for closing in self.closings if closing.result.failure is None), None)

    @property
    def failed_closings(self) -> list[tuple[str, Failure]]:
        return [(closing.role, closing.result.failure) for closing in self.closings if closing.result.failure]

    def results(self) -> list[TurnResult]:
        """Of all calls that were made, in order."""
        turns = [result for turn in self.transcript.turns() for result in (turn.result, *turn.repairs)]
        closings = [result for closing in self.closings for result in (closing.result, *closing.repairs)]
        repairs = self.settled.repairs if self.settled else ()
        beside = [aside.result for aside in self.beside]
        ended_by = [refused.result for refused in self.refused]
        return [result for result in (*turns, *closings, *repairs, *beside, *ended_by) if result.was_asked]
