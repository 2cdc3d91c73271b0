"""Calls that a run ended with: a fatal error, or a cancel that cut them off.

A key, a bill or a model that is wrong is wrong for every further call. The purpose of such a call stays open, so that a
resumed run asks it again. The call itself is recorded, so that it counts where it was the last.
"""

from __future__ import annotations

from itertools import count, takewhile

import msgspec

from council.agents.turn import Failure, TurnResult
from council.engine.journal import Journal
from council.llm.base import TurnInfo

CANCELLED = "cancelled"


class RefusedCall(msgspec.Struct, frozen=True):
    """`step` is what was asked for; `round` 0: the closing call, or one of its repairs."""

    step: str
    role: str
    round: int
    result: TurnResult

    @property
    def whose(self) -> str:
        """For "It ended with …"."""
        return f"the call of {self.role} in round {self.round}" if self.round else f"the closing call of {self.role}"

    @property
    def was_cut_off(self) -> bool:
        """By somebody who cancelled the run."""
        return self.result.failure is not None and self.result.failure.kind == CANCELLED


async def note(journal: Journal, step: str, model: str, info: TurnInfo, failure: Failure) -> RefusedCall:
    """Records it. Raises StorageFailed."""
    round_no = 0 if step.startswith("synthesis") else info.round
    refused = RefusedCall(step, info.role, round_no, TurnResult("", model, failure=failure))
    free = next(name for name in _names(step) if not journal.recorded(name))
    return await journal.put(free, refused, type=RefusedCall)


def last(journal: Journal, step: str) -> RefusedCall | None:
    """The last try of a step that a run ended without; None where it has an answer, or was not asked."""
    if not journal.closed or journal.recorded(step):
        return None
    tries = list(takewhile(journal.recorded, _names(step)))
    return journal.result(tries[-1], RefusedCall) if tries else None


def _names(step: str) -> map[str]:
    return map(f"{step}/refused/{{}}".format, count(1))
