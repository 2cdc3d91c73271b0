"""Two texts side by side, as far as they differ: with a few lines around, wrapped to the terminal's width."""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from council.markup import equal_at_start
from council.reports.explain_terminal import print_all
from council.safety.untrusted import clean

_CONTEXT_LINES = 3
_MAX_ROWS = 60
_MAX_COMPARED_LINES = 2_000  # on each side, behind what is equal: difflib is quadratic
_MAX_LINE_CHARS = 600
_WIDTH = 120  # where no terminal says its own
_SAME, _DIFFERENT, _BREAK = " ", "≠", "⋮"

Row = tuple[str, str, str]  # mark, left, right


def show_difference(names: tuple[str, str], texts: tuple[str, str], *, colour: bool) -> None:
    table = Table(box=SIMPLE_HEAD, expand=True, padding=(0, 1, 0, 0))
    table.add_column("", width=1)
    for name in names:
        table.add_column(Text(name), ratio=1, overflow="fold")
    rows = list(difference(*texts))
    for mark, left, right in rows[:_MAX_ROWS]:
        is_same = mark != _DIFFERENT
        table.add_row(mark, Text(left, "dim" if is_same else "red"), Text(right, "dim" if is_same else "green"))
    left_out = f"… and {len(rows) - _MAX_ROWS} more lines; --json has both prompts whole"
    width = shutil.get_terminal_size((_WIDTH, 40)).columns
    print_all([table, *([left_out] if len(rows) > _MAX_ROWS else [])], sys.stdout, columns=width, coloured=colour)


def difference(left: str, right: str) -> Iterator[Row]:
    """The rows that differ, each place with `_CONTEXT_LINES` lines around it."""
    olds, news = left.split("\n"), right.split("\n")
    head = equal_at_start(olds, news)
    tail = equal_at_start(olds[head:][::-1], news[head:][::-1])
    start = max(0, head - _CONTEXT_LINES)
    equal_at_end = max(0, tail - _CONTEXT_LINES)
    olds, news = (lines[start : len(lines) - equal_at_end][:_MAX_COMPARED_LINES] for lines in (olds, news))
    compared = difflib.SequenceMatcher(None, olds, news, False)
    for number, group in enumerate(compared.get_grouped_opcodes(_CONTEXT_LINES)):
        if number:
            yield _BREAK, "", ""
        for tag, old_from, old_to, new_from, new_to in group:
            mark = _SAME if tag == "equal" else _DIFFERENT
            for one, other in zip_longest(olds[old_from:old_to], news[new_from:new_to], fillvalue=""):
                yield mark, *_shown(one, other)


def _shown(one: str, other: str) -> tuple[str, str]:
    """Both lines as a terminal may show them; of very long ones the part that differs."""
    same = equal_at_start(one, other)
    start = max(0, same - _MAX_LINE_CHARS // 2) if max(len(one), len(other)) > _MAX_LINE_CHARS else 0

    def cut(line: str) -> str:
        shown = line[start : start + _MAX_LINE_CHARS]
        before, after = "…" if start and shown else "", "…" if len(line) > start + _MAX_LINE_CHARS else ""
        return before + clean(shown.replace("\t", "    ")) + after

    return cut(one), cut(other)
