"""The artifact of a run while it goes on: shown as it is so far, and no more often than a reader has use for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from council.engine.outputs import sealed
from council.engine.runs import Run
from council.errors import PathRefused, StorageFailed
from council.ids import Clock

log = logging.getLogger(__name__)

_INTERVAL_S = 1.0  # an editor that follows the file needs no more
_SHARE = 10  # a page that takes long to write is shown that many times less often: other runs are at work, too


class GrowingPage:
    """Shows what `page` returns. A page that cannot be written now does not stop the run."""

    def __init__(self, run: Run, clock: Clock, page: Callable[[], str]) -> None:
        self._run = run
        self._clock = clock
        self._page = page
        self._shown_at = -_INTERVAL_S
        self._interval_s = _INTERVAL_S
        self._due: asyncio.TimerHandle | None = None

    def grow(self) -> None:
        """Shows the page: now, or a second (a large one: longer) after it was shown last."""
        if self._run.is_closed or self._due is not None:
            return
        wait_s = self._shown_at + self._interval_s - self._clock.monotonic_s()
        if wait_s > 0:
            self._due = asyncio.get_running_loop().call_later(wait_s, self.show)
        else:
            self.show()

    def show(self) -> None:
        self._due = None
        began_s = self._clock.monotonic_s()
        try:
            self._run.output.grow(sealed(self._page().encode(), self._run.id))
        except (StorageFailed, PathRefused) as error:
            log.warning("the growing artifact of run %s cannot be shown: %s", self._run.id, error)
        self._shown_at = self._clock.monotonic_s()
        self._interval_s = max(_INTERVAL_S, _SHARE * (self._shown_at - began_s))

    def stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
