"""The waits of a run: for a provider, and for the network."""

from __future__ import annotations

from council.engine.runs import NETWORK, PROVIDER, Run, RunPause
from council.errors import ModelError, ModelErrorKind

UNREACHABLE: ModelErrorKind = "unreachable"
_NETWORK_PAUSE_S, _MAX_NETWORK_PAUSE_S = 5.0, 300.0  # a laptop that wakes is back in seconds; a failed line takes hours
_DEFAULT_RATE_WAIT_S = 60.0  # a rate limit without Retry-After: providers count by the minute


class Postponement(Exception):
    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def parked(run: Run, error: ModelError) -> RunPause:
    """The wait of a run for what a call was postponed for. Nobody says when a network is back: the pauses grow."""
    if error.kind == UNREACHABLE:
        earlier = sum(wait.reason == NETWORK for wait in run.waits)
        return RunPause(NETWORK, min(_NETWORK_PAUSE_S * 2.0 ** min(earlier, 16), _MAX_NETWORK_PAUSE_S), error)
    return RunPause(PROVIDER, error.retry_after_s or _DEFAULT_RATE_WAIT_S, error)
