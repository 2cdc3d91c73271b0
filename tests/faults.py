"""`python -m tests.faults … -- run --once`: the real `council`, whose system calls fail or kill on demand.

Nothing in the product knows of this. The calls that change the disk (`write`, `pwrite`, `fsync`, `fdatasync`, `rename`,
`replace`, `unlink`, `mkdir`, `ftruncate`, `link`, the rename that does not overwrite, and what the database is told to `commit`
or checkpoint), the statements that change the database, and the events that the daemon publishes are its *trace*: one line
each, such as `rename …/command.json …/.<run id>.taken`, `sql INSERT INTO steps (run, seq, kind, name,  1 7 done round/1/…`
or `event turn_started {"role":"AUDITOR"…}`. Changes to the disk have another line when they are done, which nothing matches:
`done rename …`. COUNCIL_TEST_FAULT says what happens where:

    count                        nothing
    kill-before:17               SIGKILL before the 17th change to the disk
    kill-after:17                SIGKILL after it
    kill-at:1:.taken             SIGKILL before what the 1st line that holds `.taken` tells of
    kill-in:2:1500:turn_started  SIGKILL, from another process, 1500 µs after the 2nd line that holds `turn_started`
    place-before:1:.taken:A:B    renames the file A to B before what the 1st line that holds `.taken` tells of
    place-after:1:.taken:A:B     renames it after that
    fail:fsync:3:EIO             the 3rd fsync, fdatasync or synced commit fails with EIO
    fail:fsync:3:EIO:20          and so do the 19 after it
    fail-at:2:ENOSPC: done       what the 2nd line that holds ` done` tells of fails
    fail-at:2-3:ENOSPC: done     and so does what the 3rd tells of

    COUNCIL_TEST_FAULT_LOG=file  gets the trace
    COUNCIL_TEST_CALLS=file      gets lines for each call of a scripted model: `begin`, then `end` or `refused`, and of each
                                 the task, purpose, round and role
    COUNCIL_TEST_CLOCK=file      holds the seconds by which the process's clock is wrong, now and whenever it is read
    COUNCIL_TEST_NETWORK=file    hosts below `.test` are this machine while the file is there, and unknown while it is not
    COUNCIL_TEST_OUTSIDE=h=a=p   the host `h` has the address `a`, and who connects to that reaches the port `p` here
    COUNCIL_TEST_SAMPLES=1       adds the sample systems to the house
    COUNCIL_TEST_EPOCH=9         the journal epoch of this process
    COUNCIL_TEST_VERSION=9.9.9   the package version of this process
"""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import socket
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_CHANGES = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink", "mkdir", "ftruncate", "link")
SYNCS = ("fsync", "fdatasync", "commit")
_OF_DATABASE = ("commit", "commit-unsynced", "checkpoint", "sql")
_SQLITE_CODES = {"EIO": sqlite3.SQLITE_IOERR_FSYNC, "ENOSPC": sqlite3.SQLITE_FULL}
STATEMENT_CHARS = 40  # as many as tell them apart
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
                said = f"{name} {' '.join(_shown(name, arguments, keywords))}"
                found = self._trace(said)
                self._place("place-before", found)
                self._fail(name)
            result = call(*arguments, **keywords)
            self._log_line(f"done {said}")
            self._place("place-after", found)
            self._kill_at("kill-after")
            return result

        return counted

    def statement(self, statement: str, values: Sequence[object], run: Callable[[], Any]) -> Any:
        """A change to the database, none yet to the disk."""
        with self._lock:
            found = self._trace(f"sql {statement[:STATEMENT_CHARS]} {' '.join(map(str, values))}")
            self._place("place-before", found)
        result = run()
        self._place("place-after", found)
        return result

    def event(self, kind: str, run_id: str, data: dict[str, Any]) -> None:
        self._trace(f"event {kind} {run_id} {json.dumps(data, default=str)}")

    def _trace(self, line: str) -> bool:
        """True when this is the line that was chosen."""
        line = line[:_LINE_CHARS]
        self._log_line(line)
        if self._kind not in ("kill-at", "kill-in", "fail-at", "place-before", "place-after"):
            return False
        text = self._arguments[2] if self._kind in ("kill-in", "fail-at") else self._arguments[1]
        self._matches += text in line
        first, _, last = self._arguments[0].partition("-")
        found = text in line and int(first) <= self._matches <= int(last or first)
        if found and self._killer is not None:
            self._killer.kill_in(int(self._arguments[1]) / 1_000_000)
        if found and self._kind == "kill-at":
            self._die()
        if found and self._kind == "fail-at":
            self._raise(self._arguments[1], line.split()[0])
        return found

    def _log_line(self, line: str) -> None:
        if self._log >= 0:
            line = line[:_LINE_CHARS].replace("\n", " ")
            _real["write"](self._log, f"{self._changes} {line}\n".encode("utf-8", "backslashreplace"))

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
        if self._kind != "fail" or name not in (SYNCS if self._arguments[0] == "fsync" else (self._arguments[0],)):
            return
        self._failures += 1
        first, times = int(self._arguments[1]), int(self._arguments[3]) if len(self._arguments) > 3 else 1
        if first <= self._failures < first + times:
            self._raise(self._arguments[2], name)

    @staticmethod
    def _raise(name: str, of: str) -> None:
        number = getattr(errno, name)
        if of not in _OF_DATABASE:
            raise OSError(number, os.strerror(number))
        error = sqlite3.OperationalError(os.strerror(number))
        error.sqlite_errorcode = _SQLITE_CODES[name]
        raise error


