"""Logging: lines for people on a terminal, JSON lines elsewhere and in the log file, no secret in any, each with its
run, agent, round.

Modules log through `logging.getLogger(__name__)`; only the rim calls `configure`, once. Warnings of libraries take the
same way, so that a key in one of their messages is removed as well.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

from council.ids import readable_json
from council.redaction import Redactor

# What a line was written for. Each task of asyncio carries its own copy.
_context: ContextVar[dict[str, str | int] | None] = ContextVar("council_log_context", default=None)

MAX_LOG_BYTES = 5 << 20
LOG_FILES = 3  # the one being written and two older ones: 15 MB at most

# Text from a model may hold terminal escapes; a person's terminal must not obey them.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


@contextmanager
def log_context(*, run_id: str | None = None, agent: str | None = None, round: int | None = None) -> Iterator[None]:
    """Every line logged inside carries these; what is None is inherited from the context around."""
    fields = {"run_id": run_id, "agent": agent, "round": round}
    given = {name: value for name, value in fields.items() if value is not None}
    token = _context.set({**(_context.get() or {}), **given})
    try:
        yield
    finally:
        _context.reset(token)


def configure(
    level: str = "info", format: str = "auto", redactor: Redactor | None = None, stream: TextIO | None = None
) -> None:
    """Send `council.*` at `level` and everybody else's warnings to `stream` (stderr). A second call replaces the first.

    `level`: debug, info, warning, error. `format`: auto, human, json.
    """
    target = stream or sys.stderr
    human = target.isatty() if format == "auto" else format == "human"
    handler = _CouncilHandler(target)
    handler.addFilter(_Redaction(redactor or Redactor()))
    handler.setFormatter(_HumanFormatter() if human else _JsonFormatter())
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _CouncilHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    logging.getLogger("council").setLevel(level.upper())


class LogFile:
    """The daemon's own log: events and log records as JSON lines, for their owner only, rotated by size."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        """Records of `council.*` and everybody else's warnings arrive from now on, until `close`. Raises OSError."""
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._handler = _FileHandler(
            path, maxBytes=MAX_LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8", delay=True
        )
        self._handler.addFilter(_Redaction(redactor))
        self._handler.setFormatter(_JsonFormatter())
        logging.getLogger().addHandler(self._handler)

    def write_event(self, told: str) -> None:
        """Writes what `EventLines` tells of an event, with its time: nothing in it is redacted again."""
        self._handler.write(at_time(_moment(time.time()), told))

    def close(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()


def at_time(time: str, told: str) -> str:
    """A JSON object with `time` before its other values."""
    return f'{{"time": "{time}", {told[1:]}'


def _moment(epoch_s: float) -> str:
    moment = datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


class _FileHandler(RotatingFileHandler):
    """A log that cannot be written does not stop what it is a log of, and does not repeat itself on the terminal."""

    _said = False
    _size_bytes = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.write(self.format(record))

    def write(self, line: str) -> None:
        with self.lock or nullcontext():
            try:
                self._follow()
                if self._size_bytes + len(line.encode()) >= self.maxBytes:
                    self.doRollover()
                if self.stream is None:
                    self.stream = self._open()
                self.stream.write(line + self.terminator)
                self.stream.flush()
            except Exception as error:  # noqa: BLE001  whatever it is
                if not self._said:
                    self._said = True
                    sys.stderr.write(f"warning: {self.baseFilename} cannot be written ({type(error).__name__})\n")

    def _follow(self) -> None:
        """Lets go of a file that another one has replaced: `council forget` rewrites logs whole."""
        try:
            there = os.stat(self.baseFilename)
            self._size_bytes = there.st_size if stat.S_ISREG(there.st_mode) else 0
            same = self.stream is None or os.path.samestat(there, self._opened)
        except OSError:
            self._size_bytes, same = 0, False
        if not same and self.stream is not None:
            self.stream.close()
            self.stream = None

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=self._open_private)

    def _open_private(self, path: str, flags: int) -> int:
        fd = os.open(path, flags, 0o600)
        self._opened = os.fstat(fd)
        return fd


class _CouncilHandler(logging.StreamHandler[TextIO]):
    """Its own type, so that `configure` finds its handler again and leaves everybody else's alone."""


class _Redaction(logging.Filter):
    """Removes secrets from message, arguments, traceback and stack before a formatter sees them."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - arguments that do not fit must not end what was being logged about
            message = f"{record.msg!r} % {record.args!r}"
        record.msg, record.args = self._redactor.redact(message), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_text = self._redactor.redact(record.exc_text) if record.exc_text else None
        record.stack_info = self._redactor.redact(record.stack_info) if record.stack_info else None
        return True


def _details(record: logging.LogRecord) -> str:
    return "\n".join(text for text in (record.exc_text, record.stack_info) if text)


class _HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        context = " ".join(f"{name}={value}" for name, value in (_context.get() or {}).items())
        where = f"{record.name} [{context}]" if context else record.name
        text = "\n".join(part for part in (record.getMessage(), _details(record)) if part)
        body = text.translate(_VISIBLE).replace("\n", "\n    ")
        return f"{moment:%H:%M:%S}Z {record.levelname.lower():7} {where}: {body}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(_context.get() or {}),
        }
        if details := _details(record):
            line["details"] = details
        return readable_json(line)
