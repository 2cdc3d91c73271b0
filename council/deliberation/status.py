"""The status of a deliberation: when it is degraded, and not succeeded. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from council.deliberation.stances_page import unread
from council.deliberation.transcript import Transcript
from council.engine.records import RunStatus
from council.engine.runs import Finish
from council.turns.evidence import Evidence
from council.turns.requests import ECHOED, answered_in, target_of
from council.turns.result import ModelCall


def status_of(transcript: Transcript, calls: Sequence[ModelCall], finish: Finish) -> RunStatus:
    if finish.cancelled:
        return "cancelled"
    if finish.error is not None:
        return "failed"
    turns, settled = transcript.turns(), transcript.settled
    degraded = (  # something that was to be there is missing, or came from somebody else
        any(turn.result.failure is not None for turn in turns)
        or any(not item.ok for item in transcript.inputs)
        or any(not answered for _, answered in refused_echoes(transcript))
        or any(unread(turns))
        or is_unranked(transcript)
        or transcript.synthesis is None
        or bool(transcript.failed_closings())
        or any(call.result.replaced for call in calls)
        or is_cut_off(transcript)
        or bool(transcript.stopped)
        or (settled is not None and bool(settled.fault or settled.failed_repairs))
    )
    return "degraded" if degraded else "succeeded"


def refused_echoes(transcript: Transcript) -> list[tuple[Evidence, bool]]:
    """True where somebody got that file or answer in the run."""
    evidence = transcript.evidence()
    answered = answered_in(evidence)
    refused = (item for item in evidence if item.error_code == ECHOED)
    return [(item, target_of(item.action, item.argument) in answered) for item in refused]


def is_unranked(transcript: Transcript) -> bool:
    """True when all ballots of a review came back and none could be read."""
    ballots = [turn for turn in transcript.turns() if turn.ballot and turn.result.failure is None]
    return bool(ballots) and not any(turn.ranking for turn in ballots)


def is_cut_off(transcript: Transcript) -> bool:
    results = [turn.result for turn in transcript.turns()]
    if not (transcript.settled and transcript.settled.record):  # a record that was read is whole
        results += [closing.result for closing in transcript.closings]
    return any(result.finish == "length" and result.failure is None for result in results)
