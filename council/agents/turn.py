"""One turn of one agent: a request to its model, and what came back, good or bad.

A failed call is a result (`failure`), so that it is recorded and a resumed run sees the same; errors that every further
call would meet, and waits longer than a turn may take, are raised instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from council.errors import ModelError
from council.llm.base import Finish, Message, Model, TurnInfo, Usage


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a turn brought nothing: `kind` is the model error's kind."""

    kind: str
    message: str
    fix: str = ""


class TurnResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent said. Exactly one of `text` (not blank) and `failure` counts."""

    text: str
    model: str
    finish: Finish = "stop"
    usage: Usage | None = None
    failure: Failure | None = None


class ProviderBusy(Exception):
    """The provider asks to come back later than a turn may wait."""

    def __init__(self, error: ModelError, seconds: float) -> None:
        super().__init__(error.message)
        self.error = error
        self.seconds = seconds


_DEFAULT_RATE_WAIT_S = 60.0  # a rate limit without Retry-After: providers count by the minute


async def take_turn(
    model: Model, *, system: str, messages: Sequence[Message], info: TurnInfo, max_output_tokens: int | None = None
) -> TurnResult:
    """Asks the model once (retries are the model's own business).

    Raises ModelError when it is fatal (key, billing, unknown model, malformed request), ProviderBusy when a rate limit
    outlasts the retries.
    """
    try:
        reply = await model.generate(messages, system=system, max_output_tokens=max_output_tokens, info=info)
    except ModelError as error:
        if error.fatal:
            raise
        if error.kind in ("rate", "overload") and (error.kind == "rate" or error.retry_after_s is not None):
            raise ProviderBusy(error, error.retry_after_s or _DEFAULT_RATE_WAIT_S) from error
        return TurnResult("", model.name, failure=Failure(error.kind, error.message, error.fix))
    return TurnResult(reply.text.strip(), reply.model, reply.finish, reply.usage)
