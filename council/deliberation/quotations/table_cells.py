"""The cells of lines: of a table, of a CSV file, of columns that spaces set apart. Pure, linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

_COLUMNS = re.compile(r"\t|(?<=\S)[ \u00a0]{2,}+(?=\S)")
_QUOTED = re.compile(r'"[^"\n]*"')
_NUMBERS_ROWS = re.compile(r"\W*(?:lfd\W*)?(?:#|№|n[ro°º]|pos(?:ition)?|item|id|row|line|zeile)\W*", re.IGNORECASE)


class Cells:
    """The cells of the lines of one text. A line without any is no row."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.is_csv = path.lower().endswith((".csv", ".tsv"))
        self._lines = lines
        first = lines[0] if lines else ""
        self._mark = next((mark for mark in ";\t" if mark in first), ",") if self.is_csv else "|"
        self._marks = [self._marks_of(line) for line in lines]
        self._tops: list[int] = []  # for each line the first of its table, -1 for one of no table
        for number, marks in enumerate(self._marks):
            self._tops.append(-1 if not marks else self._tops[-1] if number and self._marks[number - 1] else number)

    def _marks_of(self, line: str) -> list[int]:
        if self.is_csv:
            bare = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
            return [at for at, char in enumerate(bare) if char == self._mark]
        if "|" in line:
            return [at for at, char in enumerate(line) if char == "|"]
        return [match.start() for match in _COLUMNS.finditer(line)]

    def apart(self, number: int) -> str:
        """A line in which no figure goes on from one cell into the next."""
        if not self.is_csv:
            return self._lines[number]
        chars = list(self._lines[number])
        for at in self._marks[number]:
            chars[at] = "|"
        return "".join(chars)

    def top(self, number: int) -> int:
        """The first line of the table that a line belongs to; -1 for a line of no table."""
        return self._tops[number]

    def cell(self, number: int, at: int) -> int:
        """The number of the cell in which a character of a line stands."""
        return bisect_right(self._marks[number], at)

    def is_row_number(self, number: int, at: int) -> bool:
        """True for a character in the column that numbers the rows of a table, by its header."""
        top, cell = self._tops[number], self.cell(number, at)
        if top < 0 or cell > len(self._marks[top]):
            return False
        bounds = [-1, *self._marks[top], len(self._lines[top])]
        return _NUMBERS_ROWS.fullmatch(self._lines[top], bounds[cell] + 1, bounds[cell + 1]) is not None
