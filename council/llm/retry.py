"""Another attempt, another form, another model. `RetryingModel` asks again where that can help, with the provider's own
waiting time, and never without a bound; the last error leaves as it came, and the engine parks the run. `JsonModeModel`
asks the same without a schema. `FallbackModel` asks another model where the one that was asked cannot answer now, said so by
name and reason. Only what time or another provider can mend falls back: another model would only hide a refused key or a
blocked text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, Unpack

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from council.errors import ModelError, ModelErrorKind
from council.llm.base import AbsentModel, Message, Model, ModelAround, Reply, RequestOptions, Restartable, restart

WITHOUT_SCHEMA = "without_schema"  # in the data of an error: the provider itself has asked without one already

OnRetry = Callable[[ModelError, int, float], None]
T = TypeVar("T")


class RetryingModel(ModelAround):
    """An attempt whose text has begun to show is repeated only for a listener that can take words back (`Restartable`)."""

    def __init__(self, inner: Model, retries: Retries) -> None:
        super().__init__(inner)
        self._retries = retries

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
    `retry_after_s`; where that is more than `max_wait_s`, the error leaves at once, and so does one of a kind that is
    `not_repeated`. `on_retry(error, attempt, wait_s)` is told before each wait. An error is `unsent` only where no attempt was
    heard: an earlier one may have been billed."""

    attempts: int = 3
    max_wait_s: float = 60
    initial_wait_s: float = 1.0
    not_repeated: frozenset[ModelErrorKind] = frozenset()
    on_retry: OnRetry | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, attempt: Callable[[], Awaitable[T]], may_repeat: Callable[[], bool] = lambda: True) -> T:
        def helps(error: BaseException) -> bool:
            return (
                isinstance(error, ModelError)
                and error.retryable
                and error.kind not in self.not_repeated
                and _asked_s(error) <= self.max_wait_s
                and may_repeat()
            )

        def wait_s(state: RetryCallState) -> float:
            backoff_s = self.initial_wait_s * 2.0 ** min(state.attempt_number - 1, 32)  # bounded: a float overflows
            return max(min(backoff_s, self.max_wait_s), _asked_s(_error_of(state)))

        heard = False

        def tell(state: RetryCallState) -> None:
            nonlocal heard
            heard = heard or not _error_of(state).unsent
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
        try:
            return await retrying(again)
        except ModelError as error:
            error.data["unsent"] = error.unsent and not heard
            raise


def _error_of(state: RetryCallState) -> ModelError:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, ModelError), "no other is retried"
    return error


def _asked_s(error: ModelError) -> float:
    return error.retry_after_s or 0.0


_PASSED_OVER_S = 60.0  # a model that could not be reached: many turns are done by then, and the network may be back
FALLS_BACK: frozenset[ModelErrorKind] = frozenset({"overload", "server", "rate", "network", "unreachable", "timeout"})


def with_fallbacks(models: Sequence[Model], monotonic_s: Callable[[], float], retries: Retries) -> Model:
    """Each with its retries. All but the last hand a call that found no way to their machine on at once: another model
    answers sooner than a network comes back."""
    *before, last = models
    hurried = replace(retries, not_repeated=frozenset({"unreachable"}))
    chain = [*(RetryingModel(model, hurried) for model in before), RetryingModel(last, retries)]
    return FallbackModel(chain, monotonic_s) if before else chain[0]


class FallbackModel:
    """Several models as one, asked in their order; it goes by the name of the first, and a reply names who gave it. One that
    could not be reached is passed over for a minute, as long as another one answers. `context_tokens` is that of the
    smallest, so that no request is too long for another."""

    def __init__(self, models: Sequence[Model], monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._unreachable: dict[Model, tuple[float, ModelError]] = {}  # until when each is passed over, and why
        self._models = tuple(models)
        self.name = models[0].name
        self.context_tokens = min(model.context_tokens for model in models)

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """The first answer. Raises the first model's ModelError, with what the others said, when none gives one."""
        failures: dict[Model, ModelError] = {}
        models = [*self._models]
        for model in models:
            until_s, known = self._unreachable.get(model, (0.0, None))
            if known is not None and self._monotonic_s() < until_s and model not in failures:
                failures[model] = known
                models.append(model)  # its turn comes where nobody else answers
                continue
            if failures:
                restart(asked.get("on_text"))
            try:
                reply = await model.generate(messages, **asked)
            except ModelError as error:
                if not failures and error.kind not in FALLS_BACK:
                    raise
                failures[model] = error
                if error.kind == "unreachable":
                    self._unreachable[model] = self._monotonic_s() + _PASSED_OVER_S, error
                continue
            failures.pop(model, None)
            self._unreachable.pop(model, None)
            replaced = tuple(AbsentModel(failed.name, error.kind, error.message) for failed, error in failures.items())
            return msgspec.structs.replace(reply, replaced=replaced) if replaced else reply
        self._unreachable.clear()
        # The first one's error: what it says to do is what helps. A wait is as long as the shortest that anybody asks for.
        (_, first), *others = failures.items()
        if not others:
            raise first
        told = " ".join(f"Fallback {model.name}: {error.message}" for model, error in others)
        waits = [error.retry_after_s for error in failures.values() if error.retry_after_s is not None]
        raise ModelError(
            first.kind,
            f"{first.message} {told}",
            fix=first.fix,
            retry_after_s=min(waits, default=None),
            model=first.model,
        )

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()
