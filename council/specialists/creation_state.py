"""A creation or an examination as far as it has come, and its status when it ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from council.engine.outputs import GROWS
from council.engine.records import RunStatus
from council.engine.runs import Finish
from council.safety.ministers import GuardianVerdict, ValidatorVerdict
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import CaseResult, TestSuite, TrainingGain
from council.turns.bench import BenchState


class DraftedPlan(msgspec.Struct, frozen=True):
    """The plan of a run, and the ministers' words in it, line by line."""

    plan_id: str
    findings: tuple[str, ...]


@dataclass
class CreationState(BenchState):
    """A creation or an examination as far as it has come. `reviews` has one entry for each design. `comparison` is with the
    same model without the specialist."""

    reviews: list[tuple[GuardianVerdict, ValidatorVerdict]] = field(default_factory=list)
    spec: SpecialistSpec | None = None
    suite: TestSuite | None = None
    plan: DraftedPlan | None = None
    results: Sequence[CaseResult] = ()
    comparison: TrainingGain | None = None
    outcome: str = ""  # in a sentence, once there is one

    def status(self, finish: Finish) -> RunStatus:
        if finish.cancelled:
            return "cancelled"
        if finish.error is not None:
            return "failed"
        return "degraded" if any(call.result.replaced for call in self.calls) else "succeeded"

    def notes(self, finish: Finish | None) -> list[str]:
        """Notes above the answer, for the page and the receipt."""
        evidence = self.bench.evidence if self.bench else []
        found = [judged.note for judged in self.guarding.judgements(evidence)] if self.guarding else []
        if finish is not None and finish.error is not None:
            found.insert(0, f"**Failed** (`{finish.error.code}`): {finish.error.message}")
        if self.plan is not None and not self.outcome and finish is None:
            shows = f"`council plans show {self.plan.plan_id}` shows it"
            found.append(f"A plan waits for you: {shows}, and nothing is trained until you confirm and apply it.")
        return found

    def answer(self, finish: Finish | None) -> tuple[str, str]:
        """The heading and the answer below it, for the page."""
        if self.question:
            return "Question", self.question
        if finish is None:
            return "In progress", self.outcome or f"The creation council is at work; {GROWS}"
        if finish.cancelled:
            return "Cancelled", "The run was cancelled. No specialist was registered."
        if finish.error is not None:
            fix = f"\n\nTo fix it: {finish.error.fix.rstrip('.')}." if finish.error.fix else ""
            return "Refused", f"No specialist was registered. {finish.error.message}{fix}"
        return "Outcome", self.outcome
