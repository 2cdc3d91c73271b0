"""The file under a journal: whole lines are appended to it, and what the disk refused does not stay in it.

A failed sync says nothing of what is on the disk, and a later one that succeeds says nothing of the bytes before it
(Linux marks them clean). So what follows the last good sync is cut off, and comes again with the next line.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path


class JournalFile:
    """Appends to one file. Raises OSError where the disk refuses."""

    def __init__(self, path: Path, fd: int, *, synced_bytes: int = 0) -> None:
        """`fd` is open for appending; `synced_bytes` of the file are taken for being on the disk."""
        self._path = path
        self._fd = fd
        self._synced_bytes = synced_bytes
        self._cut_to: int | None = None  # what lies behind this is still to be cut off

    def append(self, line: bytes, *, sync: bool) -> None:
        """The whole line, or nothing; with `sync` it is on the disk, and all before it, when this returns."""
        fd = self._opened()
        if self._cut_to is not None:
            self._cut(fd, self._cut_to)
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

    def rest(self) -> None:
        """Gives the descriptor back until the next line: a crowd that waits in a queue needs none."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _opened(self) -> int:
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return self._fd

    def _cut(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)
        self._cut_to = None

    def _cut_later(self, fd: int, size: int) -> None:
        """Now if that is possible, else before the next line."""
        self._cut_to = size
        with contextlib.suppress(OSError):
            self._cut(fd, size)
