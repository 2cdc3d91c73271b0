"""`python -m tests.faults … -- run --once`: the real `council`, whose system calls fail or kill on demand.

Nothing in the product knows of this. The calls that change the disk (`write`, `pwrite`, `fsync`, `fdatasync`, `rename`,
`replace`, `unlink`, `mkdir`, `ftruncate`, `link`, and the rename that does not overwrite) and the events that the daemon
publishes are its *trace*: one line each, such as `rename …/command.json …/.<run id>.taken`, `write 7 {"c":"…","r":{"t":"commit"…`
or `event turn_started {"role":"AUDITOR"…}`. COUNCIL_TEST_FAULT says what happens where:

    count                        nothing
    kill-before:17               SIGKILL before the 17th change to the disk
    kill-after:17                SIGKILL after it
    kill-at:1:/active/           SIGKILL before what the 1st line that holds `/active/` tells of
    kill-in:2:1500:turn_started  SIGKILL, from another process, 1500 µs after the 2nd line that holds `turn_started`
    place-before:1:.taken:A:B    renames the file A to B before what the 1st line that holds `.taken` tells of
    place-after:1:.taken:A:B     renames it after that
    fail:fsync:3:EIO             the 3rd fsync or fdatasync fails with EIO
    fail:fsync:3:EIO:20          and so do the 19 after it
    fail-at:2:ENOSPC:"end"       what the 2nd line that holds `"end"` tells of fails

    COUNCIL_TEST_FAULT_LOG=file  gets the trace
    COUNCIL_TEST_CALLS=file      gets lines for each call of a scripted model: `begin`, then `end` or `refused`, and of each
                                 the task, purpose, round and role
    COUNCIL_TEST_SYNCS=late      a sync in the background happens when it is waited for
    COUNCIL_TEST_CLOCK=file      holds the seconds by which the process's clock is wrong, now and whenever it is read
    COUNCIL_TEST_EPOCH=9         the journal epoch of this process
    COUNCIL_TEST_VERSION=9.9.9   the package version of this process
"""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.late_syncs import LateSyncs

_CHANGES = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink", "mkdir", "ftruncate", "link")
_SYNCS = ("fsync", "fdatasync")
_LINE_CHARS = 400


