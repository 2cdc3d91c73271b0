"""Models and embedders that ask a budget before each call, and whose calls end when its seconds are spent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Unpack

from council.budgets.budget import CLOSING, Budget
from council.budgets.calibration import Calibration
from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, Usage
from council.llm.embeddings import Embedder, EmbedderAround, Embeddings, Purpose

_DEFAULT_OUTPUT_TOKENS = 8192
# A note on the cancellation that ended a call: it may be billed, and has no answer.
CALL_CUT_OFF = "a call to a model was under way"
# The provider refused before it worked: the call counts, its tokens do not. Any other failure may have been billed.
_UNBILLED = frozenset({"auth", "billing", "not_found", "request", "rate", "overload", "server"})


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
        info, name = asked.get("info"), self.name
        chars = len(asked["system"]) + sum(len(message.text) for message in messages)
        output_tokens = asked.get("max_output_tokens") or self._max_output_tokens
        closing = info is not None and info.purpose == CLOSING
        budget, input_tokens = self._budget, self._calibration.tokens(name, chars)
        if not closing:
            budget.set_aside(input_tokens, output_tokens)
        entry = await budget.reserve(name, input_tokens, output_tokens, closing=closing)
        if entry.tokens - input_tokens < output_tokens:
            asked["max_output_tokens"] = max(1, entry.tokens - input_tokens)
        usage: Usage | None = None
        with budget.watch:
            try:
                reply = await self._inner.generate(messages, **asked)
                usage = reply.usage
                if usage is not None:
                    self._calibration.learn(name, chars, usage.input_tokens)
                return reply
            except ModelError as error:
                usage = Usage() if error.kind in _UNBILLED else None
                raise
            except asyncio.CancelledError as cancelled:
                cancelled.add_note(CALL_CUT_OFF)
                raise
            finally:
                budget.settle(name, entry, usage)


class BudgetedEmbedder(EmbedderAround):
    """An Embedder that reserves before each call of the inner one, and settles after it."""

    def __init__(self, inner: Embedder, budget: Budget, calibration: Calibration) -> None:
        super().__init__(inner)
        self._budget = budget
        self._calibration = calibration

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """As `Embedder.embed`. Raises BudgetSpent."""
        budget, chars = self._budget, sum(map(len, texts))
        entry = await budget.reserve(self.name, self._calibration.tokens(self.name, chars), 0, closing=False)
        usage: Usage | None = None
        with budget.watch:
            try:
                embedded = await self._inner.embed(texts, purpose=purpose)
                usage = embedded.usage
                if usage is not None:
                    self._calibration.learn(self.name, chars, usage.input_tokens)
                return embedded
            except ModelError as error:
                usage = Usage() if error.kind in _UNBILLED else None
                raise
            finally:
                budget.settle(self.name, entry, usage)


class TimedEmbedder(EmbedderAround):
    """An Embedder whose calls, with all that they wait for, count as the run's seconds, and end when those are spent."""

    def __init__(self, inner: Embedder, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """As `Embedder.embed`. Raises BudgetSpent, for a call under way too."""
        budget = self._budget
        with budget.watch:
            try:
                async with asyncio.timeout(budget.seconds_left()) as limit:
                    return await self._inner.embed(texts, purpose=purpose)
            except TimeoutError:
                if limit.expired():
                    raise budget.out_of_time() from None
                raise


class TimedModel(ModelAround):
    """A Model whose calls, with all that they wait for, count as the run's seconds, and end when those are spent: all but
    the closing call, which is made then."""

    def __init__(self, inner: Model, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """As `Model.generate`. Raises BudgetSpent, for a call under way too."""
        info, budget = asked.get("info"), self._budget
        closing = info is not None and info.purpose == CLOSING
        with budget.watch:
            try:
                async with asyncio.timeout(None if closing else budget.seconds_left()) as limit:
                    return await self._inner.generate(messages, **asked)
            except TimeoutError:
                if limit.expired():
                    raise budget.out_of_time() from None
                raise
