"""A request as far as it has come: its answer, and its status when it ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from council.agents.handoff import Handoff, Return
from council.conductor.aggregation import AnswerComparison
from council.conductor.dispatch import Handing
from council.conductor.routing import Route
from council.conductor.stock_replies import MOMENTS, opening
from council.conductor.understanding import Understanding
from council.engine.queue import MAX_WAIT
from council.engine.receipts import ErrorRef
from council.engine.records import RunStatus
from council.engine.runs import Finish
from council.safety.verdict import ALLOWED
from council.turns.bench import BenchState
from council.turns.evidence import Evidence

_OFFLINE = (
    "Offline, no language model: this request was routed by exact name only. Nobody understood it, and no agent can answer. "
    "Set another `model`, with its key, to have it answered."
)
_DRAFTED = "{agent} drafted a plan. `council plans show {plan}` shows it, and nothing changes until you confirm."


@dataclass
class AskState(BenchState):
    """A request as far as it has come. `beside` are notes of the way; `plans` are drafts
    that wait for the person. `creation` tells what came of the wish for a specialist."""

    handing: Handing | None = None
    understood: Understanding | None = None
    routes: tuple[Route, ...] = ()
    results: list[tuple[Handoff, Return]] = field(default_factory=list)
    comparison: AnswerComparison | None = None
    comparison_fault: str = ""
    refused: str = ""
    is_offline: bool = False
    is_dry: bool = False
    inputs: list[Evidence] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    creation: str = ""

    @property
    def spoken(self) -> list[tuple[Handoff, Return]]:
        """The results that hold an answer."""
        return [each for each in self.results if each[1].answer and each[1].status != "failed"]

    @property
    def answer(self) -> str:
        """The answer to the person, in Markdown."""
        return self.told(formless=True)

    def told(self, *, formless: bool) -> str:
        """The answer, with replies that missed their form or, as agents are told it later, without them."""
        if self.is_offline or self.refused:
            return self.refused or _OFFLINE
        if self.routes and self.routes[0].intent == "create_specialist":
            return self.creation
        say = self.bench.say if self.bench else str.format
        if not self.results:
            return say(MOMENTS["cannot_do"]) if self.routes and not self.is_dry else ""
        parts = [say(opening(self.guarding.task if self.guarding else ALLOWED))]
        spoken = self.spoken
        if self.comparison is not None:
            parts.append(self.comparison.summary)
            for one in self.comparison.disagreements:
                sides = "\n".join(f"- {side.agent}: {side.says}" for side in one.sides)
                parts.append(f"{say('They disagree about this: {about}', about=one.about)}\n\n{sides}")
        if len(spoken) == 1:
            parts.append(spoken[0][1].answer)
        else:
            parts += [f"### {returned.from_}\n\n{returned.answer}" for _, returned in spoken]
        for _, returned in self.results:  # each with its limits, as its agent told them
            name, meta = returned.from_, returned.meta
            if returned.status == "failed":
                parts.append(say("**{agent} failed:** {error}", agent=name, error=returned.error))
                shown = returned.formless_reply if formless else ""
                parts.append("\n".join(f"> {line}".rstrip() for line in shown.splitlines()))
            if returned.status == "partial":
                parts.append(say("**{agent} answered in part only.**", agent=name))
            if returned.status == "needs_clarification":
                parts.append(say("**{agent} asks:** {question}", agent=name, question=returned.question))
            if meta.limitations:
                told = "; ".join(meta.limitations)
                parts.append(say("Limitations of {agent}: {limitations}", agent=name, limitations=told))
            if meta.certainty is not None:
                parts.append(say("Certainty of {agent}: {certainty}", agent=name, certainty=f"{meta.certainty:.0%}"))
            if meta.suggested_followup:
                steps = "; ".join(meta.suggested_followup)
                parts.append(say("{agent} suggests next: {steps}", agent=name, steps=steps))
            if returned.plan:
                parts.append(say(_DRAFTED, agent=name, plan=returned.plan))
        parts += [say(MOMENTS["cannot_do"])] if any(route.how == "none" for route in self.routes) else []
        return "\n\n".join(filter(None, parts))


def status_of(state: AskState, finish: Finish) -> tuple[RunStatus, ErrorRef | None]:
    """A question that nobody answered in time ends the run without a failure: it stands on the page."""
    if finish.cancelled:
        return "cancelled", finish.error
    if finish.error is not None:
        return ("degraded", None) if is_unanswered(state, finish) else ("failed", finish.error)
    incomplete = any(returned.status != "completed" for _, returned in state.results)
    replaced = any(call.result.replaced for call in state.calls)
    unread = any(not item.ok for item in state.inputs)
    bad = incomplete or unread or replaced or bool(state.comparison_fault) or state.is_offline or bool(state.refused)
    return ("degraded" if bad else "succeeded"), None


def is_unanswered(state: AskState, finish: Finish | None) -> bool:
    """True when the run ended because nobody answered its question."""
    return finish is not None and finish.error is not None and finish.error.code == MAX_WAIT and bool(state.question)
