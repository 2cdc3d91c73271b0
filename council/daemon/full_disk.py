"""A daemon that is started on a disk without room: it waits, as one does whose disk fills up later."""

from __future__ import annotations

import logging
import signal
import sqlite3
import threading
from collections.abc import Callable

from council.app import App
from council.daemon.state import publish_start
from council.errors import EXIT_INTERRUPTED, EXIT_OK, StorageFailed
from council.settings import Home, Settings
from council.storage.files import FileLock

log = logging.getLogger(__name__)


def app_when_there_is_room(build: Callable[[], App], home: Home, settings: Settings) -> App | int:
    """The app that `build` makes; an exit code when a signal ends the wait for room. Raises what `build` raises for any other
    reason, and DaemonRunning."""
    lock, signals, stopped = FileLock(home.lock_file), list[int](), threading.Event()

    def stop(number: int, _: object) -> None:
        signals.append(number)
        stopped.set()

    while True:
        try:
            return build()
        except StorageFailed as error:
            no_room = error.data.get("errno") in ("ENOSPC", "EDQUOT", "EIO")
            if not no_room and error.data.get("sqlite_code") not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise
            waits_for = error
        lock.acquire()  # so that nobody else begins, and `council status` finds who waits
        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            log.error("%s; the daemon starts when it can, and tries every %g s", waits_for, settings.storage_retry_s)
            publish_start(home, settings.model, waits_for)
            if stopped.wait(settings.storage_retry_s):
                return EXIT_OK if signals[0] == signal.SIGTERM else EXIT_INTERRUPTED
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            lock.release()
