"""`RetryingModel`: another attempt where one can help, with the provider's own waiting time, and never without a bound.
`JsonModeModel`: the same request without a schema. The last error leaves as it came, and the engine parks the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar, Unpack

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, Restartable, restart

WITHOUT_SCHEMA = "without_schema"  # in the data of an error: the provider itself has asked without one already

OnRetry = Callable[[ModelError, int, float], None]
T = TypeVar("T")


class RetryOptions(TypedDict, total=False):
    attempts: int
    max_wait_s: float
    initial_wait_s: float
    on_retry: OnRetry | None
    sleep: Callable[[float], Awaitable[None]]


class RetryingModel(ModelAround):
    """An attempt whose text has begun to show is repeated only for a listener that can take words back (`Restartable`)."""

    def __init__(self, inner: Model, **how: Unpack[RetryOptions]) -> None:
        super().__init__(inner)
        self._retries = Retries(**how)

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        on_text = asked.get("on_text")
        shown = False  # to a listener that cannot take words back

        def show(piece: str) -> None:
            nonlocal shown
            shown = True
            on_text(piece)  # type: ignore[misc]  # only where there is one

        if on_text is not None and not isinstance(on_text, Restartable):
            asked["on_text"] = show

        async def attempt() -> Reply:
            restart(on_text)
            return await self._inner.generate(messages, **asked)

        return await self._retries(attempt, lambda: not shown)


class JsonModeModel(ModelAround):
    """A request with a `schema` that is refused (kind `request`) is repeated once without it. A server that then takes
    one is not asked by schema again in this process."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._refuses = False

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        if asked.get("schema") is None or self._refuses:
            asked["schema"] = None
            return await self._inner.generate(messages, **asked)
        try:
            return await self._inner.generate(messages, **asked)
        except ModelError as error:
            if error.kind != "request" or error.data.get(WITHOUT_SCHEMA):
                raise
        restart(asked.get("on_text"))
        asked["schema"] = None
        reply = await self._inner.generate(messages, **asked)
        self._refuses = True
        return reply


@dataclass(frozen=True)
class Retries:
    """Repeats a call up to `attempts` times in all. The wait is the larger of the backoff and the provider's
    `retry_after_s`; where that is more than `max_wait_s`, the error leaves at once. `on_retry(error, attempt, wait_s)`
    is told before each wait."""

    attempts: int = 3
    max_wait_s: float = 60
    initial_wait_s: float = 1.0
    on_retry: OnRetry | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, attempt: Callable[[], Awaitable[T]], may_repeat: Callable[[], bool] = lambda: True) -> T:
        def helps(error: BaseException) -> bool:
            return (
                isinstance(error, ModelError)
                and error.retryable
                and _asked_s(error) <= self.max_wait_s
                and may_repeat()
            )

        def wait_s(state: RetryCallState) -> float:
            backoff_s = self.initial_wait_s * 2.0 ** min(state.attempt_number - 1, 32)  # bounded: a float overflows
            return max(min(backoff_s, self.max_wait_s), _asked_s(_error_of(state)))

        def tell(state: RetryCallState) -> None:
            if self.on_retry is not None:
                self.on_retry(_error_of(state), state.attempt_number, state.upcoming_sleep)

        try:
            return await attempt()  # `AsyncRetrying` would cost as much CPU as the rest of the way to a model
        except ModelError as error:
            failed = [error]

        async def again() -> T:
            if failed:  # the first attempt, which is over
                raise failed.pop()
            return await attempt()

        retrying = AsyncRetrying(
            retry=retry_if_exception(helps),
            stop=stop_after_attempt(self.attempts),
            wait=wait_s,
            before_sleep=tell,
            sleep=self.sleep,
            reraise=True,
        )
        return await retrying(again)


def _error_of(state: RetryCallState) -> ModelError:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, ModelError), "no other is retried"
    return error


def _asked_s(error: ModelError) -> float:
    return error.retry_after_s or 0.0