def _shown(name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Iterator[str]:
    """What a call is given, with the paths of open files and in open folders."""
    folders = [keywords[key] for key in ("dir_fd", "src_dir_fd", "dst_dir_fd") if keywords.get(key) is not None]
    for number, argument in enumerate(arguments):
        if isinstance(argument, int) and number == 0:
            yield _path_of(argument)
        elif isinstance(argument, bytes | memoryview) and name in ("write", "pwrite"):
            yield bytes(argument[:_LINE_CHARS]).decode("utf-8", "replace")
        elif folders and isinstance(argument, str):
            yield f"{_path_of(folders[min(number, len(folders) - 1)])}/{argument}"
        else:
            yield os.fspath(argument) if isinstance(argument, Path) else str(argument)


def _path_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # not Linux
        return str(fd)


def _set_clock(path: str) -> None:
    from council.ids import SystemClock

    def now(self: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(Path(path).read_text()))

    SystemClock.now = now  # type: ignore[method-assign]


def _set_network(path: str) -> None:
    known = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **keywords: Any) -> Any:
        if os.fsdecode(host or "").endswith(".test"):
            if not Path(path).exists():
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            host = "127.0.0.1"
        return known(host, *arguments, **keywords)

    socket.getaddrinfo = getaddrinfo


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
    from council.events import Event, Events

    publish = Events.publish

    def traced(self: Events, event: Event) -> None:
        faults.event(event.kind, event.run_id, event.values())
        publish(self, event)

    Events.publish = traced  # type: ignore[method-assign]


def _wrap_database(faults: Faults) -> None:
    """The database syncs where nobody here sees it: what it is told to commit stands for that."""
    from council.storage import drivers

    drivers.SqliteConnection = _traced(drivers.SqliteConnection, faults)  # type: ignore[misc]
    init = drivers.PostgresDriver.__init__

    def traced(self: drivers.PostgresDriver, database_url: str) -> None:
        init(self, database_url)
        self._connection = _traced(self._connection, faults)

    drivers.PostgresDriver.__init__ = traced  # type: ignore[method-assign]


def _traced(connection: Any, faults: Faults) -> Any:
    """The class of a database connection, with what it changes in the trace."""

    class Traced(connection):  # type: ignore[misc]
        synced = True
        changes = False

        def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
            run = functools.partial(super().execute, statement, values)
            if statement in ("PRAGMA synchronous = FULL", "BEGIN"):
                self.synced = True
            elif statement in ("PRAGMA synchronous = NORMAL", "SET LOCAL synchronous_commit = off"):
                self.synced = False
            if statement.startswith("BEGIN"):
                self.changes = False
            if statement.startswith("PRAGMA wal_checkpoint"):
                return faults.wrap("checkpoint", lambda mode: run())(statement.split("(")[1])
            if statement == "COMMIT" and self.changes:
                return faults.wrap("commit" if self.synced else "commit-unsynced", run)()
            if statement == "ROLLBACK" and self.changes:
                return faults.statement(statement, (), run)
            if statement.startswith(("INSERT", "UPDATE", "DELETE")):
                self.changes = True
                return faults.statement(statement, values, run)
            return run()

    return Traced


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
    from council.storage import files

    # Not through `os`: the kernel's own call that does not overwrite.
    files._rename_noreplace_natively = faults.wrap("rename-noreplace", files._rename_noreplace_natively)
    _wrap_database(faults)
    _wrap_events(faults)
    if "COUNCIL_TEST_CLOCK" in environ:
        _set_clock(environ["COUNCIL_TEST_CLOCK"])
    if "COUNCIL_TEST_NETWORK" in environ:
        _set_network(environ["COUNCIL_TEST_NETWORK"])
    if "COUNCIL_TEST_OUTSIDE" in environ:
        from tests.outside import reroute_as

        reroute_as(environ["COUNCIL_TEST_OUTSIDE"])
    if "COUNCIL_TEST_CALLS" in environ:
        _note_calls(environ["COUNCIL_TEST_CALLS"])
    sys.argv = ["council", *sys.argv[1:]]
    from council.cli.main import main as council_main

    if "COUNCIL_TEST_SAMPLES" in environ:
        from tests.sample_daemon import systems

        council_main(systems)
    council_main()


if __name__ == "__main__":
    main()
