"""A deliberation as an account: every call with its step and its price, what was read, who changed its mind. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from council.agents.turn import NO_BUDGET, TurnResult
from council.artifacts.account import Account, Call, Mended, MindChanged, Purpose, Read, StanceTaken
from council.deliberation.flips import flips
from council.deliberation.page import PageState, build_page, cost_of_call, cost_of_embedding
from council.deliberation.refused import Refused
from council.deliberation.transcript import STEWARD_INPUT, Evidence, Turn
from council.llm.structured import Repair

_READ_AS_IT_CAME: frozenset[Repair] = frozenset(
    {"none", "fences", "prose", "think"}
)  # only what stood around it was taken off


def account_of(state: PageState, max_rounds: int) -> Account:
    """Of a run that ended or of one that is under way; its calls are those that the receipt counts."""
    ending = state.ending
    stances = tuple(_stance(turn) for turn in state.transcript.turns() if _takes_a_stance(turn))
    changes = tuple(
        MindChanged(flip.role, flip.round, flip.before.position, flip.after.position, flip.evidence)
        for flip in flips(state.transcript)
    )
    if state.is_withheld:
        stances, changes = _withheld(stances, changes)
    return Account(
        protocol=state.protocol,
        max_rounds=max_rounds,
        roles=tuple(state.roles),
        letters=dict(state.names.letters),
        model=state.model,
        calls=tuple(call for call in _calls(state) if call.failure != NO_BUDGET),
        reads=tuple(_reads(state)),
        stances=stances,
        changes=changes,
        mended=tuple(_mended(state)),
        written_by=state.synthesis.role if state.synthesis else "",
        instead_of=tuple(role for role, _ in state.failed_closings) if state.synthesis else (),
        stopped=ending.why if ending else "",
        stopped_because=ending.sentence if ending else "",
        calls_saved=ending.calls_saved if ending else 0,
        page=build_page(state),
    )


def _calls(state: PageState) -> Iterator[Call]:
    """In the order of `PageState.results`, and those that the budget refused."""
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
    yield from _embeddings(state)
    for refused in state.refused:
        yield _call(state, refused.step, refused.role, _purpose(refused), refused.round, refused.result)


def _purpose(refused: Refused) -> Purpose:
    if refused.round:
        return "repair" if refused.is_repair else "turn"
    return "closing repair" if refused.is_repair else "closing"


def _closing_step(state: PageState, role: str) -> str:
    return "synthesis" if role == state.roles[0] else f"synthesis/{role}"


def _call(state: PageState, step: str, role: str, purpose: Purpose, round_no: int, result: TurnResult) -> Call:
    failure = result.failure
    return Call(
        step=step,
        role=role,
        purpose=purpose,
        round=round_no,
        model=result.model,
        finish="" if failure else result.finish,
        usage=result.usage,
        usd=_usd(state, result),
        failure=failure.kind if failure else "",
        message=failure.message if failure else "",
    )


def _usd(state: PageState, result: TurnResult) -> float | None:
    cost = cost_of_call(state, result)
    return None if cost is None else float(cost)


def _embeddings(state: PageState) -> Iterator[Call]:
    """The calls that searches took; the first of each search has its step, and so its time."""
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


def _reads(state: PageState) -> Iterator[Read]:
    return (_read(item, step) for item, step in _evidence(state))


def _evidence(state: PageState) -> Iterator[tuple[Evidence, str]]:
    """Each piece with the step that it was found in."""
    asked: Counter[tuple[str, int]] = Counter()
    for item in state.transcript.evidence():
        who = (item.asked_by, item.round)
        asked[who] += 1
        place = "input" if item.asked_by == STEWARD_INPUT else f"round/{item.round}/{item.asked_by}/request"
        yield item, f"{place}/{asked[who]}"


def _read(item: Evidence, step: str) -> Read:
    return Read(
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


def _takes_a_stance(turn: Turn) -> bool:
    return turn.result.failure is None and not turn.ballot


def _stance(turn: Turn) -> StanceTaken:
    bare = StanceTaken(turn.role, turn.round, advocate=turn.advocate)
    if turn.stance is None:
        return bare
    stance = turn.stance
    return msgspec.structs.replace(
        bare,
        key=stance.key,
        position=stance.position,
        confidence=stance.confidence,
        evidence=stance.evidence,
        would_change=stance.would_change,
    )


def _withheld(
    stances: tuple[StanceTaken, ...], changes: tuple[MindChanged, ...]
) -> tuple[tuple[StanceTaken, ...], tuple[MindChanged, ...]]:
    """Who stood where, without the words: those went with the decision that they led to."""
    keys = {stance.position: stance.key for stance in stances}
    numbers = {key: number for number, key in enumerate(dict.fromkeys(filter(None, keys.values())), start=1)}

    def told(position: str) -> str:
        return f"(position {numbers[keys[position]]}, withheld)" if keys.get(position) else "(a position, withheld)"

    replace = msgspec.structs.replace
    return (
        tuple(
            replace(stance, key=told(stance.position), position=told(stance.position), would_change="")
            if stance.key
            else stance
            for stance in stances
        ),
        tuple(replace(change, before=told(change.before), after=told(change.after)) for change in changes),
    )


def _mended(state: PageState) -> Iterator[Mended]:
    for turn in state.transcript.turns():
        if turn.repair not in _READ_AS_IT_CAME or turn.fault:
            step = f"round/{turn.round}/{turn.role}"
            yield Mended(
                step, turn.role, "ranking" if turn.ballot else "stance", turn.repair, len(turn.repairs), turn.fault
            )
    settled, synthesis = state.settled, state.synthesis
    if settled is not None and synthesis is not None and (settled.repair not in _READ_AS_IT_CAME or settled.fault):
        step = _closing_step(state, synthesis.role)
        yield Mended(step, synthesis.role, "decision record", settled.repair, len(settled.repairs), settled.fault)
