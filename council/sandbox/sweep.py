"""A program that `council sandbox check` runs in the cage: it tries every system call that is not allowed there.

Needs the standard library alone, as each job does. Nothing here pretends: it calls the C library directly.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

_READ_WRITE_EXECUTE, _PRIVATE_ANONYMOUS = 7, 0x22
_DESCRIPTORS = 256


def sweep(argument: dict[str, Any]) -> dict[str, Any]:
    """Tries system calls, and returns those that were not refused. `numbers` bounds the calls, `left_out` are not tried."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.mmap.restype = ctypes.c_void_p
    left_out, passed = set(argument["left_out"]), []
    for number in range(argument["numbers"]):
        if number in left_out:
            continue
        ctypes.set_errno(0)
        answer = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6)
        if (answer, ctypes.get_errno()) != (-1, errno.EPERM):
            passed.append(number)
    memory = libc.mmap(None, ctypes.c_size_t(4096), _READ_WRITE_EXECUTE, _PRIVATE_ANONYMOUS, -1, ctypes.c_long(0))
    return {
        "tried": argument["numbers"] - len(left_out),
        "passed": passed,
        "executable_memory": memory != ctypes.c_void_p(-1).value,
        "descriptors": [fd for fd in range(_DESCRIPTORS) if _is_open(fd)],
        "environment": dict(os.environ),
    }


def _is_open(fd: int) -> bool:
    try:
        os.lseek(fd, 0, os.SEEK_CUR)
    except OSError as error:
        return error.errno != errno.EBADF
    return True
