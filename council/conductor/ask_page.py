"""A request as a page: the answer first, then how it was routed, and what each agent was given. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from council.agents.handoff import Handoff, Return
from council.artifacts.page import Footnote, Page, PageRequest, Table
from council.conductor.aggregation import AnswerComparison
from council.conductor.dispatch import CONDUCTOR_ID, Handing
from council.conductor.routing import Route
from council.conductor.stock_replies import MOMENTS, opening, refusal
from council.conductor.understanding import Understanding
from council.engine.queue import MAX_WAIT
from council.engine.receipts import ErrorRef
from council.engine.records import RunStatus
from council.engine.runs import Finish
from council.errors import GuardrailBlocked
from council.safety.verdict import ALLOWED
from council.turns.account import Account
from council.turns.bench import BenchState
from council.turns.evidence import Evidence

_OFFLINE = (
    "Offline, no language model: this request was routed by exact name only. Nobody understood it, and no agent can answer. "
    "Set `GEMINI_API_KEY` or another model to have it answered."
)
_DRAFTED = "{agent} drafted a plan. `council plans show {plan}` shows it, and nothing changes until you confirm."
_CAUSES = {
    "none": "no agent fits",
    "unverified": "the agent is unverified and not yours",
    "scope": "the agent is not for this use",
    "band": "the model was not sure enough",
    "boundary": "a boundary forbids it",
    "create_specialist": "a specialist of its own is wanted for it",
}


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
                parts.append("\n".join(f"> {line}".rstrip() for line in returned.unread.splitlines()))
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

    def route_notes(self) -> Iterator[str]:
        """The way of each part, and what each agent was not given."""
        for route in self.routes:
            yield f"Part {route.part}: {_told(route)}."
        for handoff in self.handing.sent if self.handing else ():
            if handoff.to != CONDUCTOR_ID:
                got = ", ".join(sorted(handoff.context.content)) or "nothing"
                left = ", ".join(handoff.context.excluded) or "nothing"
                shared = f" Shared from other agents: {', '.join(handoff.shared)}." if handoff.shared else ""
                yield f"{handoff.to} was given {got}; left out: {left}.{shared}"


def _told(route: Route) -> str:
    if route.cause == "boundary":
        return f"nobody, since {route.agent} requires what it cannot be given"
    cause = f", since {_CAUSES[route.cause]}" if route.cause else ""
    match route.how:
        case "name":
            return f"{route.agent}, which you named"
        case "embedding":
            return f"{route.agent}, by embedding ({route.confidence:.2f})"
        case "model":
            asked = "; you are asked first" if route.asks_first else ""
            return f"{route.agent}, chosen by the model ({route.confidence:.2f}){asked}"
        case "temporary":
            return f"the temporary agent {route.temporary or route.agent}{cause}"
        case "general":
            return f"the conductor itself{cause}"
        case _:
            return f"nobody{cause}"


def status_of(state: AskState, finish: Finish) -> tuple[RunStatus, ErrorRef | None]:
    """A question that nobody answered in time ends the run without a failure: it stands on the page."""
    if finish.cancelled:
        return "cancelled", finish.error
    if finish.error is not None:
        return ("degraded", None) if is_unanswered(state, finish) else ("failed", finish.error)
    incomplete = any(returned.status != "completed" for _, returned in state.results)
    replaced = any(call.result.replaced for call in state.calls)
    bad = incomplete or replaced or bool(state.comparison_fault) or state.is_offline or bool(state.refused)
    return ("degraded" if bad else "succeeded"), None


def is_unanswered(state: AskState, finish: Finish | None) -> bool:
    """True when the run ended because nobody answered its question."""
    return finish is not None and finish.error is not None and finish.error.code == MAX_WAIT and bool(state.question)


def notes_of(state: AskState, finish: Finish | None) -> list[str]:
    """Notes above the answer, for the page and the receipt."""
    notes = []
    if finish is not None:
        status, error = status_of(state, finish)
        if error is not None:
            notes.append(f"**Failed** (`{error.code}`): {error.message}")
        elif status == "degraded":
            notes.append("**Degraded.** Not everything that was asked for could be done.")
        if is_unanswered(state, finish):
            notes.append("Nobody answered the question in time.")
    notes += [judged.note for judged in state.guarding.judgements(_evidence(state))] if state.guarding else []
    notes += state.route_notes()
    notes += [f"The answers could not be compared: {state.comparison_fault}"] if state.comparison_fault else []
    notes += [f"The input `{item.argument}` could not be read: {item.error}" for item in state.inputs if not item.ok]
    notes += [*(state.handing.notes if state.handing else ()), *state.beside]
    notes += [f"A plan waits for you: `council plans show {plan}`." for plan in state.plans]
    return notes


def build_page(state: AskState, finish: Finish | None) -> Page:
    """The page of a request, ended or still growing."""
    heading, answer = _answer(state, finish)
    status = status_of(state, finish)[0] if finish is not None else None
    evidence = _evidence(state)
    return Page(
        title=state.header.title,
        front_matter=state.front_matter(
            status,
            finish,
            conversation=state.header.lane.removeprefix("ask-"),
            agents=tuple(dict.fromkeys(route.agent or CONDUCTOR_ID for route in state.routes)),
        ),
        notes=tuple(notes_of(state, finish)),
        heading=heading,
        answer=answer,
        byline="",
        task=state.request,
        inputs=tuple(
            PageRequest(item.asked_by, item.argument, "fulfilled", item.title, item.id or item.repeats)
            if item.ok
            else PageRequest(item.asked_by, item.argument, "refused", item.error)
            for item in state.inputs
        ),
        rounds=(),
        footnotes=tuple(
            Footnote(
                item.id,
                item.path,
                item.first_line,
                item.last_line,
                item.sha256,
                item.title,
                f"Read for {item.asked_by}.",
            )
            for item in evidence
            if item.id
        ),
        tables=tuple(_tables(state)),
    )


def _answer(state: AskState, finish: Finish | None) -> tuple[str, str]:
    error = finish.error if finish is not None else None
    if error is not None and error.code == GuardrailBlocked.code and state.guarding is not None:
        guard = state.guarding
        blocked = guard.task if guard.task.blocks else guard.decision
        return "Declined" if guard.task.blocks else "Withheld", refusal(blocked)
    if state.question:
        return "Question", state.question
    if finish is None:
        heard = state.bench.asker.hearings if state.bench else []
        said = [f"{one.role}: {one.text}" if len(heard) > 1 else one.text for one in heard if one.text]
        if not said:  # "In progress" is what a terminal shows as it grows
            return "At work", "The conductor is at work; this page grows."
        return "In progress", "\n\n".join(said)
    if finish.cancelled:
        return "Cancelled", "The run was cancelled before there was an answer."
    if error is not None:
        return "No answer", error.fix and f"To fix it: {error.fix.rstrip('.')}."
    if state.answer:
        return "Answer", state.answer
    return "Route", "This was a dry run: no agent was asked."


def _tables(state: AskState) -> Iterator[Table]:
    if state.routes:
        rows = tuple(
            (
                str(route.part),
                route.intent,
                route.agent or CONDUCTOR_ID,
                route.how,
                f"{route.confidence:.2f}",
                ", ".join(
                    one.agent + (f" {one.score:.2f}" if one.score is not None else "") for one in route.candidates
                ),
            )
            for route in state.routes
        )
        lines = tuple(part.task for part in state.understood.parts) if state.understood else ()
        yield Table("Routing", ("Part", "Intent", "Agent", "Chosen by", "Confidence", "Candidates"), rows, lines)
    handed = [each for each in state.results if each[0].to != CONDUCTOR_ID]
    if handed:
        given = tuple(
            (
                returned.from_,
                handoff.type,
                ", ".join(sorted(handoff.context.content)),
                ", ".join(handoff.shared),
                ", ".join(handoff.context.excluded),
                returned.status,
            )
            for handoff, returned in handed
        )
        yield Table("Handoffs", ("Agent", "Type", "Given", "Shared", "Left out", "Status"), given)


def _evidence(state: AskState) -> list[Evidence]:
    return [*state.inputs, *(state.bench.evidence if state.bench else ())]


def account_of(state: AskState, finish: Finish | None) -> Account:
    """The account of a request, for `council explain`."""
    roles = list(dict.fromkeys(call.role for call in state.calls if call.role))
    ended = finish is not None and finish.error is None
    failed = bool(state.results) and not state.spoken
    routed = "; ".join(
        f"part {route.part}: {_told(route)}"
        + (f", out of {', '.join(one.agent for one in route.candidates)}" if route.candidates else "")
        for route in state.routes
    )
    return Account(
        protocol="ask",
        roles=tuple(roles),
        model=state.model,
        calls=state.priced_calls,
        reads=tuple(item.as_read() for item in _evidence(state)),
        sources=tuple(item.source() for item in _evidence(state) if item.id),
        stopped=("unanswered" if failed else "answered") if ended else "",
        stopped_because=f"{'nobody could answer the request' if failed else 'the request was answered'} ({routed})"
        if ended
        else "",
        page=build_page(state, finish),
    )
