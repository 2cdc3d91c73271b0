"""`python -m tests.faults … -- run --once`: the real `council`, whose system calls fail or kill on demand.

Nothing in the product knows of this: the calls that change the disk (`open` for writing, `write`, `fsync`, `fdatasync`,
`rename`, `replace`, `unlink`, `mkdir`, `ftruncate`, and renameat2 behind `rename_noreplace`) are counted, and at the
chosen one the process kills itself, or the call fails.

    COUNCIL_TEST_FAULT=kill-before:17     SIGKILL before the 17th change
    COUNCIL_TEST_FAULT=kill-after:17      SIGKILL after it
    COUNCIL_TEST_FAULT=fail:fsync:3:EIO   the 3rd fsync or fdatasync fails with EIO
    COUNCIL_TEST_FAULT=count              at the end print the number of changes to the file COUNCIL_TEST_FAULT_LOG

Every change is also logged to COUNCIL_TEST_FAULT_LOG, one line each, when that is set.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

_CHANGES = ("write", "fsync", "fdatasync", "rename", "replace", "unlink", "mkdir", "ftruncate", "link")


class Faults:
    """Counts changes and acts at the chosen one."""

    def __init__(self, spec: str, log: str) -> None:
        self._kind, *rest = spec.split(":")
        self._at = int(rest[-1]) if self._kind.startswith("kill") else 0
        self._fail = (rest[0], int(rest[1]), getattr(errno, rest[2])) if self._kind == "fail" else None
        self._count = 0
        self._per_call: dict[str, int] = {}
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if log else -1
        self._write = os.write

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*arguments: Any, **keywords: Any) -> Any:
            if name == "write" and arguments[0] in (1, 2):
                return call(*arguments, **keywords)
            self._before(name, arguments)
            result = call(*arguments, **keywords)
            if self._kind == "kill-after" and self._count == self._at:
                self._die()
            return result

        return counted

    def _before(self, name: str, arguments: tuple[Any, ...]) -> None:
        self._count += 1
        if self._log >= 0:
            self._write(self._log, f"{self._count} {name} {arguments[0]!r:.200}\n".encode())
        if self._kind == "kill-before" and self._count == self._at:
            self._die()
        if self._fail is not None:
            wanted = {"fsync", "fdatasync"} if self._fail[0] == "fsync" else {self._fail[0]}
            if name in wanted:
                self._per_call[self._fail[0]] = self._per_call.get(self._fail[0], 0) + 1
                if self._per_call[self._fail[0]] == self._fail[1]:
                    raise OSError(self._fail[2], os.strerror(self._fail[2]))

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()


def main() -> None:
    faults = Faults(os.environ.get("COUNCIL_TEST_FAULT", "count"), os.environ.get("COUNCIL_TEST_FAULT_LOG", ""))
    for name in _CHANGES:
        setattr(os, name, faults.wrap(name, getattr(os, name)))
    sys.argv = ["council", *sys.argv[1:]]
    from council.cli.main import main as council

    council()


if __name__ == "__main__":
    main()
