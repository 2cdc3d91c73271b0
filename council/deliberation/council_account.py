"""A deliberation as an account: every call with its step and its price, what was read, who changed its mind. Pure."""

from __future__ import annotations

import msgspec

from council.deliberation.decision_page import build_page
from council.deliberation.page_state import PageState
from council.deliberation.quotations.passages import passages_of
from council.deliberation.transcript import evidence_by_step, flips
from council.llm.base import Source
from council.llm.structured import Repair
from council.turns.account import Account, Mending, MindChange, StanceEntry
from council.turns.costs import priced

# Only what stood around it was taken off.
_READ_AS_IT_CAME: frozenset[Repair] = frozenset({"none", "fences", "prose", "think"})


def account_of(state: PageState, max_rounds: int) -> Account:
    transcript = state.transcript
    ending, settled, synthesis = transcript.ending, transcript.settled, transcript.synthesis
    stances, changes = _minds(state)
    mended = []
    for turn in transcript.turns():
        mended.append(
            Mending(
                turn.step,
                turn.role,
                turn.round,
                "ranking" if turn.ballot else "stance",
                how=turn.repair,
                calls=len(turn.repairs),
                fault=turn.fault,
            )
        )
    if settled is not None and synthesis is not None:
        mended.append(
            Mending(
                synthesis.step,
                synthesis.role,
                0,
                "decision record",
                how=settled.repair,
                calls=len(settled.repairs),
                fault=settled.fault,
            )
        )
    return Account(
        protocol=state.protocol,
        max_rounds=max_rounds,
        roles=tuple(state.roles),
        letters=dict(state.names.letters),
        model=state.answered_by,
        calls=priced(state.calls, state.prices),
        reads=tuple(item.as_read(step) for item, step in evidence_by_step(transcript)),
        sources=tuple(
            Source(found.id, found.path, found.text, found.first_line)
            for item in transcript.evidence()
            for found in passages_of(item)
        ),
        stances=stances,
        changes=changes,
        mended=tuple(each for each in mended if each.how not in _READ_AS_IT_CAME or each.fault),
        written_by=synthesis.role if synthesis else "",
        instead_of=tuple(role for role, _ in transcript.failed_closings()) if synthesis else (),
        stopped=ending.why if ending else "",
        stopped_because=ending.sentence if ending else "",
        calls_saved=ending.calls_saved if ending else 0,
        page=build_page(state),
    )


def _minds(state: PageState) -> tuple[tuple[StanceEntry, ...], tuple[MindChange, ...]]:
    """Of a withheld decision they come without the words that led to it."""
    replace = msgspec.structs.replace
    stances: list[StanceEntry] = []
    for turn in state.transcript.turns():
        if turn.result.failure is None and not turn.ballot:
            taken, stance = StanceEntry(turn.role, turn.round, advocate=turn.advocate), turn.stance
            if stance is not None:
                taken = replace(
                    taken,
                    key=stance.key,
                    position=stance.position,
                    confidence=stance.confidence,
                    evidence=stance.ids,
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

        for at, taken in enumerate(stances):
            if taken.key:
                shown = told(taken.position)
                stances[at] = replace(taken, key=shown, position=shown, would_change="")
        changes = [replace(change, before=told(change.before), after=told(change.after)) for change in changes]
    return tuple(stances), tuple(changes)
