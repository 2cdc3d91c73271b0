"""The daemon's loop: lock, recover, scan when woken, drain, stop. One per home (Protocol 95, section 2.1)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import Iterable
from dataclasses import asdict

from council import __version__, events
from council.app import App
from council.daemon.command_file_moves import Taking
from council.daemon.companions import Companions
from council.daemon.hourly_upkeep import Keeping
from council.daemon.inbox import Inbox
from council.daemon.schedule import Scheduler
from council.daemon.state import StateFile
from council.daemon.watch import watch
from council.desk.recurring_folder import RecurringFolder
from council.engine.engine import Engine
from council.errors import (
    EXIT_CANCELLED,
    EXIT_DEGRADED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_USAGE,
    EXIT_WAITING,
    STATUS_EXIT,
    DaemonRunning,
    GuardrailBlocked,
    StorageFailed,
)
from council.ids import timestamp
from council.storage.files import FileLock
from council.storage.reader import is_older
from council.systems import Companion
from council.upkeep.older_home import bring_over
from council.upkeep.repair import sweep

log = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_WORST_FIRST = (EXIT_FAILED, EXIT_REFUSED, EXIT_USAGE, EXIT_CANCELLED, EXIT_DEGRADED, EXIT_OK)
_REST_FACTOR = 3.0  # after a scan rest three times as long as it took: a burst of events costs a quarter of one core
_MIN_REST_S = 0.002
_KEEPING_S = 1.0  # a process that drains and leaves lets go of old runs for so long
_OBEY_S = 0.2  # between two looks for a cancel, while the last calls end
_PAUSE_S, _MAX_PAUSE_S = 0.05, 1.0  # between two tries for the lock of a process that leaves: longer each time
_MAX_LEAVE_S = 86_400.0  # `--wait` waits an hour: what has not left after a day never does
_MAX_REST_S = 0.5  # a cancel must not wait longer, however large the folder


class Service:
    """One run of the daemon over an App."""

    def __init__(
        self,
        app: App,
        *,
        once: bool,
        only: str | None = None,
        timeout_s: float | None = None,
        companions: Iterable[Companion] = (),
    ) -> None:
        """`once`: end when nothing is left to do. `only`: the one file in `commands/` that counts; unfinished runs are
        left to the next daemon, except those it must wait for. `timeout_s`: end then, as after a signal. `companions`:
        those of the door, beside the systems' own."""
        self._app = app
        self._root = os.stat(app.home.root)
        self._once = once
        self._only = only
        self._timeout_s = timeout_s
        self._timed_out = False
        self._lock = FileLock(app.home.lock_file)
        types, settings, redact = app.commands, app.settings, app.redactor.redact
        taking = Taking(app.home, app.root, app.events, types, max_bytes=settings.max_command_bytes, redact=redact)
        self.engine = app.engine(taking.end)
        self._inbox = Inbox(
            app.home, app.root, types, self.engine, taking, settings, app.events, app.clock, app.audit, only
        )
        self._scheduler = _scheduler(app, self.engine) if only is None else None
        self._keeping = Keeping(app, self.engine)
        self._doors = tuple(companions)
        self._wake = asyncio.Event()
        self._signalled = 0
        self._exits: set[int] = set()

    async def run(self) -> int:
        """Serves until told to stop (or drained); the exit code. Raises DaemonRunning when a daemon holds the home."""
        app, loop = self._app, asyncio.get_running_loop()
        await self._take_lock()
        try:
            app.store.claim()
            for number in _STOP_SIGNALS:
                loop.add_signal_handler(number, self._on_signal, number)
            unsubscribe = app.events.subscribe(self._on_event)
            try:
                return await self._serve()
            finally:
                unsubscribe()
                for number in _STOP_SIGNALS:
                    loop.remove_signal_handler(number)
        finally:
            await app.aclose()
            self._lock.release()

    def stop(self) -> None:
        """Acts like SIGTERM: the turns under way end first, then `run` returns. Nothing happens when it stops already."""
        if not self._signalled:
            self._on_signal(signal.SIGTERM)

    async def _take_lock(self) -> None:
        """A daemon waits for a process that works for one command and leaves: nobody would start it again. What drains does not
        wait. Nothing has begun yet, so a signal ends the process. Raises DaemonRunning."""
        clock, leaves = self._app.clock, self._once or self._only is not None
        owner: dict[str, object] = {"leaves": True} if leaves else {}
        owner |= {"http": self._app.settings.http} if self._doors else {}
        pause_s, give_up_s, told = _PAUSE_S, clock.monotonic_s() + _MAX_LEAVE_S, False
        while True:
            try:
                self._lock.acquire({"started": timestamp(clock.now()), **owner})
                return
            except DaemonRunning as error:
                if leaves or not error.data["leaves"] or clock.monotonic_s() > give_up_s:
                    raise
                if not told:
                    log.warning("%s The daemon starts when that process has ended.", error.message)
                told = True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    async def _serve(self) -> int:
        app, loop = self._app, asyncio.get_running_loop()
        app.events.publish(events.DaemonStart(version=__version__, model=app.model.name, pid=os.getpid()))
        leaves = self._once or self._only is not None  # once what is there is drained: nothing runs beside it
        beside = [] if leaves else [*(one for system in app.systems for one in system.companions(app)), *self._doors]
        companions = Companions(beside, app.events, app.redactor.redact)
        state = StateFile(
            app.home, self.engine, app.events, app.clock, model=app.model.name, unadmitted=self._inbox.unadmitted,
            companions=companions.names, degraded=companions.degraded,
        )  # fmt: skip

        def time_out() -> None:
            self._timed_out = True
            self._wake.set()

        def on_file_event(closed_name: str) -> None:
            if closed_name:
                self._inbox.file_closed(closed_name)
            self._wake.set()

        if self._timeout_s is not None:
            loop.call_later(self._timeout_s, time_out)
        stop_watching = None
        if app.settings.watch == "auto":
            stop_watching = watch(app.home.commands, lambda name: loop.call_soon_threadsafe(on_file_event, name))
        try:
            if is_older(app.home.runtime):
                brought = await asyncio.to_thread(bring_over, app.home, app.store)
                app.events.publish(events.HomeImport(**asdict(brought)))
            unfinished = self.engine.recover(hold=self._only is not None)
            sweep(app.home, app.commands, unfinished)
            self._inbox.adopt(unfinished)
            for run in unfinished:
                if run.header.file.name == self._only:  # an earlier process began it
                    self.engine.ask_for(run)
            state.write()
            if self._only is None:
                self._keeping.start(copies=not self._once)
            if not self._once:  # else the end comes before garbage matters
                gc.collect()
            companions.start()
            gc.freeze()  # what was built at the start stays: no later collection looks through it again
            return await self._loop()
        finally:
            if stop_watching is not None:
                stop_watching()
            await companions.stop()
            stopping = asyncio.ensure_future(self.engine.stop())
            try:  # the calls under way end, or somebody ends their runs: a cancel is still obeyed
                while not (await asyncio.wait({stopping}, timeout=_OBEY_S))[0]:
                    await self._inbox.obey()
            finally:
                await stopping
            await self._keeping.stop()
            state.stop()

    async def _loop(self) -> int:
        app, engine = self._app, self.engine
        idle = False
        while not (self._signalled or self._timed_out):
            self._wake.clear()
            began_s = app.clock.monotonic_s()
            if self._once and self._scheduler is not None:
                self._scheduler.tick()
                self._scheduler = None  # what is due at the start is drained, and nothing after it
            try:
                await app.vault_words.learn()
            except StorageFailed as error:
                log.error("%s", error)
            result = await self._inbox.scan()
            self._require_whole()
            if self._scheduler is not None:  # after the scan: somebody waits for that
                result.look_within(self._scheduler.tick())
            took_s = app.clock.monotonic_s() - began_s
            if self._once and result.pending == 0 and (not engine.at_work or engine.only_waiting):
                if self._only is None:
                    await self._keeping.complete(_KEEPING_S)
                    self._require_whole()
                if engine.at_work:
                    return EXIT_WAITING
                exits = self._exits | ({EXIT_USAGE} if self._inbox.refused_count else set())
                return next((code for code in _WORST_FIRST if code in exits), EXIT_OK)
            was_idle, idle = idle, not engine.active and not result.cut_short
            if idle and not was_idle and not self._once:
                app.events.publish(events.IdleInbox(folder=f"{app.home.commands}/"))
            may_rest = not idle and not result.cut_short
            await asyncio.sleep(min(max(_MIN_REST_S, _REST_FACTOR * took_s), _MAX_REST_S) if may_rest else _MIN_REST_S)
            result.look_within(app.settings.scan_interval_s)
            with contextlib.suppress(TimeoutError):
                # not wait_for, which makes a task: one more turn of the loop between a drop and its scan
                async with asyncio.timeout(result.next_look_s):
                    await self._wake.wait()
        if self._timed_out:
            return EXIT_WAITING
        return EXIT_OK if self._signalled == signal.SIGTERM else EXIT_INTERRUPTED

    def _require_whole(self) -> None:
        """Raises StorageFailed for a damaged database: no wait mends it, and a restore needs the lock of this process. Also for
        a home that was moved: its lock went along, so that doors would take this process for one that serves it there."""
        if self._app.store.damage is not None:
            raise self._app.store.damage
        root = self._app.home.root
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(root), self._root):
                return
        fix = "start the daemon where the home is"
        raise StorageFailed(f"{root} was moved or replaced while it was served.", fix=fix)

    def _on_event(self, event: events.Event) -> None:
        """Looks at the inbox again when the queue has drained, or when a file may have waited for this."""
        if isinstance(event, events.RunEnd):
            refused = event.error is not None and event.error.code == GuardrailBlocked.code
            self._exits.add(EXIT_REFUSED if refused else STATUS_EXIT[event.status])
        engine = self.engine
        if isinstance(event, events.RunEnd | events.RunWait):
            looks = not engine.running or not engine.active or self._inbox.waits_for_a_run
        else:  # a file of ours that no event of the file system may tell of
            looks = isinstance(event, events.CommandChange | events.ScheduleDrop)
        if looks:
            asyncio.get_running_loop().call_soon(self._wake.set)

    def _on_signal(self, number: int) -> None:
        if self._signalled:
            os._exit(EXIT_INTERRUPTED)  # at once: the journals are built for exactly this
        self._signalled = number
        self.engine.begin_nothing()  # at once: the loop may be in a scan or at rest
        self._app.events.publish(events.DaemonStop())
        self._wake.set()


def _scheduler(app: App, engine: Engine) -> Scheduler:
    max_bytes, redact = app.settings.max_command_bytes, app.redactor.redact
    folder = RecurringFolder(
        app.home, app.root, app.commands, max_bytes=max_bytes, admits=app.admission_of, redact=redact
    )

    def active_ids() -> dict[str, str]:
        commands = {run.id: run.header.command.get("id") for run in engine.active.values()}
        return {id_: run_id for run_id, id_ in commands.items() if id_ is not None}

    return Scheduler(app.home, folder, app.store, active_ids, app.events, app.clock, quiet_s=app.settings.quiet_s)
