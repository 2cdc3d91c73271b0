"""One bucket per provider, shared by all runs. When the provider says Retry-After to one call, every call waits."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import TypeVar, Unpack

import msgspec

from council.errors import ModelError, StorageFailed
from council.ids import Clock
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions
from council.storage.marks import drop_marks, mark, note_mark
from council.storage.store import Store
from council.typed_json import decode_json

log = logging.getLogger(__name__)

_MINUTE_S = 60.0
_PAUSES = "pause/"  # and the provider: names of marks
Sleep = Callable[[float], Awaitable[None]]
T = TypeVar("T")


class _Pause(msgspec.Struct, frozen=True):
    until: datetime
    seconds: float


class KeptPauses:
    """The long pauses that providers asked for: a restart does not ask again before the time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def left_s(self, provider: str) -> float:
        """Never more than the provider asked for, whatever became of the clock. Raises StorageFailed."""
        noted = mark(self._store, _PAUSES + provider)
        if noted is None:
            return 0.0
        pause = decode_json(noted, _Pause)
        return max(0.0, min((pause.until - self._clock.now()).total_seconds(), pause.seconds))

    def note(self, provider: str, seconds: float) -> None:
        """Keeps a pause. A failure to write is only logged: nothing but a restart would then ask too soon."""
        try:
            pause = _Pause(self._clock.now() + timedelta(seconds=seconds), seconds)
            note_mark(self._store, _PAUSES + provider, msgspec.json.encode(pause).decode())
        except (OverflowError, StorageFailed) as error:
            log.warning("the pause that %s asked for is not kept: %s", provider, error)

    def lift(self) -> None:
        """All of them: who asks for that may know none of the providers. Raises StorageFailed."""
        drop_marks(self._store, _PAUSES)


@dataclass(eq=False)
class Bucket:
    """Makes calls in their turn. Where the provider asks for time, all others are held up, too. A call that
    meets a pause longer than `max_pause_s` is refused with `rate`, so that its run can be parked. `pause_s` is one under way;
    `on_pause` is told of each such long one."""

    _clock: Clock
    _: KW_ONLY
    max_concurrent: int
    max_per_minute: int | None
    max_pause_s: float
    pause_s: float = 0.0
    on_pause: Callable[[float], None] = lambda seconds: None
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.max_concurrent)
        self._started: deque[float] = deque(maxlen=self.max_per_minute)
        self._not_before_s = self._clock.monotonic_s() + self.pause_s

    def pause(self, seconds: float) -> None:
        until_s = self._clock.monotonic_s() + seconds
        if until_s > self._not_before_s:
            self._not_before_s = until_s
            if seconds > self.max_pause_s:
                self.on_pause(seconds)

    def lift(self) -> None:
        self._not_before_s = 0.0

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        async with self:
            return await call()

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        try:
            while True:
                now = self._clock.monotonic_s()
                wait_s = self._not_before_s - now
                if self.max_per_minute is not None and len(self._started) >= self.max_per_minute:
                    wait_s = max(wait_s, self._started[0] + _MINUTE_S - now)
                if wait_s <= 0:
                    self._started.append(now)
                    return
                if wait_s > self.max_pause_s:
                    raise ModelError(
                        "rate",
                        f"the provider asked to wait {wait_s:.0f} s longer.",
                        fix="nothing: the run waits and continues by itself",
                        retry_after_s=wait_s,
                    )
                await self.sleep(wait_s)
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if isinstance(error, ModelError) and error.kind in ("rate", "overload") and error.retry_after_s is not None:
                self.pause(error.retry_after_s)
        finally:
            self._slots.release()


class LimitedModel(ModelAround):
    def __init__(self, inner: Model, bucket: Bucket) -> None:
        super().__init__(inner)
        self._bucket = bucket

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        return await self._bucket(lambda: self._inner.generate(messages, **asked))
