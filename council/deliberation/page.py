"""A deliberation as a decision page: what is said above the text, which heading it earns, and its evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from council.agents.turn import Failure, TurnResult
from council.artifacts.page import Footnote, Page, Request, Round, Speech
from council.budgets.prices import Price
from council.commands.models import ProtocolName
from council.deliberation.attendance import absences, attendance, failed_closings, listed
from council.deliberation.decision import Decision, SourcesNow, decide
from council.deliberation.guarding import Judged, declined
from council.deliberation.holders import Holders
from council.deliberation.names import Names
from council.deliberation.record import Settled
from council.deliberation.refused import Refused
from council.deliberation.stances_page import RANKS_NOTHING, tables, unread
from council.deliberation.stopping import Ending
from council.deliberation.transcript import STEWARD_INPUT, Aside, Closing, Evidence, Transcript, Turn
from council.engine.receipts import ErrorRef, TokenCount
from council.engine.records import RunHeader, RunStatus
from council.errors import GuardrailBlocked, InputUnreadable
from council.llm.base import Usage
from council.llm.embeddings import EmbeddingCall

_MAX_BODY_CHARS = 4_000
NOBODY = "none"
MODES = {"offline": "offline-extractive", "scripted": "scripted", "cassette": "replay"}


@dataclass(frozen=True)
class PageState:
    """Everything a page is made of. `finished` is empty while the run goes on; `waits` says what for, if it does not just
    now; `displaced` says why the page is not where it was wanted; `models` are the agents' by role, `prices` those of all
    models by name; `sources` are the files that were read, looked at again; `speaking`: role, round and text so far of
    those who speak just now; `beside` are calls beside turns and synthesis, `refused` those that ended the run; `judged` is
    what guardrails had to say."""

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
    settled: Settled | None = None
    sources: SourcesNow | None = None
    beside: Sequence[Aside] = ()
    refused: Sequence[Refused] = ()
    judged: Sequence[Judged] = ()

    @property
    def is_withheld(self) -> bool:
        """Whether the decision is, and with it what it was made of."""
        return self.refusal is not None and self.refusal.stage == "decision"

    @property
    def refusal(self) -> Judged | None:
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


def status_of(state: PageState) -> RunStatus:
    """succeeded, or degraded when something that was to be there is missing; failed and cancelled speak for themselves."""
    if state.cancelled:
        return "cancelled"
    if state.error is not None:
        return "failed"
    missing = (
        any(turn.result.failure is not None for turn in state.transcript.turns())
        or any(not item.ok for item in state.transcript.inputs)
        or any(unread(state.transcript.turns()))
        or _unranked(state)
        or state.synthesis is None
        or state.failed_closings
        or any(result.replaced for result in state.results())
        or _cut_off(state)
        or state.stopped
        or (state.settled is not None and state.settled.is_faulty)
    )
    return "degraded" if missing else "succeeded"


def tokens_of(state: PageState) -> tuple[int, TokenCount]:
    """Calls made, and their tokens."""
    results = state.results()
    counted = [*(result.usage for result in results), *(call.usage for call in _embeddings(state))]
    known = [usage for usage in counted if usage is not None]
    count = TokenCount(
        input=sum(usage.input_tokens for usage in known),
        output=sum(usage.output_tokens for usage in known),
        cached=sum(usage.cached_tokens for usage in known),
        unknown_calls=len(counted) - len(known),
    )
    return len(counted), count


def cost_of(state: PageState) -> float | None:
    """US dollars of all calls, None when a price or a count is unknown."""
    costs = [cost_of_call(state, result) for result in state.results()]
    costs += [cost_of_embedding(state, call) for call in _embeddings(state)]
    known = [cost for cost in costs if cost is not None]
    return float(sum(known, Decimal(0))) if len(known) == len(costs) else None


def cost_of_call(state: PageState, result: TurnResult) -> Decimal | None:
    """US dollars of one call; None as in `cost_of`."""
    return _cost(state, result.model, result.usage)


def _cost(state: PageState, model: str, usage: Usage | None) -> Decimal | None:
    """What a cassette says costs nothing, whoever said it first."""
    if mode_of(model) == "replay":
        return Decimal(0)
    price = state.prices.get(model)
    if price is None or (usage is None and not price.is_free):
        return None
    return price.cost(usage or Usage())


def cost_of_embedding(state: PageState, call: EmbeddingCall) -> Decimal | None:
    """US dollars of one call; None as in `cost_of`."""
    return _cost(state, call.model, call.usage)


def _embeddings(state: PageState) -> list[EmbeddingCall]:
    return [call for item in state.transcript.evidence() for call in item.embeddings]


def build_page(state: PageState) -> Page:
    """The page of a run, finished or still growing."""
    status = status_of(state) if state.finished else "in_progress"
    succeeded = (f"**Succeeded.** {attendance(state.transcript, state.roles)}",) if status == "succeeded" else ()
    heading, answer, byline = _answer(state)
    withheld = state.is_withheld
    return Page(
        title=state.header.title,
        front_matter=_front_matter(state, status),
        notes=(*succeeded, *notes_of(state)),
        heading=heading,
        answer=answer,
        byline=byline,
        tables=() if withheld else tuple(tables(state.transcript, state.roles, state.names, state.ending)),
        task=state.transcript.task,
        inputs=tuple(_request(item) for item in state.transcript.inputs),
        rounds=() if withheld else tuple(_rounds(state)),
        footnotes=tuple(_footnote(item) for item in state.transcript.evidence() if item.id),
        sections=state.decision.sections if state.decision and not withheld else (),
    )


def mode_of(model: str) -> str:
    """What stands behind the words: language-model, scripted, replay, offline-extractive; none in a run that asked nobody."""
    return MODES.get(model.split(":")[0], "language-model") if model else NOBODY


def is_extract(model: str) -> bool:
    """Whether the words are quoted from documents, with no language model behind them, now or when they were recorded."""
    return model.removeprefix("cassette:") == "offline"


def _front_matter(state: PageState, status: str) -> dict[str, str | int | float | bool | tuple[str, ...] | None]:
    calls, tokens = tokens_of(state)
    unknown = bool(tokens.unknown_calls) and not is_extract(state.model)
    at_least = "at least " if unknown else ""
    all_unknown = unknown and not tokens.input + tokens.output
    return {
        "id": state.header.run_id,
        "title": state.header.title,
        "status": status,
        "mode": mode_of(state.model),
        "created": state.header.created,
        "finished": state.finished or None,
        "protocol": state.protocol,
        **_ended(state.ending),
        "rounds": len({turn.round for turn in state.transcript.turns()}),
        "agents": tuple(state.roles),
        "model": state.model or NOBODY,
        **_own_models(state),
        "command_sha256": state.header.file.sha256,
        "calls": calls,
        "tokens_in": "unknown" if all_unknown else f"{at_least}{tokens.input}" if at_least else tokens.input,
        "tokens_out": "unknown" if all_unknown else f"{at_least}{tokens.output}" if at_least else tokens.output,
        "cost": _shown_cost(state),
        **({"audit_head": state.audit_head} if state.audit_head else {}),
        "tags": ("council",),
    }


def _own_models(state: PageState) -> dict[str, tuple[str, ...]]:
    """Of agents that another model speaks for."""
    own = tuple(f"{role}: {model}" for role, model in state.models.items() if model != state.model)
    return {"agent_models": own} if own else {}


def _ended(ending: Ending | None) -> dict[str, str | int]:
    return {"stopped": ending.why, "calls_saved": ending.calls_saved} if ending is not None else {}


def _shown_cost(state: PageState) -> str:
    cost = cost_of(state)
    if cost is None:
        return "unknown"
    return f"{cost:.6f} USD" if cost else "none"


def _answer(state: PageState) -> tuple[str, str, str]:
    """Heading, text, byline. The words decision and synthesis stand only over a real one."""
    answered = sum(turn.result.failure is None for turn in state.transcript.turns())
    turns = f"{answered} turn{'s' if answered != 1 else ''}"
    synthesis, decision = state.synthesis, state.decision
    if state.refusal is not None:
        if state.refusal.stage == "task":
            return "Declined", declined(state.refusal.verdict), "Declined before any member was asked."
        return "Withheld", declined(state.refusal.verdict), f"Decided after {turns}, and withheld with them."
    if synthesis is not None and decision is not None:
        if is_extract(state.model):
            byline = f"Extracted offline after {turns}; no language model took part."
            return "Extract", decision.answer, f"{byline} {decision.tally}".rstrip()
        failed = [role for role, _ in state.failed_closings]
        instead = f", in place of {listed(failed)}" if failed else ""
        byline = f"Synthesis by {synthesis.role} ({synthesis.result.model}) of {turns}{instead}."
        if not answered:
            byline = f"Written by {synthesis.role} ({synthesis.result.model}) alone{instead}: nobody had spoken."
        untyped = f"It stands as it was written: {decision.untyped}." if decision.untyped else ""
        parts = (byline, _letters(state), decision.agrees_with, untyped, decision.how_read, decision.tally)
        return "Decision" if answered else "Answer", decision.answer, " ".join(filter(None, parts))
    if not state.finished:
        return "In progress", state.waits or "The council is deliberating; this page grows.", ""
    if state.cancelled:
        return "Cancelled", "The run was cancelled before the council decided. What was said until then is below.", ""
    if state.error is not None:
        return "No decision", f"The council did not come to a decision. {_fix(state.error.fix)}", ""
    why = "Nobody could write it, for the reasons above." if state.failed_closings else "Nobody was asked to write it."
    return "No decision", f"{why} The turns below stand for themselves.", ""


def _letters(state: PageState) -> str:
    """Who stands behind the letters in a text that was written without names."""
    return " ".join(f"{state.names.of(role)} is {role}." for role in state.roles) if state.names else ""


def _fix(fix: str) -> str:
    return f"To mend it: {fix.rstrip('.')}." if fix else ""


def notes_of(state: PageState) -> list[str]:
    """What is to be known before reading on, empty when all went well."""
    status = status_of(state) if state.finished else "in_progress"
    notes: list[str] = []
    told = state.error is not None and state.error.code == InputUnreadable.code  # it names each of them
    unread_inputs = [item for item in state.transcript.inputs if not item.ok and not told]
    if status == "failed" and state.error is not None:
        notes += [f"**Failed** (`{state.error.code}`): {state.error.message}", *_attended(state)]
        notes += [f"It ended with {refused.whose}." for refused in state.refused if not refused.was_cut_off]
    elif status in ("degraded", "cancelled"):
        by = f" ({state.cancelled_by})" if state.cancelled_by else ""
        notes.append(" ".join((f"**{status.capitalize()}**{by}.", *_attended(state))))
    if state.stopped:
        notes.append(f"The rounds ended early: {state.stopped}")
    notes += [*absences(state.transcript), *unread(state.transcript.turns())]
    if _unranked(state):
        notes.append(_why_unranked(state))
    notes += _replacements(state)
    notes += failed_closings(state.failed_closings)
    if state.failed_closings and state.synthesis is not None:
        notes.append(f"The decision was written by {state.synthesis.role} instead.")
    if state.finished and _cut_off(state):
        notes.append("A reply reached its token limit and is cut off; raise `max_output_tokens`.")
    cut = [item for item in state.transcript.inputs if "cut to fit" in item.title]
    notes += state.decision.warnings if state.decision else ()
    notes += [f"Not all of an input was read: {item.title}." for item in cut]
    notes += [f"The input `{item.argument}` could not be read: {item.error}" for item in unread_inputs]
    notes += [judged.note for judged in state.judged]
    notes += [state.displaced] if state.displaced else []
    return [*notes, *state.notes]


def _replacements(state: PageState) -> Iterator[str]:
    """Whose words come from another model than the one that was asked, and why."""
    spoken = [(f"{turn.role} in round {turn.round}", (turn.result, *turn.repairs)) for turn in state.transcript.turns()]
    repairs = state.settled.repairs if state.settled else ()
    spoken += [(f"The closing call of {closing.role}", (closing.result, *repairs)) for closing in state.closings]
    for who, results in spoken:
        for result in results:
            for replaced in result.replaced:
                yield (
                    f"{who}: {result.model} answered in place of {replaced.model} ({replaced.kind}): {replaced.message}"
                )


def _attended(state: PageState) -> list[str]:
    sentence = attendance(state.transcript, state.roles)
    return [sentence] if sentence else []


def _unranked(state: PageState) -> bool:
    """True when all ballots of a review came back and none could be read."""
    ballots = [turn for turn in state.transcript.turns() if turn.ballot and turn.result.failure is None]
    return bool(ballots) and not any(turn.ranking for turn in ballots)


def _why_unranked(state: PageState) -> str:
    if any(turn.fault == RANKS_NOTHING for turn in state.transcript.turns()):
        return f"The answers stand unranked: {RANKS_NOTHING}."
    return "No member's ranking could be read: the answers stand unranked."


def _cut_off(state: PageState) -> bool:
    results = [turn.result for turn in state.transcript.turns()]
    if not (state.settled and state.settled.record):  # a record that was read is whole
        results += [closing.result for closing in state.closings]
    return any(result.finish == "length" and result.failure is None for result in results)


def _rounds(state: PageState) -> list[Round]:
    rounds: dict[int, list[Speech | Request]] = {}
    for entry in state.transcript.entries:
        block = _speech(entry) if isinstance(entry, Turn) else _request(entry)
        rounds.setdefault(entry.round, []).append(block)
    for role, number, text in state.speaking if not state.finished else ():
        if text:
            rounds.setdefault(number, []).append(Speech(role, f"{text.rstrip()} …"))
    return [Round(number, tuple(entries)) for number, entries in sorted(rounds.items())]


def _speech(turn: Turn) -> Speech:
    failure = turn.result.failure
    return Speech(turn.role, turn.result.text, f"{failure.kind}: {failure.message}" if failure else "")


def _request(item: Evidence) -> Request:
    spelling = item.argument if item.asked_by == STEWARD_INPUT else item.request
    if not item.ok:
        return Request(item.asked_by, spelling, "refused", item.error)
    if item.repeats:
        return Request(item.asked_by, spelling, "fulfilled", f"{item.title}, as before", item.repeats)
    verb = item.title if item.asked_by == STEWARD_INPUT else f"Provided {item.title} to the council"
    body = "" if item.path else item.text[:_MAX_BODY_CHARS]
    return Request(item.asked_by, spelling, "fulfilled", verb, item.id, body)


def _footnote(item: Evidence) -> Footnote:
    how = (
        "Given with the command."
        if item.asked_by == STEWARD_INPUT
        else f"Asked for by {item.asked_by}, round {item.round}."
    )
    return Footnote(item.id, item.path, item.first_line, item.last_line, item.sha256, item.title, how)