class Killer:
    """Another process, which waits in a pipe for the order to kill this one. It never outlives it by more than a read."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        parent = os.getpid()
        if os.fork():
            os.close(reader)
            return
        os.close(self._writer)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # whoever reads what the victim prints must see it end
            os.dup2(null, fd)
        order = os.read(reader, 8)
        if len(order) == 8:
            time.sleep(struct.unpack("d", order)[0])
            os.kill(parent, signal.SIGKILL)
        os._exit(0)

    def kill_in(self, seconds: float) -> None:
        _real["write"](self._writer, struct.pack("d", seconds))


_real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in _CHANGES}


class Faults:
    """Counts changes, reads the trace, and acts at the chosen place."""

    def __init__(self, spec: str, log: str) -> None:
        self._kind, _, rest = spec.partition(":")
        text_last = self._kind in ("kill-in", "fail-at")  # the text of a line may hold colons
        self._arguments = rest.split(":", 2 if text_last else -1)
        self._killer = Killer() if self._kind == "kill-in" else None
        self._changes = 0
        self._matches = 0
        self._failures = 0
        self._lock = threading.RLock()
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if log else -1

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*arguments: Any, **keywords: Any) -> Any:
            if name == "write" and arguments[0] in (1, 2):
                return call(*arguments, **keywords)
            with self._lock:  # syncs come from several threads
                self._changes += 1
                self._kill_at("kill-before")
                found = self._trace(f"{name} {' '.join(_shown(argument) for argument in arguments)}")
                self._place("place-before", found)
                self._fail(name)
            result = call(*arguments, **keywords)
            self._place("place-after", found)
            self._kill_at("kill-after")
            return result

        return counted

    def event(self, kind: str, run_id: str, data: dict[str, Any]) -> None:
        self._trace(f"event {kind} {run_id} {json.dumps(data, default=str)}")

    def _trace(self, line: str) -> bool:
        """True when this is the line that was chosen."""
        line = line[:_LINE_CHARS].replace("\n", " ")
        if self._log >= 0:
            _real["write"](self._log, f"{self._changes} {line}\n".encode("utf-8", "backslashreplace"))
        if self._kind not in ("kill-at", "kill-in", "fail-at", "place-before", "place-after"):
            return False
        text = self._arguments[2] if self._kind in ("kill-in", "fail-at") else self._arguments[1]
        self._matches += text in line
        found = text in line and self._matches == int(self._arguments[0])
        if found and self._killer is not None:
            self._killer.kill_in(int(self._arguments[1]) / 1_000_000)
        if found and self._kind == "kill-at":
            self._die()
        if found and self._kind == "fail-at":
            self._raise(self._arguments[1])
        return found

    def _kill_at(self, kind: str) -> None:
        if self._kind == kind and self._changes == int(self._arguments[0]):
            self._die()

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    def _place(self, kind: str, found: bool) -> None:
        if found and self._kind == kind:
            _real["rename"](self._arguments[2], self._arguments[3])

    def _fail(self, name: str) -> None:
        if self._kind != "fail" or name not in (_SYNCS if self._arguments[0] == "fsync" else (self._arguments[0],)):
            return
        self._failures += 1
        first, times = int(self._arguments[1]), int(self._arguments[3]) if len(self._arguments) > 3 else 1
        if first <= self._failures < first + times:
            self._raise(self._arguments[2])

    @staticmethod
    def _raise(name: str) -> None:
        number = getattr(errno, name)
        raise OSError(number, os.strerror(number))


def _shown(argument: Any) -> str:
    if isinstance(argument, bytes | memoryview):
        return bytes(argument[:_LINE_CHARS]).decode("utf-8", "replace")
    return os.fspath(argument) if isinstance(argument, Path) else str(argument)


def _set_clock(path: str) -> None:
    from council.ids import SystemClock

    def now(self: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(Path(path).read_text()))

    SystemClock.now = now  # type: ignore[method-assign]


def _note_calls(path: str) -> None:
    from council.errors import ModelError
    from council.llm.scripted import ScriptedModel

    generate = ScriptedModel.generate
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def noted(self: ScriptedModel, *arguments: Any, **keywords: Any) -> Any:
        info = keywords["info"]
        call = f"{info.task}\t{info.purpose}\t{info.round}\t{info.role}\n"
        _real["write"](fd, f"begin\t{call}".encode())
        try:
            reply = await generate(self, *arguments, **keywords)
        except ModelError:
            _real["write"](fd, f"refused\t{call}".encode())
            raise
        _real["write"](fd, f"end\t{call}".encode())
        return reply

    ScriptedModel.generate = noted  # type: ignore[method-assign]


def _wrap_events(faults: Faults) -> None:
    from council.events import Events

    publish = Events.publish

    def traced(self: Events, kind: str, run_id: str = "", **data: Any) -> None:
        faults.event(kind, run_id, data)
        publish(self, kind, run_id, **data)

    Events.publish = traced  # type: ignore[method-assign]


class _BackgroundSyncs:
    """The C library's calls for a sync in the background, which are made; the beginning of one is a change like any other.
    Where it is to fail, whoever waits is told so, and no sooner."""

    def __init__(self, faults: Faults, aio: Any) -> None:
        self._faults = faults
        self._aio = aio
        self._refused: dict[int, int] = {}
        self.suspend = aio.suspend

    def fsync(self, operation: int, block: Any) -> int:
        begin = self._faults.wrap("fdatasync", lambda _: self._aio.fsync(operation, block))
        try:
            return int(begin(block.contents.fd))
        except OSError as error:
            self._refused[id(block)] = error.errno or errno.EIO
            return 0

    def error(self, block: Any) -> int:
        return self._refused.get(id(block)) or int(self._aio.error(block))

    def result(self, block: Any) -> None:
        if self._refused.pop(id(block), None) is None:
            self._aio.result(block)


def main() -> None:
    environ = os.environ
    faults = Faults(environ.get("COUNCIL_TEST_FAULT", "count"), environ.get("COUNCIL_TEST_FAULT_LOG", ""))
    for name in _CHANGES:
        setattr(os, name, faults.wrap(name, getattr(os, name)))
    if "COUNCIL_TEST_VERSION" in environ:
        import council

        council.__version__ = environ["COUNCIL_TEST_VERSION"]
    if "COUNCIL_TEST_EPOCH" in environ:
        from council.engine import records

        records.EPOCH = int(environ["COUNCIL_TEST_EPOCH"])
    from council.storage import background_sync, files

    if environ.get("COUNCIL_TEST_SYNCS") == "late":
        late = LateSyncs()
        background_sync._aio = lambda: late  # type: ignore[assignment,return-value]
    elif (aio := background_sync._aio()) is not None:
        syncs = _BackgroundSyncs(faults, aio)
        background_sync._aio = lambda: syncs  # type: ignore[assignment,return-value]
    # Not through `os`: the kernel's own call that does not overwrite.
    files._rename_noreplace_natively = faults.wrap("rename-noreplace", files._rename_noreplace_natively)
    _wrap_events(faults)
    if "COUNCIL_TEST_CLOCK" in environ:
        _set_clock(environ["COUNCIL_TEST_CLOCK"])
    if "COUNCIL_TEST_CALLS" in environ:
        _note_calls(environ["COUNCIL_TEST_CALLS"])
    sys.argv = ["council", *sys.argv[1:]]
    from council.cli.main import main as council_main

    council_main()


if __name__ == "__main__":
    main()
