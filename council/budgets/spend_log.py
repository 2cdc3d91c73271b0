"""What was spent: reservations and settlements in logs that survive a kill, one of each run and one of each day."""

from __future__ import annotations

import errno
import logging
import os
from collections import OrderedDict
from datetime import date
from pathlib import Path

import msgspec

from council.errors import StorageFailed
from council.ids import Clock

log = logging.getLogger(__name__)

_MAX_OPEN_LOGS = 16  # as many as runs commonly go side by side, and the day's


class Reserved(msgspec.Struct, frozen=True, tag="begin", tag_field="t", omit_defaults=True):
    """A call is about to be made: its worst case. `usd` is None when the price is unknown. In a run's own log `run_id` is
    empty."""

    call: str
    tokens: int
    usd: float | None = 0.0
    run_id: str = ""
    closing: bool = False


class Settled(msgspec.Struct, frozen=True, tag="end", tag_field="t", omit_defaults=True):
    """What the call of the same name came to."""

    call: str
    tokens: int
    usd: float | None = 0.0
    seconds: float = 0.0
    run_id: str = ""


class NotMade(msgspec.Struct, frozen=True, tag="void", tag_field="t", omit_defaults=True):
    """The call of that name was never made: its reservation counts for nothing."""

    call: str
    run_id: str = ""


Entry = Reserved | Settled | NotMade


class Totals(msgspec.Struct, frozen=True):
    """Spent and reserved together. `priced_usd` is what the calls of known price cost; `unpriced` counts the others."""

    calls: int = 0
    tokens: int = 0
    priced_usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0

    @property
    def usd(self) -> float | None:
        """None as soon as one call's price is unknown."""
        return None if self.unpriced else self.priced_usd

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.priced_usd + other.priced_usd,
            self.seconds + other.seconds,
            self.unpriced + other.unpriced,
        )


class _OpenFiles:
    """Files that were appended to last, a few of them left open: a daemon has a log for every run that it ever had."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Path, int] = OrderedDict()  # the one used last at the end

    def append(self, path: Path, data: bytes) -> int:
        """All of `data` at the end of a file, which is made where there is none; where it ends then. Raises OSError."""
        fd = self._open.get(path)
        if fd is not None and _is_at(path, fd):
            self._open.move_to_end(path)
        else:
            fd = self._reopened(path)
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.lseek(fd, 0, os.SEEK_CUR)

    def _reopened(self, path: Path) -> int:
        old = self._open.pop(path, None)  # of a file that somebody removed or renamed
        while old is not None or len(self._open) >= self._most:
            os.close(old if old is not None else self._open.popitem(last=False)[1])
            old = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        self._open[path] = fd
        return fd


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


_FILES = _OpenFiles(_MAX_OPEN_LOGS)


class SpendLog:
    """Reservations and settlements in one append-only file, unsynced: a kill loses none, a power cut at most the last.
    Several processes may append to it, as a daemon and an evaluation to their day's. Where somebody removes or renames it,
    it is begun anew, and what was counted stays counted until a restart."""

    def __init__(self, path: Path) -> None:
        """Raises StorageFailed."""
        self._path = path
        self._open: dict[tuple[str, str], Reserved] = {}  # not settled: in flight, or cut off by a kill
        self._settled = Totals()
        self._known_bytes = 0  # of the file
        self.catch_up()
        self._cut_off = [entry for entry in self._open.values() if entry.closing]

    def catch_up(self) -> None:
        """Counts what others appended meanwhile. Raises StorageFailed."""
        try:
            size = os.stat(self._path).st_size
            if size < self._known_bytes:  # another file
                self._known_bytes = 0
            if size <= self._known_bytes:
                return
            with self._path.open("rb") as stream:
                stream.seek(self._known_bytes)
                data = stream.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("read", error) from error
        *lines, last = data.split(b"\n")
        damaged = sum(not self._load(line) for line in lines if line)
        if damaged:
            log.warning("%s holds lines that cannot be read (%d): what they say is not counted", self._path, damaged)
        if self._load(last):
            self._known_bytes += len(data)
        else:  # torn, or being written
            self._known_bytes += len(data) - len(last)

    @property
    def under_way(self) -> int:
        """How many calls have no settlement yet."""
        return len(self._open)

    def take_over_closing(self) -> Reserved | None:
        """The reservation of a closing call that was in flight when an earlier process died, once."""
        return self._cut_off.pop() if self._cut_off else None

    def withdraw(self, entry: Reserved) -> None:
        """The call was not made. Where that cannot be noted, it counts again after a restart: on the safe side."""
        self._open.pop((entry.run_id, entry.call), None)
        try:
            self.append(NotMade(entry.call, entry.run_id))
        except StorageFailed as error:
            log.warning("a reservation that came to nothing stands: %s", error)

    def append(self, entry: Entry) -> None:
        """Raises StorageFailed."""
        line = b"\n" + msgspec.json.encode(entry)  # newline first: a torn line spoils only itself
        try:
            end = _FILES.append(self._path, line)
        except OSError as error:
            raise _failed("note", error) from error
        if end < self._known_bytes:  # in another file
            self._known_bytes = 0
        if end - len(line) > self._known_bytes:  # somebody else's stand before it
            self.catch_up()
        else:
            self._note(entry)
            self._known_bytes = end

    def totals(self) -> Totals:
        """Costs as much as there are calls in flight, however many were made."""
        return sum((_totals_of(entry) for entry in self._open.values()), self._settled)

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, Reserved):
            self._open[(entry.run_id, entry.call)] = entry
            return
        self._open.pop((entry.run_id, entry.call), None)
        if isinstance(entry, Settled):
            self._settled += _totals_of(entry)

    def _load(self, line: bytes) -> bool:
        """False for one that is empty, or torn by a power cut."""
        try:
            self._note(msgspec.json.decode(line, type=Entry))
        except msgspec.MsgspecError:
            return False
        return True


def _failed(verb: str, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"cannot {verb} what is spent ({error.strerror}).",
        fix="make room on the disk and check the folder's permissions",
        errno=error.errno,
    )


def _totals_of(entry: Reserved | Settled) -> Totals:
    seconds = entry.seconds if isinstance(entry, Settled) else 0.0
    return Totals(1, entry.tokens, entry.usd or 0.0, seconds, unpriced=int(entry.usd is None))


class DayLogs:
    """One log per day (UTC), so that a day's limit needs no arithmetic with times."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._day: date | None = None
        self._log: SpendLog | None = None

    def today(self) -> SpendLog:
        day = self._clock.now().date()
        if self._log is None or day != self._day:
            self._day, self._log = day, SpendLog(self._folder / f"{day.isoformat()}.jsonl")
        return self._log

    def seconds_to_midnight(self) -> float:
        """Until the next day (UTC) begins."""
        now = self._clock.now()
        return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)
