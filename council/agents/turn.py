"""One turn of one agent: a request to its model, and what came back, good or bad.

A failed call is a result (`failure`), so that it is recorded and a resumed run sees the same. Errors that every further
call would meet, and waits longer than a turn may take, are raised instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from council.budgets.budget import BudgetSpent
from council.errors import ModelError, ReplayMiss
from council.llm.base import Finish, Message, Model, OnText, Replaced, ToolCall, ToolSpec, TurnInfo, Usage
from council.llm.thoughts import without_thoughts
from council.logs import log_context
from council.safety.untrusted import clean

NO_BUDGET = "budget"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a turn brought nothing: `kind` is the model error's kind, or NO_BUDGET."""

    kind: str
    message: str
    fix: str = ""


class TurnResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reply of an agent. Exactly one of `text` (not blank) and `failure` counts. `model` is the one that answered;
    `replaced` are those that were asked before it. `thoughts`: the reply held thoughts, which are left out here and
    so everywhere."""

    text: str
    model: str
    finish: Finish = "stop"
    usage: Usage | None = None
    failure: Failure | None = None
    replaced: tuple[Replaced, ...] = ()
    thoughts: bool = False

    @property
    def was_asked(self) -> bool:
        """False where the budget refused the call: no model heard of it."""
        return self.failure is None or self.failure.kind != NO_BUDGET


class ProviderBusy(Exception):
    """The provider asks to come back later than a turn may wait."""

    def __init__(self, error: ModelError, seconds: float) -> None:
        super().__init__(error.message)
        self.error = error
        self.seconds = seconds


_DEFAULT_RATE_WAIT_S = 60.0  # a rate limit without Retry-After: providers count by the minute


async def take_turn(
    model: Model,
    *,
    system: str,
    messages: Sequence[Message],
    info: TurnInfo,
    schema: Mapping[str, Any] | None = None,
    tools: Sequence[ToolSpec] = (),
    spell: Callable[[ToolCall], str] | None = None,
    on_text: OnText | None = None,
) -> TurnResult:
    """Asks the model once (retries are the model's own business). A native call stands in the text as the request that
    `spell` makes of it, unless it is written there as well. So from here on there is one spelling.

    Raises ModelError when it is fatal (key, billing, unknown model, malformed request), ProviderBusy when a rate limit
    outlasts the retries.
    """
    try:
        with log_context(agent=info.role or None, round=info.round or None):
            reply = await model.generate(
                messages, system=system, schema=schema, tools=tools, on_text=on_text, info=info
            )
    except ModelError as error:
        if error.fatal:
            raise
        if error.kind in ("rate", "overload") and (error.kind == "rate" or error.retry_after_s is not None):
            raise ProviderBusy(error, error.retry_after_s or _DEFAULT_RATE_WAIT_S) from error
        return TurnResult("", model.name, failure=Failure(error.kind, error.message, error.fix))
    said = clean(reply.text).strip()  # without what nobody sees
    text = without_thoughts(said).strip()
    thoughts = text != said
    if spell is not None:
        calls = dict.fromkeys(clean(spell(call)) for call in reply.tool_calls)
        text = "\n\n".join(part for part in (text, *(call for call in calls if call not in text)) if part)
    failure = None
    if thoughts and not text:
        cut = reply.finish == "length"
        what = "was cut off before its thoughts ended" if cut else "held nothing but thoughts"
        fix = "raise `max_output_tokens`" if cut else "reword the task or name another model"
        failure = Failure("length" if cut else "empty", f"the reply of {reply.model} {what}.", fix)
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    return TurnResult(text, reply.model, finish, reply.usage, failure, reply.replaced, thoughts)


async def attempt_turn(
    model: Model, *, system: str, messages: Sequence[Message], info: TurnInfo, schema: Mapping[str, Any] | None = None
) -> TurnResult:
    """`take_turn` for what no run is lost over: whatever goes wrong is a result. Raises ReplayMiss: nobody was asked."""
    try:
        return await take_turn(model, system=system, messages=messages, info=info, schema=schema)
    except ReplayMiss:
        raise
    except ProviderBusy as busy:
        failure = Failure(busy.error.kind, busy.error.message, busy.error.fix)
    except ModelError as error:
        failure = Failure(error.kind, error.message, error.fix)
    except BudgetSpent as spent:
        failure = Failure(NO_BUDGET, spent.message, spent.fix)
    return TurnResult("", model.name, failure=failure)
