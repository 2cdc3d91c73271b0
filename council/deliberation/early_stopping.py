"""Reasons to end a deliberation before its last round. Stances and evidence decide, never the sound of the words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from council.deliberation.stance import Stance, folded
from council.deliberation.transcript import Transcript, Why, unexplained


def reason_to_end(
    transcript: Transcript, roles: Sequence[str], *, evidence_round_due: bool = False
) -> tuple[Why, str] | None:
    """None while a turn is needed. Nothing ends before a devil's advocate has spoken. `evidence_round_due`: the next
    round asks for evidence where positions differ, so that nothing else ends a dispute."""
    turns = transcript.turns()
    if not any(turn.advocate and turn.result.failure is None for turn in turns):
        return None
    if is_unanimous(transcript, roles):
        return "unanimity", f"all {len(roles)} members hold the same position, and each names evidence for it"
    if evidence_round_due and disagree(transcript):
        return None
    last_round = max(turn.round for turn in turns)
    newest = [turn for turn in turns if turn.round == last_round]
    answered = [turn for turn in newest if turn.result.failure is None]
    if {turn.role for turn in newest} != set(roles) or not answered:
        return None
    said: dict[str, set[str]] = {}
    stood: dict[str, list[Stance]] = {}
    repeats: dict[str, bool] = {}
    stayed: dict[str, bool] = {}  # it stated a stance that did not move and cites nothing more
    for turn in turns:
        if turn.result.failure is not None:
            continue
        text, stance = folded(turn.result.text), turn.stance
        whole = "\n".join([text, stance.key if stance else "", *(sorted(stance.ids) if stance else ())])
        if turn.round == last_round:
            spoke, before = stance is None or text != stance.key, stood.get(turn.role, [])
            repeats[turn.role] = spoke and whole in said.get(turn.role, set())
            cited = {name for earlier in before for name in earlier.ids}
            same = stance is not None and bool(before) and before[-1].key == stance.key
            stayed[turn.role] = same and stance is not None and cited.issuperset(stance.ids)
        said.setdefault(turn.role, set()).add(whole)
        stood.setdefault(turn.role, []).extend([stance] if stance else [])
    if all(repeats.values()):
        who = "every member" if len(roles) > 1 else roles[0]
        return "repeated_turn", f"in round {turns[-1].round} {who} said what it had said before, word for word"
    new = any(item.id and item.round == last_round for item in transcript.evidence())
    if not new and all(stayed.values()):
        what = f"round {turns[-1].round} brought no new evidence and moved no position"
        return "no_new_information", "; ".join(filter(None, (what, still_open(transcript))))
    return None


def disagree(transcript: Transcript) -> bool:
    return _different(transcript) > 1


def still_open(transcript: Transcript) -> str:
    return f"{_different(transcript)} positions are still open" if disagree(transcript) else ""


def _different(transcript: Transcript) -> int:
    return len({held.stance.key for held in transcript.positions().values()})


def is_unanimous(transcript: Transcript, roles: Sequence[str]) -> bool:
    """True when every member stated the same position last, with evidence for it. A change that no new evidence
    explains is conformity, and one alone agrees with nobody."""
    last = {turn.role: turn.stance for turn in transcript.turns() if turn.result.failure is None and not turn.ballot}
    stances = [stance for stance in map(last.get, roles) if stance is not None and stance.ids]
    agree = len(stances) == len(roles) > 1 and len({stance.key for stance in stances}) == 1
    return agree and not unexplained(transcript)
