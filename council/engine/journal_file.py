"""The file under a journal: whole lines follow one another, and what the disk refused does not stay in it.

While it is written to, the file is longer than its lines: newlines fill a room for the next ones. A sync of bytes that the
disk already has a place for need not write where the file ends, and takes about half the time. What was written since
the last sync may be missing after a power cut, page by page; `torn_at` tells that from damage.

A line may be on its way to the disk while its writer computes; nothing that depends on it may begin before `secure` has
returned. At most one such line is not on the disk at any time.

A failed sync says nothing of what is on the disk, and a later one that succeeds says nothing of the bytes before it
(Linux marks them clean). So what follows the last good sync is cut off; lines that were accepted are kept in memory and
come again, before any other. That the file ends there is on the disk before anything takes the place: a power cut would
leave a mixture of both.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import Self

from council.storage.background_sync import BackgroundSync

ROOM = b"\n"
UNWRITTEN = ROOM + b"\0"  # what a file holds where no line was written: zeros, where a power cut met it while it grew
FIRST_ROOM_BYTES = 4096  # one block of the disk; a first line is about 2 KB
_ROOM_BYTES = 32 << 10  # a dozen turns
_UNSURE_BYTES = 512 << 10  # more than is ever written between two syncs: a step's line and the unsynced ones before it
_SECTOR_BYTES = 512  # what a disk writes whole; pages are a multiple of it
# Where a hole ends: with room, or with the zeros of a file that had grown, and a line's newline may come first behind it.
_END_OF_HOLE = re.compile(rb"(?:(?<=\n\n)|(?<=\0))(?=\n?[^\n\0])")


class JournalFile:
    """Appends to one file. Raises OSError where the disk refuses."""

    def __init__(self, path: Path, fd: int, *, synced_bytes: int = 0) -> None:
        """`fd` is open for writing, or -1; the file holds `synced_bytes`, all of them lines that are on the disk."""
        self.path = path  # where it is opened again
        self._fd = fd
        self._end = self._synced_bytes = synced_bytes  # of the lines
        self._size: int | None = synced_bytes  # of the file, with its room; None: something is to be cut off first
        self._refused = False  # the disk may hold some of what is cut off
        self._is_foreign = False  # the lines are a former process's, who may not have synced the last
        self._sync = BackgroundSync()
        self._syncing = b""  # the line that is on its way to the disk; or that never got there, and is owed
        self._syncing_end = 0  # where it ends in the file

    @classmethod
    def found(cls, path: Path, *, size_bytes: int, lines_bytes: int) -> Self:
        """The file of a former process, at rest. What follows its lines is cut off before anything is written."""
        file = cls(path, -1, synced_bytes=lines_bytes)
        file._size = size_bytes if size_bytes == lines_bytes else None
        file._is_foreign = True
        return file

    @classmethod
    def create(cls, path: Path) -> Self:
        """An empty file that must not exist yet. Raises OSError."""
        return cls(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def make_room(self) -> None:
        """Room for a first line, on the disk. Raises OSError."""
        try:
            self._size = os.pwrite(self._fd, ROOM * FIRST_ROOM_BYTES, 0)
            os.fdatasync(self._fd)
        except OSError:
            self.rest()
            raise

    def append(self, line: bytes, *, sync: bool, wait: bool = True) -> None:
        """The whole line, or nothing; with `sync` it is on the disk, and all before it, when this returns. Without `wait` it is
        on its way there, and there when `secure` returns."""
        if not sync:
            if self._syncing and not self._sync.under_way:  # it is owed, and comes first
                self.secure()
            self._write(line, room_bytes=0)
            return
        self.secure()
        if wait:
            self._write_and_sync(line)
        else:
            fd = self._write(line, room_bytes=_ROOM_BYTES)
            self._syncing, self._syncing_end = line, self._end
            self._sync.begin(fd)

    def secure(self) -> None:
        """What was appended to be synced is on the disk when this returns. Raises OSError; then a line that was on its way
        there is owed, and written again by the next call. What a former process wrote is written again as well: a sync of it
        may have failed."""
        self._settle()
        if self._is_foreign:
            self._write_foreign_again()
            self._is_foreign = False
        if self._syncing:
            self._write_and_sync(self._syncing)
            self._syncing = b""

    def rest(self) -> None:
        """Gives the descriptor back until the next line: a crowd that waits in a queue needs none."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # the line is owed
                self._settle()
            os.close(self._fd)
            self._fd = -1

    def give_back_room(self) -> None:
        """Little more is written: what room is left goes."""
        if self._size != self._end:
            with contextlib.suppress(OSError):  # whoever reads the file passes over it
                self._cut(self._opened())

    def close(self) -> None:
        """Nothing more is written, but for a line that is on its way, or owed, once more: who must know that it is on the disk
        calls `secure`."""
        if self._syncing:
            with contextlib.suppress(OSError):
                self.secure()
        self.give_back_room()
        self.rest()

    def _settle(self) -> None:
        """Waits for a sync that is under way. Raises OSError."""
        if not self._sync.under_way:
            return
        try:
            self._sync.wait()
        except OSError:
            self._lose_unsynced()
            raise
        self._synced_bytes, self._syncing = self._syncing_end, b""

    def _write_foreign_again(self) -> None:
        fd = self._opened()
        if self._size is None:
            self._cut(fd)
        start = max(0, self._end - _UNSURE_BYTES)
        with self.path.open("rb") as stream:
            stream.seek(start)
            tail = stream.read(self._end - start)
        if os.pwrite(fd, tail, start) != self._end - start:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fdatasync(fd)

    def _write_and_sync(self, line: bytes) -> None:
        self._sync_now(self._write(line, room_bytes=_ROOM_BYTES))
        self._synced_bytes = self._end

    def _sync_now(self, fd: int) -> None:
        """Nothing may be under way: the system tells of what it could not write once, to either of two syncs."""
        try:
            os.fdatasync(fd)
        except OSError:
            self._lose_unsynced()
            raise

    def _lose_unsynced(self) -> None:
        self._end = self._synced_bytes
        self._refuse(self._fd)

    def _write(self, line: bytes, *, room_bytes: int) -> int:
        """`line` at the end of the lines; where it makes the file longer, with more room behind it if the disk has some. The
        descriptor."""
        fd = self._opened()
        if self._size is None or self._refused:
            self._settle()
            self._cut(fd)
            self._sync_now(fd)
            self._refused = False
        assert self._size is not None
        end = self._end + len(line)
        if end <= self._size:
            room_bytes = 0
        try:
            self._put(fd, line + ROOM * room_bytes if room_bytes else line)
        except OSError:
            if not room_bytes:
                raise
            self._cut(fd)
            self._put(fd, line)
            self._refused = False  # the same bytes stand there, and nothing else
        self._end = end
        return fd

    def _put(self, fd: int, data: bytes) -> None:
        try:
            if os.pwrite(fd, data, self._end) < len(data):  # a full disk takes a part
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            self._refuse(fd)
            raise
        self._size = max(self._size or 0, self._end + len(data))

    def _opened(self) -> int:
        if self._fd < 0:
            fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            if (
                self._size is not None and os.fstat(fd).st_size != self._size
            ):  # a line would go into others, or past them
                os.close(fd)
                raise OSError(errno.ESTALE, "somebody else has changed it; a restart reads it anew")
            self._fd = fd
        return self._fd

    def _cut(self, fd: int) -> None:
        os.ftruncate(fd, self._end)
        self._size = self._end

    def _refuse(self, fd: int) -> None:
        """What lies behind the lines goes: now if that is possible, else before the next line."""
        self._size = None
        self._refused = True
        with contextlib.suppress(OSError):
            self._cut(fd)


def torn_at(data: bytes, position: int) -> bool:
    """Whether pages of `data` from `position` on, where its lines end, never reached the disk: they hold room up to their
    end (zeros, where the file was not as long before), and lines follow."""
    ends = _END_OF_HOLE.finditer(data, position + 1)
    return any(end.start() % _SECTOR_BYTES == 0 for end in ends)
