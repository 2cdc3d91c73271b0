"""`.council/state.json`: the daemon's present work, for `council status` and for those who wait.

A view, rebuilt at every start; the journals are the truth.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any

import msgspec

from council.daemon.command_file_moves import printable
from council.desk.overview import UNOPENED
from council.engine.engine import Engine
from council.errors import StorageFailed
from council.events import Event, Events, RoundStart, RunEnd, RunState, RunWait, SynthesisStart, TurnStart
from council.ids import Clock, timestamp
from council.settings import Home
from council.storage.files import overwrite, write_atomic

log = logging.getLogger(__name__)

_INTERVAL_S = 0.1  # changes within this time are written once
_CROWD = 50  # so many runs make a long file
_CROWD_INTERVAL_S = 1.0
AWAITING = "AWAITING_COMMAND"
_WAITING = "WAITING"  # of a run, for a person or a provider; of the daemon, where no run is at work and one waits


def publish_start(home: Home, model: str, waits_for: StorageFailed) -> None:
    """Says that the daemon has not begun, because the disk takes nothing."""
    view = {"state": "STARTING", "pid": os.getpid(), "model": model, "runs": [], "degraded": {UNOPENED: str(waits_for)}}
    _publish(home, view)


def _publish(home: Home, view: dict[str, Any]) -> None:
    path = home.state_file
    try:
        write_atomic(path, msgspec.json.encode(view), sync=False, mode=0o644)
    except StorageFailed as full:
        log.warning("state.json cannot be replaced, so it is overwritten: %s", full)
        why = {"state.json": f"the list of runs is left out: {full}"}
        short = view | {"runs": [], "unadmitted": [], "degraded": why}
        for shown in (view, short):  # in the place of the one before, as far as it fits there
            with contextlib.suppress(StorageFailed):
                overwrite(path, msgspec.json.encode(shown))
                break


@dataclass(eq=False)
class StateFile:
    """Listens to events and keeps the file current. `unadmitted`: what keeps files in the inbox that the disk or the store
    does not take now. `degraded`: those of the `companions` that do not run as they should, with the reason."""

    _home: Home
    _engine: Engine
    _events: Events
    _clock: Clock
    model: str
    unadmitted: Mapping[str, str]
    companions: Sequence[str]
    degraded: Mapping[str, str]

    def __post_init__(self) -> None:
        self._started = timestamp(self._clock.now())
        self._progress: dict[str, dict[str, Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._unsubscribe = self._events.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.run_id and isinstance(event, RoundStart | TurnStart | SynthesisStart | RunWait):
            self._progress.setdefault(event.run_id, {}).update(event.values())
        if isinstance(event, RunEnd):
            self._progress.pop(event.run_id, None)
        is_crowd = len(self._engine.active) > _CROWD
        # In a context of its own: what goes wrong is not the run's whose event came.
        if isinstance(event, RunState | RunWait) and not is_crowd:
            Context().run(self._write_now)  # a state lasts for an instant, and a person looks as soon as they are asked
        elif self._timer is None:
            interval_s = _CROWD_INTERVAL_S if is_crowd else _INTERVAL_S
            self._timer = asyncio.get_running_loop().call_later(interval_s, self.write, context=Context())

    def _write_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.write()

    def write(self) -> None:
        """Writes the file now. A disk that is full does not stop the daemon: the file is only a view."""
        self._timer = None
        runs = [
            {
                "run_id": run.id,
                "title": run.header.title,
                "file": run.header.file.name,
                "inode": run.header.file.inode,
                "mtime_ns": run.header.file.mtime_ns,
                "status": run.status,
                "state": _WAITING if run.status == "waiting" else run.state,
                "lane": run.header.lane,
                "output": run.output_path,
                "waiting_for": run.waiting_for,
                **self._progress.get(run.id, {}),
            }
            for run in self._engine.active.values()
        ]
        by_status = {run["status"]: run["state"] for run in reversed(runs)}  # the first of each
        state = by_status.get("running") or by_status.get("waiting") or ("EXECUTING_TASK" if runs else AWAITING)
        view = {
            "state": "STOPPED" if self._stopped else state,
            "pid": os.getpid(),
            "started": self._started,
            "updated": timestamp(self._clock.now()),
            "model": self.model,
            "runs": runs,
            "unadmitted": [{"file": printable(file), "error": error} for file, error in self.unadmitted.items()],
            "companions": self.companions,
            "degraded": dict(self.degraded),
        }
        _publish(self._home, view)

    def stop(self) -> None:
        self._unsubscribe()
        self._stopped = True
        self._write_now()
