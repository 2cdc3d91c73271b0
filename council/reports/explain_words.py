"""Figures and times in words, and the timeline of an explanation in sentences: the same for the terminal and the page.
Pure.

Texts of agents, files and providers come out as one plain line each, cut to a length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Literal

from council.artifacts.render import without_brackets
from council.engine.records import WAITS
from council.engine.run_records import AUDIT_HEAD, FINISH
from council.ids import local_times, whole_duration
from council.lines_and_pages import spelled
from council.reports.explain import AgentShare, CallEntry, Explanation
from council.reports.timeline import StepEntry
from council.safety.untrusted import plain_line
from council.tools.tool import NO_MATCH
from council.turns.account import Mending, MindChange, RequestEntry
from council.turns.closing_block import asked_to_correct
from council.turns.costs import told_cost

NOT_KNOWN = "–"
UNEXPLAINED = "unexplained: it names no evidence that was new to it"
STEWARD = "STEWARD"
Mark = Literal["done", "failed", "retry", "wait", "attempt", "cut", "under way"]
_MAX_CHARS = 300
_BESIDE_TURNS = {
    "start": "personas, memory, tools and model are read",
    "window": "the model's context window is looked up",
    "sources": "the files that were read are checked again",
    "budget spent": "the budget ends the rounds",
    "second opinion on the task": "a second opinion on the task",
    "verdict on the decision": "what the guardrails say of the decision",
    "second opinion on the decision": "a second opinion on the decision",
    "withheld memory": "what is not remembered is recorded",
    "memory summary": "older tasks are summarised",
    "route": "agents are looked for",
    "agents": "temporary agents are looked up",
    "agent": "an agent gets ready",
    "question": "a question to the person",
    "answer": "the person's answer",
    "scope": "the project in question is looked up",
    "drafts": "open drafts are looked up",
    "reading": "the workspace is read",
}
_ENDING = {FINISH: "the work is over", AUDIT_HEAD: "the head of the audit is recorded"}
_ENDED = {
    "finished": "",  # the next lines tell how
    "waiting": "ended in a wait",
    "handed back": "the process was asked to stop",
    "cut off": "cut off: the process ended, or the disk or the database failed",
    "under way": "under way",
}
_BECAUSE = {
    "start": " begins",
    "restart": " begins, after a restart",
    "wait over": " begins, after the wait",
    "wait given up": " ends the run: the wait would be too long",
    "resume": " begins: the run was resumed",
    "retry": " begins: a retry",
}
_NOT_DONE = {
    "refused": "failed, and ended the run",
    "parked": "not answered: the run waits",
    "cut off": "cut off; it is made again",
    "under way": "under way",
    "not recorded": "ended without an answer",
}


@dataclass(frozen=True)
class Moment:
    """A line of the timeline. `at_ms` None: the journal does not say when. `faint`: bookkeeping, or done anew later."""

    at_ms: int | None
    seconds: float | None
    mark: Mark
    what: str
    detail: str = ""
    faint: bool = False


def plain(text: str, max_chars: int = _MAX_CHARS) -> str:
    return plain_line(text, max_chars)


def number(value: int | None) -> str:
    return NOT_KNOWN if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """Spells a duration to two or three figures: `0.24 s`, `12.3 s`, `2 min 38 s`, `3 h 05 min`."""
    if seconds is None:
        return NOT_KNOWN
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return whole_duration(seconds)


def clock(ms: int | None, zone: tzinfo | None = UTC) -> str:
    """The time of day to a tenth of a second."""
    if ms is None:
        return NOT_KNOWN
    moment = datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"


def lines_read(read: RequestEntry) -> str:
    """`docs/a.md:1-12`, or the request where it was no file."""
    if read.path and read.id:
        return plain(spelled(read.path, read.first_line, read.last_line))
    return plain(read.path or read.request, 160)


def outcome_of(read: RequestEntry) -> str:
    if read.error_code == NO_MATCH:
        return f"nothing found: {plain(read.error)}"
    if read.error_code:
        return f"refused ({read.error_code}): {plain(read.error)}"
    return f"given before, as {read.repeats}" if read.repeats else plain(read.title).replace("`", "")


def change_words(change: MindChange) -> str:
    why = f"on new evidence: {', '.join(change.evidence)}" if change.evidence else UNEXPLAINED
    return f"from “{plain(change.before)}” to “{plain(change.after)}”, {why}"


def mended_words(mended: Mending) -> str:
    asked = f"its writer was {asked_to_correct(mended.calls)}"
    if mended.fault:
        after = f", though {asked}" if mended.calls else ""
        return f"the {mended.what} could not be read{after}: {plain(mended.fault)}"
    if mended.how == "json_repair":
        return f"the spelling of the {mended.what} was repaired, without asking again"
    return f"the {mended.what} was repaired: {asked}"


def timeline(explanation: Explanation) -> list[Moment]:
    """Everything that happened, in the order in which it began; what has no time stays behind what it followed."""
    calls = {call.step: call for call in explanation.calls}
    reads = {read.step: read for read in explanation.reads}
    moments = [Moment(explanation.times.admitted_ms, explanation.times.queued_s, "attempt", "the command is admitted")]
    for attempt in explanation.attempts:
        where = f" from {attempt.retry_from}" if attempt.retry_from else ""
        what = f"attempt {attempt.number}{_BECAUSE.get(attempt.because, '')}{where}"
        moments.append(Moment(attempt.began_ms, None, "attempt", what, _ENDED.get(attempt.ended, attempt.ended)))
    above = _above(explanation)
    moments += [_step(step, calls.get(step.name), reads.get(step.name), above) for step in explanation.steps]
    return _in_order([*moments, *(replace(moment, detail="") for moment in delays(explanation))])


def delays(explanation: Explanation) -> list[Moment]:
    """Retries and waits alone, with what the provider said: the same words once."""
    moments, words = [], {step.name: step_words(step) for step in explanation.steps}
    above = _above(explanation)
    for wait in explanation.waits:
        over = "" if wait.until_ms is not None else f" for {duration(wait.asked_s)}, and still does"
        what = f"the run {WAITS.get(wait.reason, WAITS[''])}{over}"
        moments.append(Moment(wait.since_ms, wait.seconds, "wait", what, plain(wait.error)))
    for retry in explanation.retries:
        what = f"{words[retry.step]}: try {retry.attempt} failed ({retry.kind})"
        moments.append(Moment(retry.at_ms, retry.wait_s, "retry", what, plain(retry.error)))
    moments = _in_order(moments)
    for at, moment in enumerate(moments):
        if moment.detail and _is_told(moment.detail, above):
            moments[at] = replace(moment, detail="as above")
        above = f"{above}\n{moment.detail}"
    return moments


def _above(explanation: Explanation) -> str:
    """The reasons that stand above the timeline: nothing below repeats them."""
    return "\n".join((explanation.why.sentence, *explanation.notes))


def _is_told(reason: str, above: str) -> bool:
    """True where a line above is this reason, or gives it whole: `timeout` is not told by `timeout after 5 s`."""
    return re.search(rf"(?:^|: ){re.escape(reason.rstrip('.'))}(?=[.;]|$)", above, re.MULTILINE) is not None


def _in_order(moments: list[Moment]) -> list[Moment]:
    known, last = [], 0
    for position, moment in enumerate(moments):
        last = moment.at_ms if moment.at_ms is not None else last
        known.append((last, position, moment))
    return [moment for _, _, moment in sorted(known, key=lambda item: item[:2])]


def step_words(step: StepEntry) -> str:
    """A step for a person."""
    match step.kind:
        case "turn" | "closing":
            return call_of(step.role, step.round)
        case "repair" | "closing repair":
            return f"{call_of(step.role, step.round)}, asked to correct it"
        case _:
            return _BESIDE_TURNS.get(step.kind) or _ENDING.get(step.name) or plain(step.name, 100)


def call_of(role: str, round_no: int) -> str:
    """An agent's call of a round, or (round 0) its closing one."""
    return f"{plain(role, 60)}, round {round_no}" if round_no else f"the closing call of {plain(role, 60)}"


