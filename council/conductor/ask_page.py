"""A request as a page: the answer first, then how it was routed, and what each agent was given. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from council.artifacts.page import Page, PageRequest, Table
from council.conductor.ask_state import AskState, is_unanswered, status_of
from council.conductor.dispatch import CONDUCTOR_ID
from council.conductor.routing import Route
from council.conductor.stock_replies import refusal
from council.engine.outputs import GROWS
from council.engine.runs import Finish
from council.errors import GuardrailBlocked
from council.turns.account import Account
from council.turns.evidence import Evidence

_CAUSES = {
    "none": "no agent fits",
    "unverified": "the agent is unverified and not yours",
    "scope": "the agent is not for this use",
    "band": "the model was not sure enough",
    "boundary": "a boundary forbids it",
    "create_specialist": "a specialist of its own is wanted for it",
}


def notes_of(state: AskState, finish: Finish | None) -> list[str]:
    """Notes above the answer: what is to be known before it is read."""
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
    notes += [f"The answers could not be compared: {state.comparison_fault}"] if state.comparison_fault else []
    notes += [f"An input could not be read: {item.refusal}" for item in state.inputs if not item.ok]
    for route in state.routes:
        if route.unasked:
            also = " and ".join(route.unasked)
            notes.append(f"You also named {also}. A request by name goes to one agent: {route.agent}.")
    notes += [*(state.handing.notes if state.handing else ()), *state.beside]
    notes += [f"A plan waits for you: `council plans show {plan}`." for plan in state.plans]
    return notes


def route_notes(state: AskState) -> list[str]:
    """The way of each part, and what each agent was not given. One that asks back is given the same again."""
    notes = [f"Part {route.part}: {_told(route)}." for route in state.routes]
    for handoff in state.handing.sent if state.handing else ():
        if handoff.to != CONDUCTOR_ID:
            got = ", ".join(sorted(handoff.context.content)) or "nothing"
            left = ", ".join(handoff.context.excluded) or "nothing"
            shared = f" Shared from other agents: {', '.join(handoff.shared)}." if handoff.shared else ""
            notes.append(f"{handoff.to} was given {got}; left out: {left}.{shared}")
    return list(dict.fromkeys(notes))


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
        task=state.request,
        inputs=tuple(
            PageRequest(item.asked_by, item.argument, "fulfilled", item.title, item.id or item.repeats)
            if item.ok
            else PageRequest(item.asked_by, item.argument, "refused", item.error)
            for item in state.inputs
        ),
        footnotes=tuple(item.footnote(f"Read for {item.asked_by}.") for item in evidence if item.id),
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
            return "At work", f"The conductor is at work; {GROWS}"
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
        rows = []
        for route in state.routes:
            near = [one.agent + (f" {one.score:.2f}" if one.score is not None else "") for one in route.candidates]
            chosen = (route.agent or CONDUCTOR_ID, route.how, f"{route.confidence:.2f}")
            rows.append((str(route.part), route.intent, *chosen, ", ".join(near)))
        lines = tuple(part.task for part in state.understood.parts) if state.understood else ()
        lines = (*lines, *route_notes(state))
        columns = ("Part", "Intent", "Agent", "Chosen by", "Confidence", "Candidates")
        yield Table("Routing", columns, tuple(rows), lines)
    handed = []
    for handoff, returned in state.results:
        if handoff.to != CONDUCTOR_ID:
            fields = (sorted(handoff.context.content), handoff.shared, handoff.context.excluded)
            handed.append((returned.from_, handoff.type, *map(", ".join, fields), returned.status))
    if handed:
        yield Table("Handoffs", ("Agent", "Type", "Given", "Shared", "Left out", "Status"), tuple(handed))


def _evidence(state: AskState) -> list[Evidence]:
    return [*state.inputs, *(state.bench.evidence if state.bench else ())]


def account_of(state: AskState, finish: Finish | None) -> Account:
    """The account of a request, for `council explain`."""
    ended = finish is not None and finish.error is None
    nobody = state.is_offline or bool(state.refused) or bool(state.routes and not (state.spoken or state.creation))
    outcome = "nobody could answer the request" if nobody else "the request was answered"
    if state.is_dry:
        nobody, outcome = False, "it was a dry run: no agent was asked"
    routed = "; ".join(
        f"part {route.part}: {_told(route)}"
        + (f", out of {', '.join(one.agent for one in route.candidates)}" if route.candidates else "")
        for route in state.routes
    )
    return state.account(
        "ask",
        build_page(state, finish),
        reads=tuple(item.as_read() for item in _evidence(state)),
        sources=tuple(item.source() for item in _evidence(state) if item.id),
        stopped=("unanswered" if nobody else "answered") if ended else "",
        stopped_because=(f"{outcome} ({routed})" if routed else outcome) if ended else "",
    )
