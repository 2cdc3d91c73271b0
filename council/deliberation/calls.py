"""The calls of a deliberation to models, each with the step that recorded it and what it was for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from council.deliberation.transcript import Transcript
from council.turns.evidence import STEWARD_INPUT, Evidence
from council.turns.result import ModelCall, TurnResult


def calls_of(transcript: Transcript, refused: Sequence[ModelCall], beside: Sequence[ModelCall]) -> list[ModelCall]:
    """All calls that were made: of turns and closings with their repairs, those `beside` them, of searches, and those
    that the run ended with. A call that a spent budget forbade was not made."""
    calls: list[ModelCall] = []
    for turn in transcript.turns():
        calls.append(ModelCall(turn.step, turn.role, turn.round, turn.result, "turn"))
        for number, result in enumerate(turn.repairs, start=1):
            calls.append(ModelCall(f"{turn.step}/repair/{number}", turn.role, turn.round, result, "repair"))
    for closing in transcript.closings:
        calls.append(ModelCall(closing.step, closing.role, 0, closing.result, "closing"))
        for number, result in enumerate(closing.repairs, start=1):
            calls.append(ModelCall(f"{closing.step}/repair/{number}", closing.role, 0, result, "closing repair"))
    calls += beside
    for item, step in evidence_by_step(transcript):
        for number, search in enumerate(item.embeddings):
            result = TurnResult("", search.model, usage=search.usage)
            place = f"{step}/embedding/{number}" if number else step
            calls.append(ModelCall(place, item.asked_by, item.round, result, "embedding"))
    return [call for call in (*calls, *refused) if call.result.was_asked]


def evidence_by_step(transcript: Transcript) -> Iterator[tuple[Evidence, str]]:
    """Each piece with the step that it was found in."""
    asked: Counter[tuple[str, int]] = Counter()
    for item in transcript.evidence():
        who = (item.asked_by, item.round)
        asked[who] += 1
        place = "input" if item.asked_by == STEWARD_INPUT else f"round/{item.round}/{item.asked_by}/request"
        yield item, f"{place}/{asked[who]}"