def _step(step: StepEntry, call: CallEntry | None, read: RequestEntry | None, above: str) -> Moment:
    what = step_words(step)
    if read is not None:
        what = f"{plain(read.asked_by, 60)} {'gives' if read.asked_by == STEWARD else 'asks for'} {asked_for(read)}"
    elif call is not None and call.purpose == "closing":
        what = f"{plain(call.role, 60)} writes the decision"
    mark: Mark = "done"
    detail, faint = "", False
    if step.outcome == "refused" and call is not None and call.failure and not step.again:
        mark, detail = "failed", call_words(call, above)
    elif step.outcome != "done":
        mark, detail = "under way" if step.outcome == "under way" else "cut", _NOT_DONE[step.outcome]
    elif step.again:
        detail, faint = "made again later", True
    elif call is not None:
        mark, detail = "failed" if call.failure else "done", call_words(call, above)
    elif read is not None:
        mark = "failed" if read.error_code else "done"
        detail = f"{read.id}: {outcome_of(read)}" if read.id else outcome_of(read)
    else:
        faint = step.kind in _BESIDE_TURNS or step.name in _ENDING
    return Moment(step.began_ms, step.seconds, mark, what, detail, faint)


def asked_for(read: RequestEntry) -> str:
    """A request without its brackets."""
    return without_brackets(plain(read.request, 200))


