"""Wakes the inbox when something happens in `commands/`. Only a hint: events may be lost, the scan is the truth.

The one module that imports watchdog.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from council.storage.drop import is_command_name

log = logging.getLogger(__name__)

# Created counts because link() makes a whole file without a close; modified does not: it comes with every write.
_KINDS: list[type[FileSystemEvent]] = [FileClosedEvent, FileMovedEvent, FileCreatedEvent, FileDeletedEvent]
_STOP_TIMEOUT_S = 5.0


class _Waker(FileSystemEventHandler):
    def __init__(self, wake: Callable[[str], object]) -> None:
        self._wake = wake

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._wake("")

    def on_closed(self, event: FileSystemEvent) -> None:
        self._wake(os.path.basename(os.fsdecode(event.src_path)))

    def on_moved(self, event: FileSystemEvent) -> None:
        self._wake(os.path.basename(os.fsdecode(event.dest_path)))


def watch(folder: Path, wake: Callable[[str], object]) -> Callable[[], None]:
    """Calls `wake` (from another thread) after changes in `folder`, with the name of a file that was closed after writing
    or moved there, else with an empty one; what is returned ends it. When the system cannot
    watch (no inotify left), that is said, and the timed scan remains."""
    observer = Observer()
    try:
        observer.schedule(_Waker(wake), str(folder), recursive=False, event_filter=_KINDS)
        observer.start()
    except OSError as error:
        log.warning("cannot watch %s (%s); the timed scan alone finds new commands", folder, error.strerror)
        return lambda: None

    def stop() -> None:
        observer.stop()
        observer.join(_STOP_TIMEOUT_S)

    return stop
