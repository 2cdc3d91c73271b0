"""`council logs`: the daemon's log, for a person or as its JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from council.cli.context import state
from council.daemon.terminal import event_line
from council.desk.run_lookup import find_ended, receipt_of
from council.events import AnyEvent
from council.ids import TO_THE_SECOND, local_times
from council.logs import LOG_FILES
from council.safety.untrusted import plain_line
from council.typed_json import convert

_POLL_S = 0.2
_FOR_PROGRAMS = ("state",)  # events that another line says in words


def logs(
    ctx: typer.Context,
    count: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many lines, from the newest.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing what is added, until Ctrl-C.")] = False,
    run: Annotated[
        str | None, typer.Option(help="Only what is about this run: its id, its first characters, or `last`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON lines as they are.")] = False,
) -> None:
    desk = state(ctx).desk()
    path = desk.home.log_file
    if not path.exists() and not follow:
        typer.echo("No log yet: it begins with the first `council run`.", err=True)
        return
    if run == "last":
        run = find_ended(desk, run)

    def shown(line: str) -> str:
        if run:
            record: Any = None
            with contextlib.suppress(ValueError):
                record = json.loads(line)
            if not isinstance(record, dict) or not str(record.get("run_id", "")).startswith(run):
                return ""
        return line if as_json else readable(line, desk.zone)

    # NOTE: what is followed is opened before the old lines are read, so that no line falls between the two.
    followed = GrowingFile(path)
    newest = filter(None, map(shown, _newest_first(path, followed.position)))
    lines = list(islice(newest, count))
    for text in reversed(lines):
        typer.echo(text)
    if run and count and not lines and not follow:
        receipt = receipt_of(desk, find_ended(desk, run))  # raises RunNotFound where there is no such run
        pruned = receipt.pruned and f"; the run was pruned on {receipt.pruned.at} by {receipt.pruned.by}"
        ended = local_times(f"(ended {receipt.finished}){pruned or ''}", desk.zone)
        typer.echo(f"The log no longer has a line of run {receipt.run_id} {ended}.", err=True)
    while follow:
        for text in filter(None, map(shown, followed.new_lines())):
            typer.echo(text)
        time.sleep(_POLL_S)


def _newest_first(path: Path, end: int) -> Iterator[str]:
    if end:
        with path.open("rb") as stream:
            yield from reversed(_whole_lines(stream.read(end)))
    for number in range(1, LOG_FILES):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            yield from reversed(_whole_lines(older.read_bytes()))


def _whole_lines(data: bytes) -> list[str]:
    return [line for line in data.decode("utf-8", "replace").split("\n") if line]


class GrowingFile:
    """A file that grows, and that another one may take the place of. `position`: how much of it is known."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self.position = self._look()

    def new_lines(self) -> Iterator[str]:
        inode, size = self._look()
        if inode != self._inode:
            old = self._path.with_name(f"{self._path.name}.1")
            if self._inode and old.exists() and old.stat().st_ino == self._inode:
                yield from _whole_lines(old.read_bytes()[self.position :])
            self._inode, self.position = inode, 0
        if size <= self.position:
            return
        with self._path.open("rb") as stream:
            stream.seek(self.position)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.position += len(whole)
        yield from _whole_lines(whole)

    def _look(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return 0, 0
        return status.st_ino, status.st_size


def readable(line: str, zone: tzinfo | None) -> str:
    """One line of the log for a person, its time in `zone`; empty for what only programs follow. What is not JSON stays."""
    try:
        record: Any = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or not isinstance(record.get("time"), str):
        return line
    if record.get("event") in _FOR_PROGRAMS:
        return ""
    if "event" in record:
        kind = str(record["event"])
        data = {key: value for key, value in record.items() if key not in ("time", "event", "run_id")}
        words = ""
        with contextlib.suppress(msgspec.ValidationError):  # written by another version
            words = " ".join(event_line(convert({**record, "kind": kind}, AnyEvent)).split())
        if not words:
            words = " ".join([kind, *(f"{key}={plain_line(str(value), 100)}" for key, value in data.items())])
    else:
        turn = ", round ".join(plain_line(str(record[key]), 100) for key in ("agent", "round") if key in record)
        source = f"{record.get('level', '?')} {record.get('logger', '?')}{f' ({turn})' if turn else ''}"
        details = str(record.get("details", "")).splitlines()
        message = plain_line(str(record.get("message", "")), 1_000)
        words = "\n    ".join([f"{source}: {message}", *(plain_line(part, 500) for part in details)])
    where = f"{record['run_id']}  " if record.get("run_id") else ""
    return f"{local_times(record['time'], zone, TO_THE_SECOND)}  {where}{words}"
