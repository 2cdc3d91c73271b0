"""Wakes the inbox when something happens in `commands/`. Only a hint: events may be lost, the scan is the truth.

The one module that imports watchdog.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchdog.events import (
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, EventQueue

from council.storage.command_drop import is_command_name

log = logging.getLogger(__name__)

# Created counts because link() makes a whole file without a close; modified does not: it comes with every write.
_KINDS: list[type[FileSystemEvent]] = [FileClosedEvent, FileMovedEvent, FileCreatedEvent, FileDeletedEvent]
_STOP_TIMEOUT_S = 5.0


class _Waker(FileSystemEventHandler):
    """Speaks up for names that count alone. The temporary neighbour of a drop would start a scan, and the rename that
    ends the drop would then find the daemon resting from it. A file that is taken is no news: its run took it."""

    def __init__(self, wake: Callable[[str], object]) -> None:
        self._wake = wake

    def on_any_event(self, event: FileSystemEvent) -> None:
        source, target = (os.path.basename(os.fsdecode(path)) for path in (event.src_path, event.dest_path))
        if target.endswith(".taken"):
            return
        whole = {FileClosedEvent: source, FileMovedEvent: target}.get(type(event), "")
        if is_command_name(source) or is_command_name(target):
            self._wake(whole)


class _Relay(EventQueue):
    """A queue that keeps only what ends its reader."""

    def __init__(self, waker: _Waker) -> None:
        super().__init__()
        self._waker = waker

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if isinstance(item, tuple):
            self._waker.on_any_event(item[0])
        else:
            super().put(item, block, timeout)


def watch(folder: Path, wake: Callable[[str], object]) -> Callable[[], None]:
    """Calls `wake` (from another thread) after changes in `folder`; the returned function ends it.

    `wake` gets the name of a file that was closed after writing or moved there, else an empty one. When the system cannot
    watch (no inotify left), that is logged, and the timed scan remains.
    """
    waker = _Waker(wake)
    if sys.platform.startswith("linux"):
        from watchdog.observers.inotify import InotifyObserver

        queue = _Relay(waker)

        class DirectObserver(InotifyObserver):
            """Hands each event to the waker in the thread that read it, not in a third one."""

            @property
            def event_queue(self) -> EventQueue:
                return queue

        # Full events tell of files moved in from elsewhere as moved, not as created.
        observer: BaseObserver = DirectObserver(generate_full_events=True)
    else:
        observer = Observer()
    try:
        observer.schedule(waker, str(folder), recursive=False, event_filter=_KINDS)
        observer.start()
    except OSError as error:
        log.warning("cannot watch %s (%s); only the timed scan finds new commands", folder, error.strerror)
        return lambda: None

    def stop() -> None:
        # its threads complain of events that come while they end
        logging.getLogger("watchdog").setLevel(logging.CRITICAL)
        observer.stop()
        observer.join(_STOP_TIMEOUT_S)

    return stop
