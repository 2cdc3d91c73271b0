"""The result of asking a model, good or bad, and the call that brought it. Data only."""

from __future__ import annotations

from typing import Literal

import msgspec

from council.budgets.budget import BudgetSpent
from council.errors import ModelError
from council.llm.base import AbsentModel, Finish, Usage

CallPurpose = Literal["turn", "repair", "closing", "closing repair", "memory summary", "embedding", "second opinion"]
CLOSING_CALLS: tuple[CallPurpose, ...] = ("closing", "closing repair")  # of the decision, in no round

NO_BUDGET = "budget"
CANCELLED = "cancelled"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason why a call brought nothing: `kind` is the model error's kind, NO_BUDGET or CANCELLED."""

    kind: str
    message: str
    fix: str = ""

    @classmethod
    def of(cls, error: ModelError | BudgetSpent) -> Failure:
        return cls(error.kind if isinstance(error, ModelError) else NO_BUDGET, error.message, error.fix)


class TurnResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Exactly one of `text` (not blank) and `failure` counts. `replaced` were asked before `model`, which answered.
    `thoughts`: the reply held some, which are left out here and so everywhere."""

    text: str
    model: str
    finish: Finish = "stop"
    usage: Usage | None = None
    failure: Failure | None = None
    replaced: tuple[AbsentModel, ...] = ()
    thoughts: bool = False

    @classmethod
    def failed(cls, model: str, error: ModelError | BudgetSpent) -> TurnResult:
        """The result of a call that failed. One that nobody heard of used nothing."""
        used = Usage() if isinstance(error, ModelError) and error.unsent else None
        return cls("", model, usage=used, failure=Failure.of(error))

    @property
    def was_asked(self) -> bool:
        """False where the budget refused the call: no model heard of it."""
        return self.failure is None or self.failure.kind != NO_BUDGET


class ModelCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of a run: the step that recorded it, whose it was, and its result. `round` 0: outside the rounds. `usd` None:
    nobody knows its cost, or nobody has asked yet."""

    step: str
    role: str
    round: int
    result: TurnResult
    purpose: CallPurpose = "turn"
    usd: float | None = None

    @property
    def whose(self) -> str:
        """Completes "It ended with …"."""
        return f"the call of {self.role} in round {self.round}" if self.round else f"the closing call of {self.role}"

    @property
    def was_cut_off(self) -> bool:
        return self.result.failure is not None and self.result.failure.kind == CANCELLED
