"""A sync of a file to the disk that goes on while the process computes.

The sync is the kernel's `fdatasync`, done by a thread of the C library (POSIX AIO, `aio_fsync`). A thread of Python would
need the interpreter's lock once to begin and once to say that it is done, and whoever computes holds it. Where the C
library's control block is not the one known here, or it has no thread to give, the sync happens in `wait` instead: later,
never less.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
from dataclasses import dataclass
from typing import Any

_SIGEV_NONE = 1  # nobody is told; `wait` asks


class _ControlBlock(ctypes.Structure):
    """`struct aiocb` of the GNU C library where pointers have 64 bits (its `aio.h`); it writes into this until the sync is
    done."""

    _fields_ = (
        ("fd", ctypes.c_int),
        ("list_operation", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("signal_value", ctypes.c_void_p),
        ("signal_number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest_of_signal", ctypes.c_char * 48),
        ("internal", ctypes.c_char * 72),
    )


@dataclass(frozen=True)
class _Aio:
    fsync: Any
    error: Any
    result: Any
    suspend: Any


@functools.cache
def _aio() -> _Aio | None:
    """The C library's calls, None where they are not those that are known here."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not _is_glibc():
        return None
    library = ctypes.CDLL(None, use_errno=True)
    pointer = ctypes.POINTER(_ControlBlock)
    library.aio_fsync.argtypes = [ctypes.c_int, pointer]
    library.aio_error.argtypes = [pointer]
    library.aio_return.argtypes = [pointer]
    library.aio_return.restype = ctypes.c_ssize_t
    library.aio_suspend.argtypes = [ctypes.POINTER(pointer), ctypes.c_int, ctypes.c_void_p]
    return _Aio(library.aio_fsync, library.aio_error, library.aio_return, library.aio_suspend)


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc ")
    except (ValueError, OSError):  # a name that only that library knows
        return False


class BackgroundSync:
    """One sync at a time. The descriptor must stay open until `wait` has returned or raised."""

    def __init__(self) -> None:
        self._fd = -1  # of a sync that nobody waited for yet
        self._aio: _Aio | None = None  # what it is done with; None: it is not begun
        self._block = _ControlBlock()
        self._pointer = ctypes.pointer(self._block)
        self._list = (type(self._pointer) * 1)(self._pointer)

    @property
    def under_way(self) -> bool:
        """Whether a sync was begun that nobody waited for yet."""
        return self._fd >= 0

    def begin(self, fd: int) -> None:
        """What was written to `fd` so far begins to go to the disk. Nothing may be under way."""
        assert self._fd < 0, "one sync at a time"
        self._fd, self._aio = fd, _aio()
        if self._aio is not None:
            ctypes.memset(self._pointer, 0, ctypes.sizeof(_ControlBlock))
            self._block.fd, self._block.notify = fd, _SIGEV_NONE
            if self._aio.fsync(os.O_DSYNC, self._pointer) != 0:  # as many as there may be are under way
                self._aio = None

    def wait(self) -> None:
        """The sync that was begun is done when this returns; at once where none was. Raises OSError when the disk refused."""
        if self._fd < 0:
            return
        if self._aio is None:
            fd, self._fd = self._fd, -1
            os.fdatasync(fd)
            return
        while (error := self._aio.error(self._pointer)) == errno.EINPROGRESS:
            self._aio.suspend(self._list, 1, None)
        self._aio.result(self._pointer)  # gives its place back
        self._fd = -1
        if error:
            raise OSError(error, os.strerror(error))

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # somebody who waited would have been told; the block must outlive the sync
            self.wait()
