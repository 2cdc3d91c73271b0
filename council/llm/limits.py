"""One bucket per provider, shared by all runs: how many calls at once, how many a minute, and a pause all respect.

When the provider says Retry-After to one call, every call waits: it was the provider that is busy, not the run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Unpack

from council.errors import ModelError
from council.ids import Clock
from council.llm.base import Asked, Message, Model, ModelAround, Reply

_MINUTE_S = 60.0
Sleep = Callable[[float], Awaitable[None]]


class Bucket:
    """Concurrency, calls per minute, and the provider's own pauses."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_concurrent: int,
        max_per_minute: int | None,
        max_pause_s: float,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """A pause longer than `max_pause_s` is not waited for here: the call that meets it is refused with `rate`, so
        that its run can be parked."""
        self._clock = clock
        self._slots = asyncio.Semaphore(max_concurrent)
        self._max_per_minute = max_per_minute
        self._max_pause_s = max_pause_s
        self._sleep = sleep
        self._started: deque[float] = deque(maxlen=max_per_minute)
        self._not_before_s = 0.0

    def pause(self, seconds: float) -> None:
        """No call before that: a provider asked for it."""
        self._not_before_s = max(self._not_before_s, self._clock.monotonic_s() + seconds)

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        try:
            await self._wait_for_turn()
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()

    async def _wait_for_turn(self) -> None:
        while True:
            now = self._clock.monotonic_s()
            wait_s = max(self._not_before_s - now, self._minute_wait_s(now))
            if wait_s <= 0:
                self._started.append(now)
                return
            if wait_s > self._max_pause_s:
                raise ModelError(
                    "rate",
                    f"the provider asked to wait {wait_s:.0f} s longer.",
                    fix="the run waits by itself; nothing is to be done",
                    retry_after_s=wait_s,
                )
            await self._sleep(wait_s)

    def _minute_wait_s(self, now: float) -> float:
        if self._max_per_minute is None or len(self._started) < self._max_per_minute:
            return 0.0
        return self._started[0] + _MINUTE_S - now


class LimitedModel(ModelAround):
    """A Model whose calls go through a bucket."""

    def __init__(self, inner: Model, bucket: Bucket) -> None:
        super().__init__(inner)
        self._bucket = bucket

    async def generate(self, messages: Sequence[Message], **asked: Unpack[Asked]) -> Reply:
        async with self._bucket:
            try:
                return await self._inner.generate(messages, **asked)
            except ModelError as error:
                if error.retry_after_s is not None and error.kind in ("rate", "overload"):
                    self._bucket.pause(error.retry_after_s)
                raise
