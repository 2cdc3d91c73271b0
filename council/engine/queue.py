"""Turns in time: lanes, slots, and the timers of runs that wait. The seam for a fleet of workers.

Says when a run is executed and when it waits, never what it does. In memory: a start finds it again in the journals.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from council.commands.models import PLANS_LANE
from council.engine.journal import Handback
from council.engine.lanes import Lanes
from council.engine.receipts import ErrorRef
from council.engine.records import Waiting, waited_for
from council.engine.run_records import FINISH
from council.engine.runs import ANSWER, NETWORK, ActiveRun, Finish, RunPause
from council.errors import PathRefused, StorageFailed
from council.events import RunReturn, RunWait
from council.ids import Clock, timestamp, whole_duration
from council.logs import log_context

log = logging.getLogger(__name__)

MAX_WAIT = "max_wait"  # how a run ends that waited too long


@dataclass(eq=False)
class RunQueue:
    """The runs of one process, in their order. `_execute` brings a run to its end, and raises as `Executor.execute`; `_finish`
    is how one ends that cannot wait any longer."""

    _execute: Callable[[ActiveRun], Awaitable[None]]
    _finish: Callable[[ErrorRef], Finish]
    _clock: Clock
    slots: int
    max_wait_s: float
    storage_retry_s: float

    def __post_init__(self) -> None:
        self._lanes: Lanes[ActiveRun] = Lanes()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.running = 0
        self._beside = 0  # of these, runs without a slot
        self.stopping = asyncio.Event()
        self._gathering = False

    @property
    def held(self) -> int:
        """The number of runs that stand in line and are not to go on."""
        return self._lanes.held

    def join(self, run: ActiveRun, *, hold: bool = False) -> None:
        """Puts a run at the end of its lane. `hold`: it is not told to go on before `ask_for` wants it."""
        if hold:
            self._lanes.hold(run)
        self._lanes.join(run)
        self._pump()

    def ask_for(self, run: ActiveRun) -> None:
        """Holds neither this run any longer nor those that come before it, in its lane or at its output path."""
        self._lanes.ask_for(run)
        self._pump()

    def release(self, run: ActiveRun) -> None:
        """It has ended: its lane and its output path are the next one's."""
        self._lanes.release(run)

    def wake(self, run: ActiveRun) -> None:
        """Lets a run that waits go on as soon as there is a slot; once, however often it is asked for."""
        self._drop_timer(run)
        run.is_woken = run.status == "running"  # it may be about to wait for what has just come
        if run.status == "waiting" and not self.stopping.is_set():
            run.status = "queued"
            run.waiting_for = ""
            self._lanes.go_on(run)
            self._pump()

    def start_to_end(self, run: ActiveRun) -> None:
        """Starts it out of turn and without a slot: a run that is cancelled calls nobody."""
        self._drop_timer(run)
        self._lanes.leave(run)
        if run.output_path and self._lanes.is_anothers(run.output_path, run):
            run.output.step_aside("is being written by another run")
        self._start(run)

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Nothing starts until the end of it: what has joined by then is compared by its priority."""
        self._gathering = True
        try:
            yield
        finally:
            self._gathering = False
            self._pump()

    def stop(self) -> None:
        """Starts and wakes nothing any more."""
        self.stopping.set()
        for timer in self._timers.values():
            timer.cancel()

    def _pump(self) -> None:
        """Starts whatever may start: while there are slots, and in the lane of plans without one."""
        while not (self.stopping.is_set() or self._gathering):
            run = self._lanes.next(lambda run: self.running - self._beside < self.slots or not _needs_slot(run))
            if run is None:
                break
            self._start(run)

    def _start(self, run: ActiveRun) -> None:
        assert run.task is None, f"run {run.id} is being executed already"
        self.running += 1
        self._beside += not _needs_slot(run)
        run.status = "queued"
        run.waiting_for = ""
        with log_context(run_id=run.id):  # which the task takes along
            run.task = asyncio.get_running_loop().create_task(self._serve(run), name=run.id)

    async def _serve(self, run: ActiveRun) -> None:
        run.status = "running"
        run.is_woken = False
        cut_off = False
        try:
            try:
                await self._execute(run)
            except RunPause as parked:
                await self._park(run, parked)
        except Handback:
            run.journal.hand_back()
            run.status = "queued"
            run.publish(RunReturn())
        except (
            StorageFailed,
            PathRefused,
        ) as error:  # also a wait that cannot be noted: it is the disk that is waited for
            log.error("run %s: %s", run.id, error)
            run.journal.fruitless_attempts = 0  # the disk's, and not the run's
            await self._park(run, RunPause("storage", self.storage_retry_s, error))
        except asyncio.CancelledError:
            if not run.cancel_reason:
                raise
            cut_off = True  # beside its work: it ends in a task of its own
        except Exception:
            log.exception("run %s met a defect while it ended; its end is tried again at the next start", run.id)
            run.status = "waiting"
            run.waiting_for = "restart"
        finally:
            self.running -= 1
            self._beside -= not _needs_slot(run)
            run.task = None
            if cut_off:
                self.start_to_end(run)
            self._pump()

    async def _park(self, run: ActiveRun, parked: RunPause) -> None:
        """Lets the run wait, or ends it where that would be longer than it may. That is `max_wait_s`, or the time that a person
        has for an answer. The clock counts since it first waited for what it has not got yet, however often it asked meanwhile.
        For the network, only the time of this process counts, without the sleep of the machine. Raises StorageFailed."""
        seconds, now = max(1.0, parked.seconds), self._clock.now()
        if parked.reason != "storage":
            since = next((wait.since for wait in run.journal.waits if wait.reason == parked.reason), None)
            waited_s = max(0.0, (now - datetime.fromisoformat(since)).total_seconds()) if since else 0.0
            if parked.reason == NETWORK:
                if since is None or run.offline_since_s is None:
                    run.offline_since_s = self._clock.monotonic_s()
                waited_s = self._clock.monotonic_s() - run.offline_since_s
            most_s, bound, mend = self.max_wait_s, "max_wait_s", "; `max_wait_s` says how long a run may wait"
            if parked.reason == ANSWER:
                most_s, bound, mend = parked.seconds, "its own time", ""
                seconds = max(1.0, most_s - waited_s)
            if seconds > most_s - waited_s:
                error = ErrorRef(
                    MAX_WAIT,
                    f"waited {whole_duration(waited_s)}{waited_for(parked.reason)}, and {whole_duration(seconds)} more would be "
                    f"longer than {bound} ({whole_duration(most_s)}) allows; {parked.message}",
                    f"`council resume {run.id}` asks again{mend}",
                )
                await run.journal.put(FINISH, self._finish(error), type=Finish)
                run.status = "queued"
                self._lanes.go_on(run)
                return
            await run.journal.wait(Waiting(parked.reason, timestamp(now), seconds, parked.message))
        run.status = "waiting"
        run.waiting_for = parked.reason
        until = timestamp(now + timedelta(seconds=seconds))
        run.publish(RunWait(reason=parked.reason, seconds=seconds, until=until, error=parked.message))
        self._timers[run.id] = asyncio.get_running_loop().call_later(0 if run.is_woken else seconds, self.wake, run)

    def _drop_timer(self, run: ActiveRun) -> None:
        timer = self._timers.pop(run.id, None)
        if timer is not None:
            timer.cancel()


def _needs_slot(run: ActiveRun) -> bool:
    """False where no model is asked: nothing of a provider is shared then."""
    return run.header.lane != PLANS_LANE
