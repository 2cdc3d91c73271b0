"""A deliberation as a decision page: the notes above the text, the heading it earns, and its evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from council.artifacts.page import Outcome, Page, PageRequest, PageSpeech, Round
from council.deliberation.names import listed
from council.deliberation.page_state import PageState, is_cut_off, is_unranked, refused_echoes
from council.deliberation.stances_page import RANKS_NOTHING, tables, unread
from council.deliberation.transcript import Transcript, Turn, flips
from council.engine.outputs import GROWS
from council.engine.receipts import ErrorRef
from council.engine.runs import Finish
from council.errors import InputUnreadable
from council.llm.base import NOBODY, AbsentModel, is_extract, mode_of
from council.safety.untrusted import plain_line, whole_marks
from council.tools.tool import NO_MATCH
from council.turns.costs import sum_of, told_cost
from council.turns.evidence import STEWARD_INPUT, Evidence
from council.turns.result import Failure
from council.turns.run_guardrails import declined

_MAX_BODY_CHARS = 4_000
_FOR_AGENTS = re.compile(r", cut to fit(?=: the line)|, cut to fit: ask .*")  # in the title of an input
_MAX_TOLD = 5  # of one kind, at the head of a page


def build_page(state: PageState) -> Page:
    status = state.status or "in_progress"
    succeeded = (f"**Succeeded.** {attendance(state.transcript, state.roles)}",) if status == "succeeded" else ()
    heading, answer, byline = _answer(state)
    if state.replaces:
        byline = f"{byline} It replaces the page of run {state.replaces}.".lstrip()
    withheld, inputs = state.is_withheld, state.transcript.inputs
    if told := _none_was_read(state):
        inputs = [item for item in inputs if item.refusal not in told]
    rounds: dict[int, list[PageSpeech | PageRequest]] = {}
    for entry in () if withheld else state.transcript.entries:
        entries = rounds.setdefault(entry.round, [])
        if isinstance(entry, Turn):
            failure = entry.result.failure
            entries.append(PageSpeech(entry.role, entry.result.text, failure.kind if failure else ""))
        else:
            entries.append(_request(entry))
    for role, number, text in () if withheld or state.finish is not None else state.speaking:
        if text.strip():
            rounds.setdefault(number, []).append(PageSpeech(role, f"{whole_marks(text.rstrip())} …"))
    footnotes = []
    for item in state.transcript.evidence():
        given = item.asked_by == STEWARD_INPUT
        how = "Given with the command." if given else f"Asked for by {item.asked_by}, round {item.round}."
        if item.id:
            footnotes.append(item.footnote(how))
    return Page(
        title=state.header.title,
        front_matter={
            "id": state.header.run_id,
            "title": state.header.title,
            "status": status,
            "created": state.header.created,
            "finished": state.finish.at if state.finish is not None else None,
            "agents": tuple(state.roles),
            "rounds": len({turn.round for turn in state.transcript.turns()}),
            "model": state.answered_by or NOBODY,
            "cost": told_cost(sum_of([call.result for call in state.calls], state.prices)),
            "audit_head": state.audit_head or None,
        },
        notes=(*succeeded, *notes_of(state)),
        heading=heading,
        answer=answer,
        byline=byline,
        tables=() if withheld else tuple(tables(state.transcript, state.roles, state.names)),
        task=state.transcript.task,
        inputs=tuple(_request(item) for item in inputs),
        rounds=tuple(Round(number, tuple(entries)) for number, entries in sorted(rounds.items())),
        footnotes=tuple(footnotes),
        sections=state.decision.sections if state.decision and not withheld else (),
        has_changes=not withheld and any(flips(state.transcript)),
    )


def details_of(state: PageState) -> dict[str, Any]:
    own = {role: model for role, model in state.models.items() if model != state.model}
    ended = state.transcript.ending
    return {
        "mode": mode_of(state.model),
        "protocol": state.protocol,
        "agents": list(state.roles),
        **({"stopped": ended.why, "calls_saved": ended.calls_saved} if ended is not None else {}),
        **({"agent_models": own} if own else {}),
    }


def _answer(state: PageState) -> tuple[str, str, str]:
    """Heading, text, byline. The words decision and synthesis stand only over a real one."""
    answered = sum(turn.result.failure is None for turn in state.transcript.turns())
    turns = f"{answered} turn{'s' if answered != 1 else ''}"
    synthesis, decision = state.transcript.synthesis, state.decision
    if state.refusal is not None:
        if state.refusal.stage == "task":
            return "Declined", declined(state.refusal.verdict), "Declined before any member was asked."
        return "Withheld", declined(state.refusal.verdict), f"Decided after {turns}, and withheld with them."
    if synthesis is not None and decision is not None:
        if is_extract(state.model) or is_extract(synthesis.result.model):
            byline = f"Extracted offline after {turns}; no language model took part."
            return "Extract", decision.answer, f"{byline} {decision.tally}".rstrip()
        failed = [role for role, _ in state.transcript.failed_closings()]
        instead = f" instead of {listed(failed)}" if failed else ""
        byline = f"Synthesis by {synthesis.role} ({synthesis.result.model}) of {turns}{instead}."
        if not answered:
            byline = f"Written by {synthesis.role} ({synthesis.result.model}) alone{instead}: nobody had spoken."
        untyped = decision.untyped
        letters = " ".join(f"{state.names.of(role)} is {role}." for role in state.roles) if state.names else ""
        silent = answered and all(turn.stance is None for turn in state.transcript.turns())
        unstated = "No agent stated its position, so none is listed." if silent else ""
        parts = (byline, letters, decision.agrees_with, untyped, unstated, decision.tally)
        return "Decision" if answered else "Answer", decision.answer, " ".join(filter(None, parts))
    if state.finish is None:
        return "In progress", state.waits or f"The council is deliberating; {GROWS}", ""
    if state.finish.cancelled:
        return "Cancelled", "The run was cancelled before the council decided. What was said until then is below.", ""
    if state.finish.error is not None:
        fix = f"To fix it: {state.finish.error.fix.rstrip('.')}." if state.finish.error.fix else ""
        return "No decision", f"The council did not come to a decision. {fix}", ""
    why = "Nobody was asked to write it."
    if state.transcript.failed_closings():
        why = "Nobody could write it, for the reasons above."
    return "No decision", f"{why} The turns below are all there is.", ""


def notes_of(state: PageState) -> list[str]:
    transcript, finish, status = state.transcript, state.finish or Finish(""), state.status
    notes = list(_echo_notes(transcript, answered=False))
    if transcript.stopped:
        notes.append(f"The rounds ended early: {transcript.stopped}")
    notes += [*absences(transcript, finish.error), *unread(transcript.turns())]
    if is_unranked(transcript):
        nobody_ranks = any(turn.fault == RANKS_NOTHING for turn in transcript.turns())
        why = f"The answers are not ranked: {RANKS_NOTHING}."
        notes.append(why if nobody_ranks else "No member's ranking could be read, so the answers are not ranked.")
    notes += _stand_ins(transcript)
    notes += failed_closings(transcript.failed_closings(), finish.error)
    if transcript.failed_closings() and transcript.synthesis is not None:
        notes.append(f"The decision was written by {transcript.synthesis.role} instead.")
    if state.finish is not None and is_cut_off(transcript):
        notes.append("A reply reached its token limit and is cut off; raise `max_output_tokens`.")
    unread_inputs = [item for item in transcript.inputs if not item.ok and not _none_was_read(state)]
    notes += [f"An input could not be read: {item.refusal}" for item in unread_inputs[:_MAX_TOLD]]
    if (more := len(unread_inputs) - _MAX_TOLD) > 0:
        inputs = "inputs" if more > 1 else "input"
        notes.append(f"{more} more {inputs} could not be read; the list below the task gives the reasons.")
    notes += state.decision.warnings if state.decision else ()
    attended = filter(None, [attendance(transcript, state.roles)])
    if status == "failed" and finish.error is not None:
        ended_with = [f"It ended with {refused.whose}." for refused in state.refused if not refused.was_cut_off]
        notes = [f"**Failed** (`{finish.error.code}`): {finish.error.message}", *attended, *ended_with, *notes]
    elif status == "degraded":  # what is missing comes first
        notes = [" ".join(("**Degraded.**", *notes[:1])), *attended, *notes[1:]]
    elif status == "cancelled":
        by = f" ({finish.cancelled_by})" if finish.cancelled_by else ""
        notes = [" ".join((f"**Cancelled**{by}." if by else "**Cancelled.**", *attended)), *notes]
    notes += _echo_notes(transcript, answered=True)
    cut = [item for item in transcript.inputs if "cut to fit" in item.title]
    notes += [f"Not all of an input was read: {_FOR_AGENTS.sub('', item.title)}." for item in cut]
    notes += [judged.note for judged in state.judged]
    notes += [state.displaced] if state.displaced else []
    return [*notes, *state.notes]


def _none_was_read(state: PageState) -> str:
    """The error that says so, where that ended the run."""
    error = state.finish.error if state.finish is not None else None
    return error.message if error is not None and error.code == InputUnreadable.code else ""


def _echo_notes(transcript: Transcript, *, answered: bool) -> Iterator[str]:
    """Each thing is told once, with all who asked for it. `answered`: the answer to somebody else made up for it."""
    asked: dict[tuple[str, str], dict[str, list[str]]] = {}
    for item, is_answered in refused_echoes(transcript):
        if is_answered is answered:
            who = asked.setdefault((item.action, item.argument), {})
            who.setdefault(item.asked_by, []).append(str(item.round))
    rest = "Another agent's request for it was answered."
    if not answered:
        rest = "No agent got it in this run. If it is wanted, name it in the task."
    for (action, argument), who in list(asked.items())[:_MAX_TOLD]:
        times = [_rounds([*dict.fromkeys(rounds)]) for rounds in who.values()]
        told = listed([f"{role} in {when}" for role, when in zip(who, times, strict=True)])
        if len({*times}) == 1:
            told = f"{listed([*who])} in {times[0]}"
        refused = "A request of {} was" if sum(map(len, who.values())) == 1 else "Requests of {} were"
        yield (
            f"{refused.format(told)} refused as an echo: a text from outside asks for "
            f"`{action}({plain_line(argument, 200)})` in the same words. {rest}"
        )
    if len(asked) > _MAX_TOLD:
        yield f"{len(asked) - _MAX_TOLD} more were refused as echoes; the rounds below list them."


def _request(item: Evidence) -> PageRequest:
    spelling = item.argument if item.asked_by == STEWARD_INPUT else item.request
    if not item.ok:
        outcome: Outcome = "found_nothing" if item.error_code == NO_MATCH else "refused"
        return PageRequest(item.asked_by, spelling, outcome, item.error)
    if item.repeats:
        return PageRequest(item.asked_by, spelling, "fulfilled", f"{item.title}, as before", item.repeats)
    told = item.title
    if item.asked_by != STEWARD_INPUT:
        told = f"Provided {item.title} to the council" if item.path else f"Gave the council {item.title}"
    body = "" if item.path else item.text[:_MAX_BODY_CHARS]
    return PageRequest(item.asked_by, spelling, "fulfilled", told, item.id, body)


# Others pass by themselves, or end the run and say so there.
_MENDED_BY_HAND = frozenset({"blocked", "length", "network"})


def attendance(transcript: Transcript, roles: Sequence[str]) -> str:
    """Empty before anybody was asked."""
    counts: dict[str, tuple[int, int]] = {}  # answered, asked
    for turn in transcript.turns():
        answered, asked = counts.get(turn.role, (0, 0))
        counts[turn.role] = answered + (turn.result.failure is None), asked + 1
    if not counts:
        return ""
    of_each = {role: counts.get(role, (0, 0)) for role in roles}
    if not any(answered for answered, _ in of_each.values()):
        return "No agent answered."
    different = set(of_each.values())
    if len(different) == 1:
        answered, asked = different.pop()
        times = {1: "once", 2: "twice"}.get(answered, f"{answered} times")
        said = times if answered == asked else f"in {_turns(answered, asked)}"
        return f"{listed(roles)} {'each ' if len(roles) > 1 else ''}answered {said}."
    return f"Answered: {'; '.join(f'{role} in {_turns(*count)}' for role, count in of_each.items())}."


def _turns(answered: int, asked: int) -> str:
    if answered < asked > 1:
        return f"{answered or 'none'} of {asked} turns"
    return f"{answered} turn{'s' if answered != 1 else ''}" if answered else "no turn"


def absences(transcript: Transcript, error: ErrorRef | None = None) -> Iterator[str]:
    """Says nothing again that `error` says, which ended the run."""
    by_failure: dict[str, dict[str, list[str]]] = {}
    for turn in transcript.turns():
        failure = turn.result.failure
        if failure is not None:
            who = by_failure.setdefault(_said(failure, error), {})
            who.setdefault(turn.role, []).append(str(turn.round))
    for said, who in by_failure.items():
        times = [_rounds(rounds) for rounds in who.values()]
        if len(who) == 1:
            yield f"{next(iter(who))} did not answer in {times[0]} {said}"
        else:
            absent = "; ".join(f"{role} in {when}" for role, when in zip(who, times, strict=True))
            yield f"No answer from {absent} {said}"


def _stand_ins(transcript: Transcript) -> Iterator[str]:
    """Each model that answered for another one, told once, with all for whom it did so for that reason."""
    spoken = [(turn.role, str(turn.round), (turn.result, *turn.repairs)) for turn in transcript.turns()]
    spoken += [(closing.role, "", (closing.result, *closing.repairs)) for closing in transcript.closings]
    replaced: dict[tuple[str, AbsentModel], dict[str, list[str]]] = {}  # in each round, or "" at the end: these roles
    for role, number, results in spoken:
        for told in dict.fromkeys((result.model, absent) for result in results for absent in result.replaced):
            replaced.setdefault(told, {}).setdefault(number, []).append(role)
    for (model, absent), roles_of in replaced.items():
        closing = roles_of.pop("", [])
        rounds_of: dict[str, list[str]] = {}
        for number, roles in roles_of.items():
            rounds_of.setdefault(listed(roles), []).append(number)
        when = [f"{roles} in {_rounds(numbers)}" for roles, numbers in rounds_of.items()]
        when += [f"the closing call of {listed(closing)}"] if closing else []
        who = "; ".join(when)
        yield f"{who[0].upper()}{who[1:]}: {model} answered instead of {absent.model} ({absent.kind}): {absent.message}"


def _rounds(numbers: Sequence[str]) -> str:
    return f"round{'s' if len(numbers) > 1 else ''} {listed(numbers)}"


def failed_closings(failed: Iterable[tuple[str, Failure]], error: ErrorRef | None = None) -> Iterator[str]:
    """Says nothing again that `error` says, which ended the run."""
    by_failure: dict[str, list[str]] = {}
    for role, failure in failed:
        by_failure.setdefault(_said(failure, error), []).append(role)
    for said, roles in by_failure.items():
        yield f"The closing call{'s' if len(roles) > 1 else ''} of {listed(roles)} failed {said}"


def _said(failure: Failure, error: ErrorRef | None) -> str:
    """The kind, the reason and, where a person can mend it, the fix."""
    fix = failure.fix.rstrip(".") if failure.kind in _MENDED_BY_HAND else ""
    message = failure.message if error is None or failure.message not in error.message else ""
    mended = f"To fix it: {fix}." if fix and (error is None or fix not in error.fix) else ""
    stop = "." if message and mended and not message.endswith((".", "!", "?", "…")) else ""
    told = f"{message}{stop} {mended}".strip()
    return f"({failure.kind}): {told}" if told else f"({failure.kind})."
