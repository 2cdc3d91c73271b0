"""The daemon's part in upkeep. Soon after the start and then each hour it lets go of what is too much; once a day it
copies the database.

It works in slices of a few milliseconds with pauses between them, longer ones while runs are at work. So neither a run
nor a dropped command waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextvars import Context
from datetime import date

from council.app import App
from council.engine.engine import Engine
from council.errors import StorageFailed
from council.events import Pruning
from council.upkeep.copies import copy_daily
from council.upkeep.retention import Due, Retention, bounds_of

log = logging.getLogger(__name__)

_EVERY_S = 3_600.0
_SLICE_S = 0.02
_PAUSE_S = 0.1
_PAUSE_AT_WORK_S = 1.0
_MOST = 500  # runs per pass; what is left is the next one's, which then follows at once


class Keeping:
    """One daemon's retention. `start` once, `stop` at the end."""

    def __init__(self, app: App, engine: Engine) -> None:
        self._app = app
        self._engine = engine
        self._gone: list[Due] = []
        self._pass = self._begun()
        self._timer: asyncio.TimerHandle | None = None
        self._copied: date | None = None

    def start(self, *, copies: bool) -> None:
        """`copies`: also the daily one of the database, for who stays longer than that takes."""
        self._copied = None if copies else date.max
        self._again(_PAUSE_S)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def complete(self, max_s: float) -> None:
        """Goes on without pauses, for at most `max_s`: for a process that is about to leave. First what was begun is brought
        to its end; a second pass sees the runs that have ended since."""
        self.stop()
        clock = self._app.clock
        until_s = clock.monotonic_s() + max_s
        for _ in range(2):
            left_s = until_s - clock.monotonic_s()
            if left_s > 0:
                self._work(left_s)

    def _begun(self) -> Iterator[None]:
        app = self._app
        retention = Retention(app.store, bounds_of(app.settings), app.clock)
        for one in retention.prune(retention.due(_MOST)):
            self._gone.append(one)
            yield
        for _ in retention.tidy():
            yield
        while app.store.give_back():
            yield

    def _work(self, max_s: float) -> bool:
        """False when nothing is left to do for now."""
        clock = self._app.clock
        until_s = clock.monotonic_s() + max_s
        try:
            for _ in self._pass:
                if clock.monotonic_s() >= until_s:
                    return True
        except StorageFailed as error:
            log.error("retention: %s", error)
        gone, self._gone, self._pass = self._gone, [], self._begun()
        if gone:
            settings = tuple(sorted({one.by for one in gone}))
            freed, runs = sum(one.bytes for one in gone), tuple(one.run_id for one in gone)
            self._app.events.publish(Pruning(runs=runs, bytes=freed, settings=settings))
        return len(gone) >= _MOST

    def _again(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._slice, context=Context())

    def _slice(self) -> None:
        app = self._app
        today = app.clock.now()

        def copy() -> None:
            try:
                copy_daily(app.home, app.store, today)
            except StorageFailed as error:
                log.error("the daily copy of the database is not made: %s", error)

        if self._copied is None or today.date() > self._copied:
            self._copied = today.date()
            # In a thread of its own: a large database takes seconds, and nobody waits.
            asyncio.get_running_loop().run_in_executor(None, copy)
        more = self._work(_SLICE_S)
        pause_s = _PAUSE_AT_WORK_S if self._engine.running else _PAUSE_S
        self._again(pause_s if more else _EVERY_S)
