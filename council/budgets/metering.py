"""Models and embedders that ask a budget before each call, and whose calls end when its seconds are spent. Tokens are
estimated before a call by what providers counted so far."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, Unpack

import msgspec

from council.budgets.budget import Budget
from council.budgets.spend import Reservation
from council.errors import ModelError, StorageFailed
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, Usage
from council.llm.embeddings import Embedder, EmbedderAround, Embeddings, Purpose
from council.storage.marks import mark, set_mark
from council.storage.reader import Looking
from council.storage.store import Store
from council.typed_json import decode_json

log = logging.getLogger(__name__)

_DEFAULT_OUTPUT_TOKENS = 8192
# A note on the cancellation that ended a call: it may be billed, and has no answer.
CALL_CUT_OFF = "a call to a model was under way"
# The provider refused before it worked: the call counts, its tokens do not. Any other failure may have been billed.
_UNBILLED = frozenset({"auth", "billing", "not_found", "request", "rate", "overload", "server"})


Answer = TypeVar("Answer", Reply, Embeddings)


async def _settled(
    call: Awaitable[Answer], budget: Budget, calibration: Calibration, name: str, chars: int, entry: Reservation
) -> Answer:
    usage: Usage | None = None
    made = True
    with budget.watch:
        try:
            answer = await call
            usage = answer.usage
            if usage is not None:
                calibration.learn(name, chars, usage.input_tokens)
            return answer
        except ModelError as error:
            made = not error.unsent
            usage = Usage() if error.kind in _UNBILLED else None
            raise
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(CALL_CUT_OFF)
            raise
        finally:
            if made:
                budget.settle(name, entry, usage)
            else:
                budget.spend.withdraw(entry)


async def timed(budget: Budget, call: Callable[[], Awaitable[Answer]], *, closes: bool = False) -> Answer:
    """Makes a call whose time, with all that it waits for, counts as the run's seconds. It ends when these are spent, unless it
    is the closing call. Raises BudgetSpent then."""
    with budget.watch:
        try:
            async with asyncio.timeout(None if closes else budget.seconds_left()) as limit:
                return await call()
        except TimeoutError:
            if limit.expired():
                raise budget.out_of_time() from None
            raise


class BudgetedModel(ModelAround):
    """A Model that reserves before each call of the inner one, and settles after it."""

    def __init__(
        self, inner: Model, budget: Budget, calibration: Calibration, *, max_output_tokens: int | None
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
        """Embeds like `Embedder.embed`. Raises BudgetSpent."""
        chars = sum(map(len, texts))
        entry = await self._budget.reserve(self.name, self._calibration.tokens(self.name, chars), 0, closing=False)
        call = self._inner.embed(texts, purpose=purpose)
        return await _settled(call, self._budget, self._calibration, self.name, chars, entry)


class TimedModel(ModelAround):
    """A Model whose calls, with all that they wait for, count as the run's seconds. They end when those are spent. The
    closing call alone is made then."""

    def __init__(self, inner: Model, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """Generates like `Model.generate`. Raises BudgetSpent, for a call under way too."""
        return await timed(self._budget, lambda: self._inner.generate(messages, **asked), closes=_is_closing(asked))


def _is_closing(asked: RequestOptions) -> bool:
    info = asked.get("info")
    return info is not None and info.closes


_MARK = "calibration"
_FIRST_CHARS_PER_TOKEN = 3.0  # the safe side before anything is measured: prose has four to five, code three
_CALIBRATION_WEIGHT = 0.2  # of each new measurement: a few calls settle it, one odd one does not upset it
_LEAST_CHARS_PER_TOKEN, _MOST_CHARS_PER_TOKEN = 1.0, 8.0  # beyond them a count is none of the text
_MARGIN = 1.15  # estimates are a little high: a reservation that is too small would break the promise


class Calibration:
    """Characters per token, per model, learnt from what providers count, and remembered."""

    def __init__(self, store: Looking) -> None:
        """Raises StorageFailed."""
        learnt = decode_json(mark(store, _MARK) or "{}", dict[str, float])
        self._chars_per_token = {model: _plausible(value) for model, value in learnt.items()}

    def tokens(self, model: str, chars: int) -> int:
        """The most tokens that `chars` characters are, as far as is known."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(chars / per_token * _MARGIN) + 1

    def chars(self, model: str, tokens: int) -> int:
        """The most characters that fit into `tokens` tokens, by the same estimate."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(max(0, tokens - 1) * per_token / _MARGIN)

    def learn(self, model: str, chars: int, tokens: int) -> None:
        if tokens <= 0 or chars <= 0:
            return
        measured = chars / tokens
        known = self._chars_per_token.get(model)
        value = measured if known is None else known + _CALIBRATION_WEIGHT * (measured - known)
        self._chars_per_token[model] = _plausible(value)

    def save(self, store: Store) -> None:
        """A failure is only logged: the next start estimates on the safe side again."""
        try:
            set_mark(store, _MARK, msgspec.json.encode(self._chars_per_token).decode())
        except StorageFailed as error:
            log.warning("token counts could not be saved: %s", error)


def _plausible(chars_per_token: float) -> float:
    return min(_MOST_CHARS_PER_TOKEN, max(_LEAST_CHARS_PER_TOKEN, chars_per_token))
