"""The reference of `pickup`: what the system itself needs. inotify through ctypes, read the file, then append and sync.

Prints one JSON line per file: when its bytes were read, and when a new 1 KB file was created, appended to and synced.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import time
from pathlib import Path

_IN_CLOSE_WRITE, _IN_MOVED_TO = 0x8, 0x80  # <sys/inotify.h>
_HEADER = struct.Struct("iIII")  # wd, mask, cookie, length of the name
_RECORD = b"x" * 1023 + b"\n"


def main(folder: Path, journals: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), _IN_CLOSE_WRITE | _IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    print("{}", flush=True)
    while True:
        events = os.read(fd, 1 << 16)
        position = 0
        while position < len(events):
            length = _HEADER.unpack_from(events, position)[3]
            start = position + _HEADER.size
            name = os.fsdecode(events[start : start + length].rstrip(b"\0"))
            position = start + length
            if not name.startswith("."):  # else a temporary neighbour on its way to its name
                _pick_up(folder / name, journals / f"{name}.journal")


def _pick_up(path: Path, journal: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.read(fd, 1 << 20)
    os.close(fd)
    read_ns = time.monotonic_ns()
    fd = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.write(fd, _RECORD)
    os.fdatasync(fd)
    synced_ns = time.monotonic_ns()
    os.close(fd)
    print(json.dumps({"name": path.name, "read_ns": read_ns, "synced_ns": synced_ns}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
