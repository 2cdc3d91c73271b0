"""When a deliberation may end before its last round, and why: structured stances and evidence decide, never the sound of
the words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from council.deliberation.stance import folded
from council.deliberation.transcript import Transcript, Turn

Why = Literal["unanimity", "no_new_information", "repeated_turn", "budget", "cap"]


class Ending(msgspec.Struct, frozen=True):
    """Why the rounds ended, in a word and a sentence; `calls_saved` are turns that did not have to take place."""

    why: Why
    sentence: str
    calls_saved: int = 0


def reason_to_end(transcript: Transcript, roles: Sequence[str]) -> tuple[Why, str] | None:
    """Why no further turn is needed, None while one is. Nothing ends before a devil's advocate has spoken."""
    turns = transcript.turns()
    if not any(turn.advocate and turn.result.failure is None for turn in turns):
        return None
    if is_unanimous(transcript, roles):
        return "unanimity", f"all {len(roles)} members hold the same position, and each names evidence for it"
    repeated = _repeated(turns)
    if repeated is not None:
        return "repeated_turn", f"{repeated.role} said in round {repeated.round} what it had said before, word for word"
    if _brought_nothing(transcript, roles):
        return (
            "no_new_information",
            f"round {turns[-1].round} brought no new evidence and moved no position",
        )
    return None


def agree(transcript: Transcript, roles: Sequence[str]) -> bool:
    """True when every member stated the same position last."""
    stances = [transcript.last_stances().get(role) for role in roles]
    stated = [stance for stance in stances if stance is not None]
    return len(stated) == len(roles) and len({stance.key for stance in stated}) == 1


def is_unanimous(transcript: Transcript, roles: Sequence[str]) -> bool:
    """`agree`, and each names evidence."""
    stances = transcript.last_stances()
    return agree(transcript, roles) and all(stance is not None and stance.evidence for stance in stances.values())


def _repeated(turns: Sequence[Turn]) -> Turn | None:
    """The first turn in which an agent only repeats itself, words, position and evidence."""
    said: dict[str, set[str]] = {}
    for turn in turns:
        if turn.result.failure is not None:
            continue
        stance = turn.stance
        text = "\n".join([folded(turn.result.text), stance.key if stance else "", *(stance.evidence if stance else ())])
        if text in said.setdefault(turn.role, set()):
            return turn
        said[turn.role].add(text)
    return None


def _brought_nothing(transcript: Transcript, roles: Sequence[str]) -> bool:
    """True after a whole round without new evidence in which every stance was stated and none moved or cites more."""
    last_round = max((turn.round for turn in transcript.turns()), default=0)
    spoken = [turn for turn in transcript.turns() if turn.round == last_round]
    answered = [turn for turn in spoken if turn.result.failure is None]
    if {turn.role for turn in spoken} != set(roles) or not answered:
        return False
    if any(item.id and item.round == last_round for item in transcript.evidence()):
        return False
    return all(_stayed(turn, transcript.turns()) for turn in answered)


def _stayed(turn: Turn, turns: Sequence[Turn]) -> bool:
    earlier = [other.stance for other in turns if other.role == turn.role and other.round < turn.round and other.stance]
    if turn.stance is None or not earlier:
        return False
    cited = {name for stance in earlier for name in stance.evidence}
    return earlier[-1].key == turn.stance.key and cited.issuperset(turn.stance.evidence)
