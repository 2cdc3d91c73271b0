"""A journal for the terminal, one row for each record. Every text is one plain line without control characters before it is
shown, and never read as markup."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TextIO

import msgspec
from rich.text import Text

from council.engine.records import Commit, Continuation, Record, Retry, RunHeader, StepResult, StepStart, Waiting
from council.reports.explain_terminal import faint, print_all, table_of
from council.reports.explain_words import clock, number, plain
from council.reports.timeline import milliseconds

_NAME_CHARS = 40  # of a step; `tools` and `refused` are appended to a turn's
_BEGINNING_CHARS = 200  # more than a line of any terminal has room for beside the other columns


def show(records: Sequence[Record], stream: TextIO, *, columns: int, coloured: bool, zone: tzinfo | None) -> None:
    """Prints the records, `columns` wide, their times in `zone`. `bytes` is the size of each as JSON."""
    table = table_of(">no", "at", "kind", "name", ">bytes", "begins")
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.expand, table.columns[-1].ratio = True, 1
    for index, record in enumerate(records):
        name, at_ms, text = "", None, ""
        match record:
            case RunHeader():
                name, at_ms, text = record.run_id, record.admitted_ms, record.title
            case StepStart():
                name, at_ms = record.name, record.at or None
            case StepResult():
                name, at_ms = record.name, record.at or None
                text = bytes(record.out)[: 4 * _BEGINNING_CHARS].decode(errors="replace")
            case Retry():
                name, at_ms, text = record.step, record.at, f"{record.kind}: {record.error}"
            case Waiting():
                name, at_ms, text = record.reason, milliseconds(record.since), record.error
            case Commit():
                name, text = record.status, ", ".join(file.final for file in record.files)
            case Continuation():
                name, at_ms = record.retry_from, milliseconds(record.at)
        kind, size = str(record.__struct_config__.tag), number(len(msgspec.json.encode(record)))
        name, beginning = plain(name, _NAME_CHARS), plain(text, _BEGINNING_CHARS)
        table.add_row(number(index), clock(at_ms, zone), kind, Text(name), size, faint(beginning))
    print_all([table], stream, columns=columns, coloured=coloured)
