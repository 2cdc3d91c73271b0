"""A command that a door drops, and stays for: its receipt, or why it could not become a run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from council.commands.file_formats import NotACommand, read_document
from council.desk.desk import Desk
from council.desk.failed_folder import refused_file
from council.engine.receipts import Receipt
from council.engine.records import NO_HASHES
from council.errors import CommandInvalid, CouncilError, DaemonRunning, UsageError, WaitTimeout
from council.storage.command_drop import NOTE_ENDING, DroppedFile, drop
from council.storage.files import FileLock

_POLL_S = 0.05
_PLACE = re.compile(r"^line [0-9]+(?:, column [0-9]+)?: ")
_MAX_DRAINS = 3  # a file that is not taken up three times is none that ever will be

Drain = Callable[[str, float], None]  # takes that file off the inbox, in at most so many seconds; the door hands it in
Found = TypeVar("Found")
Show = Callable[[dict[str, Any] | None], None]


def silent() -> AbstractContextManager[Show]:
    """Shows nothing of the run while its answer is waited for."""
    return nullcontext(lambda run: None)


def until(look: Callable[[], Found | None], within_s: float) -> Found | None:
    """The first thing that `look` finds within so many seconds; None where it finds none. It looks at least once."""
    deadline = time.monotonic() + within_s
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return found


async def awaited(look: Callable[[], Found | None], within_s: float) -> Found | None:
    """Finds like `until`, for a door at which many wait: each look takes a thread, and the time between them takes none."""
    deadline = time.monotonic() + within_s
    while True:
        found = await asyncio.to_thread(look)
        if found is not None or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(_POLL_S)


class Errand:
    """A dropped command whose receipt is waited for. `dropped`: where it lies."""

    def __init__(
        self, desk: Desk, name: str, data: bytes, there: DroppedFile | None = None, *, is_typed: bool = False
    ) -> None:
        """Drops the command, unless it lies `there` already. `is_typed`: a door wrote it for what a person typed, so nobody
        corrects the file, and none is left when it is refused. Raises PathRefused, StorageFailed."""
        self._desk = desk
        self._data = data
        self._is_typed = is_typed
        self.drains = 0  # how often nobody but this process could work on it
        newest = desk.ledger.newest(1, ended_only=True)
        self._ended_before_ns = max((entry.ended_ns or 0 for entry in newest), default=0)
        self._failed_before = _names(desk.home.failed)
        self.dropped = there or drop(desk.home.commands, name, data)

    def wait(
        self, timeout_s: float, drain: Drain, progress: Callable[[], AbstractContextManager[Show]] = silent
    ) -> Receipt:
        """The receipt. Raises CommandInvalid (set aside), and as `until`."""
        return self.until(self.answer, timeout_s, drain, progress)

    def until(
        self,
        look: Callable[[], Found | None],
        timeout_s: float,
        drain: Drain,
        progress: Callable[[], AbstractContextManager[Show]] = silent,
    ) -> Found:
        """The first thing that `look` finds. Without a daemon `drain` is called for this one file. `progress` opens what shows a
        daemon's work. Raises WaitTimeout, or what `look` and `drain` raise."""
        lock_file, name = self._desk.home.lock_file, self.dropped.path.name
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if FileLock.holder(lock_file) is None and self.dropped.path.exists():
                if self.drains == _MAX_DRAINS:
                    raise UsageError(f"{name} was not accepted.", fix="`council validate` says why")
                try:
                    drain(name, deadline - time.monotonic())
                    self.drains += 1
                except DaemonRunning as error:  # another process was quicker, and drains a file of its own
                    if "database" in error.data:  # of a copy of this home: it answers nobody here
                        raise
                except CouncilError as error:
                    if self.dropped.path.exists():
                        stays = f"{name} stays in commands/ until a daemon runs"
                        error.fix = f"{error.fix.rstrip('.')}; {stays}" if error.fix else stays
                    raise
            with progress() as show:
                served = True  # once the daemon that was to answer has gone, the outer loop drains
                while served and time.monotonic() < deadline:
                    served = FileLock.holder(lock_file) is not None
                    if (found := look()) is not None:
                        return found
                    if served:
                        show(self.run())
                    time.sleep(_POLL_S)
        fix = "`council status` shows it; `council show last` prints the answer when it is ready"
        raise WaitTimeout(f"no answer to {name} within {timeout_s:g} s; it continues.", fix=fix)

    def run(self) -> dict[str, Any] | None:
        """The run of this file as the daemon publishes it, with the run of its lane that it stands `behind`; None while there is
        none."""
        try:
            state = json.loads(self._desk.home.state_file.read_bytes())
        except (OSError, ValueError):
            return None
        before: dict[str, dict[str, Any]] = {}  # the first of each lane: it has its turn
        for run in state.get("runs", []):
            first = before.setdefault(run.get("lane"), run)
            if run.get("inode") == self.dropped.inode:
                return run if first is run or run.get("status") != "queued" else {**run, "behind": first["run_id"]}
        return None

    def answer(self) -> Receipt | None:
        """The receipt of this drop, or the one that its id is bound to. Raises CommandInvalid for one that was set aside."""
        receipts, dropped = self._desk.receipts, self.dropped
        for receipt in receipts.ended_since(self._ended_before_ns, file=dropped.path.name):
            found = receipt.command_file
            same_drop = (found.inode, found.mtime_ns) == (dropped.inode, dropped.mtime_ns)
            if same_drop and found.sha256 in (dropped.sha256, *NO_HASHES):
                return receipt
        if dropped.path.exists():
            return None
        failed = self._desk.home.failed
        for name in sorted(_names(failed) - self._failed_before):
            if name.endswith(NOTE_ENDING):  # of a forget command the note alone is kept
                note, aside = failed / name, failed / name.removesuffix(NOTE_ENDING)
                is_ours = aside.name.startswith(self.dropped.path.stem) and not aside.exists()
            else:
                note, is_ours = failed / f"{name}{NOTE_ENDING}", False
                with contextlib.suppress(FileNotFoundError):
                    is_ours = (failed / name).stat().st_ino == self.dropped.inode
            if is_ours and note.exists():
                refused = refused_file(note)
                if self._is_typed:
                    for file in (note, failed / name):  # the note first: alone it would be another's
                        file.unlink(missing_ok=True)
                    why = _PLACE.sub("", refused.why).rstrip(".") or "the command was refused"
                    error = CommandInvalid(f"{why}.", fix=refused.fix)
                else:
                    why = refused.why or f"{note.name} says why it was refused"
                    error = CommandInvalid(why, fix=f"{refused.fix}; see {os.path.relpath(note)}".lstrip("; "))
                error.code = refused.code or error.code
                raise error
        bound = receipts.bound(*self._key) if self._key else None
        return receipts.read(bound.run_id) if bound is not None else None

    @cached_property
    def _key(self) -> tuple[str, str | None] | None:
        with contextlib.suppress(CommandInvalid, NotACommand):
            value = read_document(self.dropped.path.name, self._data).value
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                return value["id"], value.get("user")
        return None


def control(desk: Desk, type_: str, user: str | None = None, **keys: Any) -> Errand:
    """A command that a person typed, on behalf of `user`, else as the steward, dropped. Where no run is executed for it, an
    offline desk can drain it. Raises PathRefused, StorageFailed."""
    body = {"type": type_, **({"user": user} if user else {}), **keys}
    return Errand(desk, f"{type_}.json", json.dumps(body).encode(), is_typed=True)


def wait_for_end(desk: Desk, run_id: str, timeout_s: float) -> Receipt:
    """The receipt of a run that is about to end. Raises WaitTimeout."""
    if (receipt := until(lambda: desk.receipts.read(run_id), timeout_s)) is None:
        raise WaitTimeout(f"run {run_id} has not ended within {timeout_s:g} s.", fix="`council status` shows it")
    return receipt


def _names(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except FileNotFoundError:
        return set()
