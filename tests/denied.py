"""`python -m tests.denied seccomp …` is `council …`, from which the kernel withholds something.

`seccomp`: no system call filter can be laid on; `limits`: no limit can be set; `namespaces`: none can be made.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

from council.cli.main import main

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_FIRST, _THIRD, _EVERY_BIT = 16, 32, 0xFFFFFFFF
_NAMESPACES = 0x7E020000
_NUMBERS = {
    "x86_64": {"prctl": 157, "seccomp": 317, "prlimit64": 302, "setrlimit": 160, "unshare": 272, "clone": 56, "clone3": 435},
    "aarch64": {"prctl": 167, "seccomp": 277, "prlimit64": 261, "setrlimit": 164, "unshare": 97, "clone": 220, "clone3": 435},
}  # fmt: skip
# Per system call: where in its arguments to look, the comparison, its value, and the answer when it is true.
_DENIED = {
    "seccomp": [("prctl", _FIRST, _EQUAL, 22, _EPERM), ("seccomp", 0, _ANY_BIT, _EVERY_BIT, _EPERM)],
    "limits": [("prlimit64", _THIRD, _ANY_BIT, _EVERY_BIT, _EPERM), ("setrlimit", 0, _ANY_BIT, _EVERY_BIT, _EPERM)],
    "namespaces": [
        ("unshare", _FIRST, _ANY_BIT, _NAMESPACES, _EPERM),
        ("clone", _FIRST, _ANY_BIT, _NAMESPACES, _EPERM),
        ("clone3", 0, _ANY_BIT, _EVERY_BIT, _ENOSYS),
    ],
}


def deny(what: str) -> None:
    """From now on this process and all that it starts are denied that."""
    numbers = _NUMBERS[platform.machine()]
    steps = []
    for name, where, compare, value, answer in _DENIED[what]:
        steps += [(_LOAD, 0, 0, 0), (_EQUAL, 0, 3, numbers[name])]
        steps += [(_LOAD, 0, 0, where), (compare, 0, 1, value), (_RETURN, 0, 0, answer)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    program = b"".join(struct.pack("<HBBI", *step) for step in steps)
    code = ctypes.create_string_buffer(program, len(program))
    held = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.create_string_buffer(held, len(held)), 0, 0) == 0, ctypes.get_errno()


if __name__ == "__main__":
    deny(sys.argv[1])
    sys.argv = ["council", *sys.argv[2:]]
    main()
