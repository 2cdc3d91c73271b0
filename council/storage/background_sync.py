"""A sync of a file to the disk that goes on while the process computes.

The sync is the kernel's `fdatasync`, done by a thread of the C library (POSIX AIO, `aio_fsync`). A thread of Python would
need the interpreter's lock once to begin and once to say that it is done, and whoever computes holds it. Where the C
library's control block is not the one known here, or it has no thread to give, the sync happens in `begin` instead.

Not for a process that was forked off and goes on in Python: the C library takes its parent's threads for its own.
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
        ("internal", ctypes.c_char * 16),
        ("error", ctypes.c_int),
        ("result", ctypes.c_char * 52),
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
    library = _library() if ctypes.sizeof(ctypes.c_void_p) == 8 and _is_glibc() else None
    if library is None:
        return None
    pointer = ctypes.POINTER(_ControlBlock)
    library.aio_fsync.argtypes = [ctypes.c_int, pointer]
    library.aio_error.argtypes = [pointer]
    library.aio_return.argtypes = [pointer]
    library.aio_return.restype = ctypes.c_ssize_t
    library.aio_suspend.argtypes = [ctypes.POINTER(pointer), ctypes.c_int, ctypes.c_void_p]
    return _Aio(library.aio_fsync, library.aio_error, library.aio_return, library.aio_suspend)


def _library() -> ctypes.CDLL | None:
    """Which part of the C library has the calls: before its version 2.34 that is one of its own."""
    for name in (None, "librt.so.1"):
        with contextlib.suppress(OSError):  # there is no such part
            library = ctypes.CDLL(name)
            if hasattr(library, "aio_fsync"):
                return library
    return None


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc ")
    except (ValueError, OSError):  # a name that only that library knows
        return False


class BackgroundSync:
    """One sync at a time. The descriptor must stay open until `wait` has returned or raised."""

    def __init__(self) -> None:
        self.under_way = False  # True: a sync was begun that nobody waited for yet
        self._aio: _Aio | None = None  # what it is done with; None: it was done when it was begun
        self._block = _ControlBlock(notify=_SIGEV_NONE)
        self._pointer = ctypes.pointer(self._block)
        self._list = (type(self._pointer) * 1)(self._pointer)

    def begin(self, fd: int) -> None:
        """What was written to `fd` so far begins to go to the disk. Nothing may be under way."""
        assert not self.under_way, "one sync at a time"
        self._block.fd = fd
        self._block.error = errno.ECANCELED  # so it stays where an exception comes before the C library takes it
        self._aio = _aio()
        self.under_way = True
        if (
            self._aio is None or self._aio.fsync(os.O_DSYNC, self._pointer) != 0
        ):  # as many as there may be are under way
            self._aio = None
            self._block.error = _synced(fd)

    def wait(self) -> None:
        """The sync that was begun is done when this returns; at once where none was. Raises OSError when the disk refused."""
        if not self.under_way:
            return
        error = self._block.error if self._aio is None else self._ended(self._aio)
        self.under_way = False
        if error:
            raise OSError(error, os.strerror(error))

    def _ended(self, aio: _Aio) -> int:
        while (error := int(aio.error(self._pointer))) == errno.EINPROGRESS:
            aio.suspend(self._list, 1, None)  # a signal ends it early
        aio.result(self._pointer)  # gives its place back
        return error

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # somebody who waited would have been told; the block must outlive the sync
            self.wait()


def _synced(fd: int) -> int:
    """The error's number, 0 when what was written to `fd` is on the disk."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
