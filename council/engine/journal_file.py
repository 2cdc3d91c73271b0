"""The file under a journal: whole lines are appended to it, and what the disk refused does not stay in it.

A failed sync says nothing of what is on the disk, and a later one that succeeds says nothing of the bytes before it
(Linux marks them clean). So what follows the last good sync is cut off, and comes again with the next line.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Self

ROOM_BYTES = 4096  # one block of the disk; a first line is about 2 KB


class JournalFile:
    """Appends to one file. Raises OSError where the disk refuses."""

    def __init__(self, path: Path, fd: int, *, synced_bytes: int = 0) -> None:
        """`fd` is open for appending; `synced_bytes` of the file are taken for being on the disk."""
        self.path = path  # where it is opened again
        self._fd = fd
        self._synced_bytes = synced_bytes
        self._cut_to: int | None = None  # what lies behind this is still to be cut off
        self.room_bytes = (
            0  # at the start of a file that has no line yet: a first line of this length is written over it
        )

    @classmethod
    def create(cls, path: Path) -> Self:
        """An empty file that must not exist yet. Raises OSError."""
        return cls(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600))

    def make_room(self) -> None:
        """Room for a first line, on the disk: a sync that need not write where the file ends takes two thirds of the
        time. Raises OSError."""
        try:
            self.append(b" " * ROOM_BYTES, sync=True)
        except OSError:
            self.rest()
            raise
        self.room_bytes = ROOM_BYTES

    def append(self, line: bytes, *, sync: bool) -> None:
        """The whole line, or nothing; with `sync` it is on the disk, and all before it, when this returns."""
        fd = self._opened()
        if self._cut_to is not None:
            self._cut(fd, self._cut_to)
        if self.room_bytes:
            written = end = self._write_into_room(fd, line)
        else:
            written = os.write(fd, line)
            end = os.lseek(fd, 0, os.SEEK_CUR)
        if written != len(line):  # a full disk takes a part
            self._cut_later(fd, end - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if sync:
            try:
                os.fdatasync(fd)
            except OSError:
                self._cut_later(fd, self._synced_bytes)
                raise
            self._synced_bytes = end

    def _write_into_room(self, fd: int, line: bytes) -> int:
        """Over the room if the line has its length, else in its place; how much was written."""
        room_bytes, self.room_bytes, self._synced_bytes = self.room_bytes, 0, 0
        if len(line) != room_bytes:
            os.ftruncate(fd, 0)
            return os.write(fd, line)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_APPEND)
        try:
            return os.pwrite(fd, line, 0)
        finally:
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)

    def rest(self) -> None:
        """Gives the descriptor back until the next line: a crowd that waits in a queue needs none."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _opened(self) -> int:
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return self._fd

    def _cut(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)
        self._cut_to = None

    def _cut_later(self, fd: int, size: int) -> None:
        """Now if that is possible, else before the next line."""
        self._cut_to = size
        with contextlib.suppress(OSError):
            self._cut(fd, size)
