"""`RetryingModel`: another attempt where one can help, with the provider's own waiting time, and never without a bound.

Wraps any `Model`; `Retries` is the same for any other call. Does not decide what happens to a run whose model stays
away: the last error leaves as it came, with its `retry_after_s`, and the engine parks the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypedDict, TypeVar, Unpack

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, OnText, Reply, RequestOptions, Restartable, restart

OnRetry = Callable[[ModelError, int, float], None]
T = TypeVar("T")


class RetryOptions(TypedDict, total=False):
    """As in `Retries`."""

    attempts: int
    max_wait_s: float
    initial_wait_s: float
    on_retry: OnRetry | None
    sleep: Callable[[float], Awaitable[None]]


class RetryingModel(ModelAround):
    """`inner`, called again (`Retries`) for errors that are `retryable`.

    `on_text`: an attempt whose text has begun to show is repeated only for a listener that can take words back
    (`Restartable`).
    """

    def __init__(self, inner: Model, **how: Unpack[RetryOptions]) -> None:
        super().__init__(inner)
        self._retries = Retries(**how)

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """As `Model.generate`; raises the last attempt's ModelError."""
        on_text = asked.get("on_text")
        shown = _Shown(on_text) if on_text is not None and not isinstance(on_text, Restartable) else None
        if shown is not None:
            asked["on_text"] = shown

        async def attempt() -> Reply:
            restart(on_text)
            return await self._inner.generate(messages, **asked)

        return await self._retries(attempt, lambda: not (shown is not None and shown.begun))


class Retries:
    """Repeats a call up to `attempts` times in all (at least 1), with waits between.

    The wait is the larger of the backoff (`initial_wait_s`, doubled per attempt, at most `max_wait_s`) and the
    provider's `retry_after_s`. Where the provider asks for more than `max_wait_s` there is no wait: the error leaves
    at once.

    `on_retry(error, attempt, wait_s)` is told before each wait; `attempt` is the one that failed, from 1.
    """

    def __init__(
        self,
        *,
        attempts: int = 3,
        max_wait_s: float = 60,
        initial_wait_s: float = 1.0,
        on_retry: OnRetry | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._attempts = attempts
        self._max_wait_s = max_wait_s
        self._initial_wait_s = initial_wait_s
        self._on_retry = on_retry
        self._sleep = sleep

    async def __call__(self, attempt: Callable[[], Awaitable[T]], may_repeat: Callable[[], bool] = lambda: True) -> T:
        """What `attempt` gives in the end. Raises its last ModelError."""
        try:
            return await attempt()  # nearly always enough, and the machinery below costs as much as a turn's record
        except ModelError as error:
            if not (self._can_help(error) and may_repeat()):
                raise
            first = [error]

        async def again() -> T:
            if first:
                raise first.pop()
            return await attempt()

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda exc: self._can_help(exc) and may_repeat()),
            stop=stop_after_attempt(self._attempts),
            wait=self._wait_s,
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(again)

    def _can_help(self, exc: BaseException) -> bool:
        return isinstance(exc, ModelError) and exc.retryable and (exc.retry_after_s or 0.0) <= self._max_wait_s

    def _wait_s(self, state: RetryCallState) -> float:
        # The exponent is bounded so that many attempts cannot overflow a float.
        backoff_s = self._initial_wait_s * 2.0 ** min(state.attempt_number - 1, 32)
        asked_s = getattr(_error_of(state), "retry_after_s", None) or 0.0
        return max(min(backoff_s, self._max_wait_s), asked_s)

    def _tell(self, state: RetryCallState) -> None:
        error = _error_of(state)
        if self._on_retry is not None and isinstance(error, ModelError):
            self._on_retry(error, state.attempt_number, state.upcoming_sleep)


class _Shown:
    """Passes text on and remembers that some was shown."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self.begun = False

    def __call__(self, piece: str) -> None:
        self.begun = True
        self._on_text(piece)


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
