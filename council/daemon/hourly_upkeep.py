"""The daemon's part in upkeep. Soon after the start and then each hour it lets go of what is too much; once a day it
copies the database.

It works in slices of a few milliseconds with pauses between them, longer ones while runs are at work. So neither a run
nor a dropped command waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from contextvars import Context
from datetime import date

from council.app import App
from council.engine.engine import Engine
from council.errors import StorageFailed
from council.events import Pruning
from council.upkeep.copies import copy_daily
from council.upkeep.retention import Due, Retention

log = logging.getLogger(__name__)

_EVERY_S = 3_600.0
_SLICE_S = 0.02
_PAUSE_S = 0.1
_PAUSE_AT_WORK_S = 1.0
_MOST = 500  # runs per pass; what is left is the next one's, which then follows at once


class Keeping:
    """One daemon's retention. It uses the database in a thread: a lock there must not hold up the loop."""

    def __init__(self, app: App, engine: Engine) -> None:
        self._app = app
        self._engine = engine
        self._gone: list[Due] = []
        self._pass = self._begun()
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._copied: date | None = None

    def start(self, *, copies: bool) -> None:
        """`copies`: also the daily one of the database, for who stays longer than that takes."""
        self._task = asyncio.get_running_loop().create_task(self._keep(copies), context=Context())

    async def stop(self) -> None:
        """Returns when the slice or the copy that is under way is done."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def complete(self, max_s: float) -> None:
        """Goes on without pauses, for at most `max_s`: for a process that is about to leave. First what was begun is brought
        to its end; a second pass sees the runs that have ended since."""
        await self.stop()
        clock = self._app.clock
        until_s = clock.monotonic_s() + max_s
        for _ in range(2):
            left_s = until_s - clock.monotonic_s()
            if left_s > 0:
                await self._slice(left_s)

    async def _keep(self, copies: bool) -> None:
        more, pause_s = False, _PAUSE_S

        def copy() -> None:
            now = self._app.clock.now()
            if self._copied == now.date():
                return
            try:
                copy_daily(self._app.home, self._app.store, now)
            except (OSError, StorageFailed) as error:
                log.error("the daily copy of the database could not be made: %s", error)
            else:
                self._copied = now.date()

        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
                    return
            try:
                if copies and not more:
                    await asyncio.to_thread(copy)
                more = await self._slice(_SLICE_S)
            except Exception:  # the next hour may go better, and without this none would come
                log.exception("upkeep failed, and is tried again in %.0f minutes", _EVERY_S / 60)
                more, self._pass = False, self._begun()
            pause_s = (_PAUSE_AT_WORK_S if self._engine.running else _PAUSE_S) if more else _EVERY_S

    def _begun(self) -> Iterator[None]:
        app = self._app
        retention = Retention(app.store, app.settings, app.clock, app.tables)
        for one in retention.due(_MOST):
            try:
                self._gone += retention.prune([one])
            except StorageFailed:
                raise
            except Exception:  # one that cannot be let go of must not keep the others
                log.exception("run %s cannot be let go of", one.run_id)
            yield
        for _ in retention.tidy():
            yield
        while app.store.give_back():
            yield

    async def _slice(self, max_s: float) -> bool:
        """False when nothing is left to do for now."""
        clock = self._app.clock
        until_s = clock.monotonic_s() + max_s

        def works_to_the_end() -> bool:
            try:
                for _ in self._pass:
                    if clock.monotonic_s() >= until_s:
                        return False
            except StorageFailed as error:
                log.error("retention: %s", error)
            return True

        if not await asyncio.to_thread(works_to_the_end):
            return True
        gone, self._gone, self._pass = self._gone, [], self._begun()
        if gone:
            settings = tuple(sorted({one.by for one in gone}))
            freed, runs = sum(one.bytes for one in gone), tuple(one.run_id for one in gone)
            self._app.events.publish(Pruning(runs=runs, bytes=freed, settings=settings))
        return len(gone) >= _MOST
