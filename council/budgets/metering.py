"""Models and embedders that ask a budget before each call, and whose calls end when its seconds are spent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from council.budgets.budget import CLOSING, Budget
from council.budgets.calibration import Calibration
from council.budgets.spend import Reserved
from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, Usage
from council.llm.embeddings import Embedder, EmbedderAround, Embeddings, Purpose

_DEFAULT_OUTPUT_TOKENS = 8192
# A note on the cancellation that ended a call: it may be billed, and has no answer.
CALL_CUT_OFF = "a call to a model was under way"
# The provider refused before it worked: the call counts, its tokens do not. Any other failure may have been billed.
_UNBILLED = frozenset({"auth", "billing", "not_found", "request", "rate", "overload", "server"})


Answer = TypeVar("Answer", Reply, Embeddings)


async def _settled(
    call: Awaitable[Answer], budget: Budget, calibration: Calibration, name: str, chars: int, entry: Reserved
) -> Answer:
    """Makes a call of that many characters, and settles what was reserved for it, whatever becomes of it."""
    usage: Usage | None = None
    with budget.watch:
        try:
            answer = await call
            usage = answer.usage
            if usage is not None:
                calibration.learn(name, chars, usage.input_tokens)
            return answer
        except ModelError as error:
            usage = Usage() if error.kind in _UNBILLED else None
            raise
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(CALL_CUT_OFF)
            raise
        finally:
            budget.settle(name, entry, usage)


@asynccontextmanager
async def _timed(budget: Budget, left_s: float | None) -> AsyncIterator[None]:
    """Counts the block as the run's seconds, and ends it after `left_s`. Raises BudgetSpent then."""
    with budget.watch:
        try:
            async with asyncio.timeout(left_s) as limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise budget.out_of_time() from None
            raise


class BudgetedModel(ModelAround):
    """A Model that reserves before each call of the inner one, and settles after it."""

    def __init__(
        self,
        inner: Model,
        budget: Budget,
        calibration: Calibration,
        *,
        max_output_tokens: int | None,
    ) -> None:
        super().__init__(inner)
        self._budget = budget
        self._calibration = calibration
        self._max_output_tokens = max_output_tokens or _DEFAULT_OUTPUT_TOKENS

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        chars = len(asked["system"]) + sum(len(message.text) for message in messages)
        output_tokens = asked.get("max_output_tokens") or self._max_output_tokens
        budget, input_tokens = self._budget, self._calibration.tokens(self.name, chars)
        closing = _is_closing(asked)
        if not closing:
            budget.set_aside(input_tokens, output_tokens)
        entry = await budget.reserve(self.name, input_tokens, output_tokens, closing=closing)
        if entry.tokens - input_tokens < output_tokens:
            asked["max_output_tokens"] = max(1, entry.tokens - input_tokens)
        call = self._inner.generate(messages, **asked)
        return await _settled(call, budget, self._calibration, self.name, chars, entry)


class BudgetedEmbedder(EmbedderAround):
    """An Embedder that reserves before each call of the inner one, and settles after it."""

    def __init__(self, inner: Embedder, budget: Budget, calibration: Calibration) -> None:
        super().__init__(inner)
        self._budget = budget
        self._calibration = calibration

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """As `Embedder.embed`. Raises BudgetSpent."""
        chars = sum(map(len, texts))
        entry = await self._budget.reserve(self.name, self._calibration.tokens(self.name, chars), 0, closing=False)
        call = self._inner.embed(texts, purpose=purpose)
        return await _settled(call, self._budget, self._calibration, self.name, chars, entry)


class TimedEmbedder(EmbedderAround):
    """An Embedder whose calls, with all that they wait for, count as the run's seconds, and end when those are spent."""

    def __init__(self, inner: Embedder, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """As `Embedder.embed`. Raises BudgetSpent, for a call under way too."""
        async with _timed(self._budget, self._budget.seconds_left()):
            return await self._inner.embed(texts, purpose=purpose)


class TimedModel(ModelAround):
    """A Model whose calls, with all that they wait for, count as the run's seconds, and end when those are spent: all but
    the closing call, which is made then."""

    def __init__(self, inner: Model, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """As `Model.generate`. Raises BudgetSpent, for a call under way too."""
        async with _timed(self._budget, None if _is_closing(asked) else self._budget.seconds_left()):
            return await self._inner.generate(messages, **asked)


def _is_closing(asked: RequestOptions) -> bool:
    info = asked.get("info")
    return info is not None and info.purpose == CLOSING
