"""A deliberation as an account: every call with its step and its price, what was read, who changed its mind. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from council.agents.turn import NO_BUDGET, TurnResult
from council.artifacts.account import Account, Call, Mending, MindChange, Purpose, Read, StanceTaken
from council.deliberation.costs import cost_of_call, cost_of_embedding
from council.deliberation.flips import flips
from council.deliberation.page import build_page
from council.deliberation.page_state import PageState
from council.deliberation.transcript import STEWARD_INPUT, Evidence
from council.llm.structured import Repair

# Only what stood around it was taken off.
_READ_AS_IT_CAME: frozenset[Repair] = frozenset({"none", "fences", "prose", "think"})


def account_of(state: PageState, max_rounds: int) -> Account:
    """The account of a run, ended or under way; its calls are those that the receipt counts."""
    ending, settled, synthesis = state.ending, state.settled, state.synthesis
    stances, changes = _minds(state)
    reads = tuple(
        Read(
            step=step,
            asked_by=item.asked_by,
            round=item.round,
            request=item.request or item.argument,
            id=item.id,
            path=item.path,
            first_line=item.first_line if item.id else 0,
            last_line=item.last_line if item.id else 0,
            sha256=item.sha256,
            title=item.title,
            repeats=item.repeats,
            error_code=item.error_code,
            error=item.error,
        )
        for item, step in _evidence(state)
    )
    mended: list[Mending] = []
    for turn in state.transcript.turns():
        if turn.repair not in _READ_AS_IT_CAME or turn.fault:
            step = f"round/{turn.round}/{turn.role}"
            tries = len(turn.repairs)
            mended.append(
                Mending(step, turn.role, "ranking" if turn.ballot else "stance", turn.repair, tries, turn.fault)
            )
    if settled is not None and synthesis is not None and (settled.repair not in _READ_AS_IT_CAME or settled.fault):
        step, tries = _closing_step(state, synthesis.role), len(settled.repairs)
        mended.append(Mending(step, synthesis.role, "decision record", settled.repair, tries, settled.fault))
    return Account(
        protocol=state.protocol,
        max_rounds=max_rounds,
        roles=tuple(state.roles),
        letters=dict(state.names.letters),
        model=state.model,
        calls=tuple(call for call in _calls(state) if call.failure != NO_BUDGET),
        reads=reads,
        stances=stances,
        changes=changes,
        mended=tuple(mended),
        written_by=synthesis.role if synthesis else "",
        instead_of=tuple(role for role, _ in state.failed_closings) if synthesis else (),
        stopped=ending.why if ending else "",
        stopped_because=ending.sentence if ending else "",
        calls_saved=ending.calls_saved if ending else 0,
        page=build_page(state),
    )


def _minds(state: PageState) -> tuple[tuple[StanceTaken, ...], tuple[MindChange, ...]]:
    """Stances and changes of mind. Of a withheld decision they come without the words that led to it."""
    replace = msgspec.structs.replace
    stances: list[StanceTaken] = []
    for turn in state.transcript.turns():
        if turn.result.failure is None and not turn.ballot:
            taken, stance = StanceTaken(turn.role, turn.round, advocate=turn.advocate), turn.stance
            if stance is not None:
                taken = replace(
                    taken,
                    key=stance.key,
                    position=stance.position,
                    confidence=stance.confidence,
                    evidence=stance.evidence,
                    would_change=stance.would_change,
                )
            stances.append(taken)
    changes = [
        MindChange(flip.role, flip.round, flip.before.position, flip.after.position, flip.evidence)
        for flip in flips(state.transcript)
    ]
    if state.is_withheld:
        keys = {taken.position: taken.key for taken in stances}
        numbers = {key: number for number, key in enumerate(dict.fromkeys(filter(None, keys.values())), start=1)}

        def told(position: str) -> str:
            return f"(position {numbers[keys[position]]}, withheld)" if keys.get(position) else "(a position, withheld)"

        stances = [
            replace(taken, key=told(taken.position), position=told(taken.position), would_change="")
            if taken.key
            else taken
            for taken in stances
        ]
        changes = [replace(change, before=told(change.before), after=told(change.after)) for change in changes]
    return tuple(stances), tuple(changes)


def _calls(state: PageState) -> Iterator[Call]:
    """The calls in the order of `PageState.results`, and those that the budget refused."""
    for turn in state.transcript.turns():
        step = f"round/{turn.round}/{turn.role}"
        yield _call(state, step, turn.role, "turn", turn.round, turn.result)
        for number, result in enumerate(turn.repairs, start=1):
            yield _call(state, f"{step}/repair/{number}", turn.role, "repair", turn.round, result)
    for closing in state.closings:
        step = _closing_step(state, closing.role)
        yield _call(state, step, closing.role, "closing", 0, closing.result)
        for number, result in enumerate(closing.repairs, start=1):
            yield _call(state, f"{step}/repair/{number}", closing.role, "closing repair", 0, result)
    if state.settled is not None and state.synthesis is not None:
        role = state.synthesis.role
        for number, result in enumerate(state.settled.repairs, start=1):
            step = f"{_closing_step(state, role)}/repair/{number}"
            yield _call(state, step, role, "closing repair", 0, result)
    for aside in state.beside:
        yield _call(state, aside.step, "", aside.purpose, 0, aside.result)
    for item, step in _evidence(state):
        for number, call in enumerate(item.embeddings):
            cost = cost_of_embedding(state, call)
            yield Call(
                step=f"{step}/embedding/{number}" if number else step,
                role=item.asked_by,
                purpose="embedding",
                round=item.round,
                model=call.model,
                finish="stop",
                usage=call.usage,
                usd=None if cost is None else float(cost),
            )
    for refused in state.refused:
        purpose: Purpose = "turn" if refused.round else "closing"
        if "/repair/" in refused.step:
            purpose = "repair" if refused.round else "closing repair"
        yield _call(state, refused.step, refused.role, purpose, refused.round, refused.result)


def _closing_step(state: PageState, role: str) -> str:
    return "synthesis" if role == state.roles[0] else f"synthesis/{role}"


def _call(state: PageState, step: str, role: str, purpose: Purpose, round_no: int, result: TurnResult) -> Call:
    failure = result.failure
    cost = cost_of_call(state, result)
    return Call(
        step=step,
        role=role,
        purpose=purpose,
        round=round_no,
        model=result.model,
        finish="" if failure else result.finish,
        usage=result.usage,
        usd=None if cost is None else float(cost),
        failure=failure.kind if failure else "",
        message=failure.message if failure else "",
    )


def _evidence(state: PageState) -> Iterator[tuple[Evidence, str]]:
    """Each piece with the step that it was found in."""
    asked: Counter[tuple[str, int]] = Counter()
    for item in state.transcript.evidence():
        who = (item.asked_by, item.round)
        asked[who] += 1
        place = "input" if item.asked_by == STEWARD_INPUT else f"round/{item.round}/{item.asked_by}/request"
        yield item, f"{place}/{asked[who]}"