def call_words(call: CallEntry, above: str) -> str:
    if call.failure:
        is_told = not call.message or _is_told(call.message, above)
        return f"failed ({call.failure})" if is_told else f"failed ({call.failure}): {plain(call.message)}"
    if call.tokens is None:
        return "answered; the provider counted no tokens"
    cut = ", cut off at its token limit" if call.finish == "length" else ""
    return f"{call.tokens.input:,} tokens in, {call.tokens.output:,} out{cut}"


def status_line(explanation: Explanation) -> Iterator[str]:
    """Protocol, agents, rounds, model: what is known of them."""
    if explanation.protocol:
        agents = sum(agent.role != "" for agent in explanation.agents)
        yield explanation.protocol
        yield f"{agents} agent{'s' if agents != 1 else ''}"
        if explanation.max_rounds:
            yield f"{explanation.rounds} of {explanation.max_rounds} round{'s' if explanation.max_rounds != 1 else ''}"
    else:
        yield f"{'an' if explanation.type[:1] in 'aeiou' else 'a'} {explanation.type} command"
    if explanation.model:
        yield plain(explanation.model, 100)


def token_counts(agent: AgentShare) -> list[str]:
    """Input, cached, output and thought; not known where none of the agent's calls was counted."""
    tokens = agent.tokens
    is_known = tokens.unknown_calls < agent.calls
    sums = (tokens.input, tokens.cached, tokens.output, tokens.thought)
    return [number(each if is_known else None) for each in sums]


def counted(calls: int) -> str:
    return f"{calls} call{'s' if calls != 1 else ''}"


def spent_line(explanation: Explanation) -> str:
    tokens = explanation.tokens
    sums = f"{tokens.input:,} tokens in ({tokens.cached:,} cached), {tokens.output:,} out ({tokens.thought:,} thought)"
    if tokens.unknown_calls:
        sums = "tokens unknown" if is_uncounted(explanation) else f"{sums}, unknown for {counted(tokens.unknown_calls)}"
    return f"{counted(explanation.calls_counted)}; {sums}; cost {told_cost(explanation.cost_usd)}"


def is_uncounted(explanation: Explanation) -> bool:
    """True where no call has a token count."""
    return 0 < explanation.calls_counted == explanation.tokens.unknown_calls


def charged_line(explanation: Explanation) -> str:
    """The sums of the budget beside the calls that count, empty when they are the same."""
    charged = explanation.charged
    tokens = explanation.tokens.input + explanation.tokens.output
    if (charged.calls, charged.tokens) == (explanation.calls_counted, tokens) or not charged.calls:
        return ""
    return (
        f"charged to the budget: {counted(charged.calls)}, {charged.tokens:,} tokens, cost {told_cost(charged.cost_usd)} "
        f"(tries that failed, calls that were cut off and earlier attempts included)"
    )


def time_line(explanation: Explanation, zone: tzinfo | None = UTC) -> str:
    times = explanation.times
    began = local_times(times.created, zone) + (" UTC" if zone is UTC else "")
    parts = [f"queued {duration(times.queued_s)}", f"at work {duration(times.working_s)}"]
    parts += [f"{duration(times.retries_s)} of it between tries"] if times.retries_s else []
    parts += [f"parked {duration(times.waiting_s)}"] if explanation.waits else []
    parts += [f"stopped {duration(times.stopped_s)}"] if times.stopped_s >= 0.01 else []
    known_s = (times.queued_s or 0.0) + (times.working_s or 0.0) + times.waiting_s + times.stopped_s
    rest_s = (times.total_s or 0.0) - known_s
    parts += [f"between steps {duration(rest_s)}"] if rest_s >= 0.01 else []
    total = f"{duration(times.total_s)} in all" if times.total_s is not None else "no time is known"
    return f"{began}, {total}: {', '.join(parts)}"
