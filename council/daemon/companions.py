"""Companions run beside the inbox as long as the daemon: an HTTP server, the clock of a world, reminders.

A companion that ends or fails is degraded: it is logged, shown, and started again with growing pauses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from council.errors import CouncilError
from council.events import CompanionFailure, CompanionRecovery, Events
from council.safety.untrusted import plain_line
from council.systems import Companion

log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
_STEADY_S = 30.0  # one that dies sooner has not recovered
_MAX_REASON_CHARS = 300  # a line of `status`
_STOP_S = 10.0  # for a companion to put its things away


class Companions:
    """The companions of one daemon. `degraded` gives the reason for each one that does not run as it should."""

    def __init__(self, companions: Iterable[Companion], events: Events, redact: Callable[[str], str]) -> None:
        self._companions = tuple(companions)
        self._events = events
        self._redact = redact
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self.names = tuple(one.name for one in self._companions)
        self.degraded: dict[str, str] = {}

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep(one), name=one.name) for one in self._companions]

    async def stop(self) -> None:
        """Tells all of them to stop, and waits until they have. One that does not is left, and said."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            for task in (await asyncio.wait(self._tasks, timeout=_STOP_S))[1]:
                log.error("companion %s does not stop", task.get_name())

    async def _keep(self, companion: Companion) -> None:
        """Runs a companion until `stop`. One that lives for 30 s, and for twice its last pause, has recovered: its
        pauses begin anew."""
        pause_s = _FIRST_PAUSE_S

        def recover() -> None:
            if self.degraded.pop(companion.name, None) is not None:
                self._events.publish(CompanionRecovery(name=companion.name))

        while True:
            steady = asyncio.get_running_loop().call_later(max(_STEADY_S, 2 * pause_s), recover)
            try:
                await companion.run()
                reason = "it ended"
            except asyncio.CancelledError:  # of a task of its own, unless it is told to stop
                reason = "it was cancelled"
            except SystemExit as error:  # an HTTP server asks for it when its port is taken
                reason = self._redact(f"it asked to exit with {error.code}")
            except CouncilError as error:
                reason = self._redact(error.message)
            except Exception as error:  # a defect of ours: its text may hold anything
                log.exception("companion %s met a defect", companion.name)
                reason = f"internal error ({type(error).__name__})"
            finally:
                steady.cancel()
            if self._stopping:
                return
            reason = plain_line(reason, _MAX_REASON_CHARS)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S) if companion.name in self.degraded else _FIRST_PAUSE_S
            self.degraded[companion.name] = reason
            log.error("companion %s: %s; it is started again in %.0f s", companion.name, reason, pause_s)
            self._events.publish(CompanionFailure(name=companion.name, reason=reason, again_s=pause_s))
            await asyncio.sleep(pause_s)
