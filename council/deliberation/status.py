"""The status of a deliberation: when it is degraded, and not succeeded. Pure."""

from __future__ import annotations

from council.deliberation.page_state import PageState
from council.deliberation.stances_page import unread
from council.engine.records import RunStatus


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
        or is_unranked(state)
        or state.synthesis is None
        or state.failed_closings
        or any(result.replaced for result in state.results())
        or is_cut_off(state)
        or state.stopped
        or (state.settled is not None and state.settled.is_faulty)
    )
    return "degraded" if missing else "succeeded"


def is_unranked(state: PageState) -> bool:
    """True when all ballots of a review came back and none could be read."""
    ballots = [turn for turn in state.transcript.turns() if turn.ballot and turn.result.failure is None]
    return bool(ballots) and not any(turn.ranking for turn in ballots)


def is_cut_off(state: PageState) -> bool:
    """True when a reply that is shown reached its token limit."""
    results = [turn.result for turn in state.transcript.turns()]
    if not (state.settled and state.settled.record):  # a record that was read is whole
        results += [closing.result for closing in state.closings]
    return any(result.finish == "length" and result.failure is None for result in results)
