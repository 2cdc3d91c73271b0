"""The daemon's part in retention: at the start and then each hour it lets go of what is too much, a few runs at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from council.app import App
from council.engine.ledger import Entry
from council.errors import StorageFailed
from council.upkeep.retention import bounds_of, over, prune

log = logging.getLogger(__name__)

_EVERY_S = 3_600.0
_PAUSE_S = 0.2
_AT_ONCE = 20  # folders of some files each: some milliseconds, then the runs under way go on


class Keeping:
    """One daemon's retention. `start` once, `stop` at the end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._due: deque[Entry] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._due = deque(over(self._app.ledger.ended(), bounds_of(self._app.settings), self._app.clock.now()))
        self._prune_some()

    def _prune_some(self) -> None:
        some = [self._due.popleft() for _ in range(min(_AT_ONCE, len(self._due)))]
        app = self._app
        try:
            pruned = prune(app.home, app.ledger, app.receipts, some)
        except StorageFailed as error:
            log.error("retention: %s", error)
            self._due.clear()
        else:
            if pruned:
                app.events.publish("runs_pruned", runs=pruned)
        loop = asyncio.get_running_loop()
        self._timer = (
            loop.call_later(_PAUSE_S, self._prune_some) if self._due else loop.call_later(_EVERY_S, self._look)
        )
