"""The cells of lines: of a table, of a CSV file, of columns that spaces set apart. Pure, linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

_COLUMNS = re.compile(r"\t|(?<=\S)[ \u00a0]{2,}+(?=\S)")
_QUOTED = re.compile(r'"[^"\n]*"')
_BLANK = ' \u00a0\t",;|*'
# The header of a column that numbers its rows, and the word before such a number, or that of a section, in a line of words.
_NUMBERING = (
    r"(?:lfd\W*)?(?:#|№|n[ro°º]|pos(?:ition|ten)?|item|id|index|row|line|lot|los|oz)(?:\W*(?:n[ro]|number|nummer))?"
)
_NUMBERS_ROWS = re.compile(rf"\W*?{_NUMBERING}\W*", re.IGNORECASE)
_MAY_NUMBER_ROWS = re.compile(r"\W*(?:item|row|line|lot|los|oz|no(?!\.))\W*", re.IGNORECASE)  # or ounces, votes, prices
_NUMBERED = re.compile(
    r"(?:\b(?:pos(?:ition)?|item|lot)\b\.?\s*(?:n[ro]\.?\s*)?|\bn[ro]\.\s*|[№#]\s*)\Z", re.IGNORECASE
)
# A larger number behind one of these is an amount: `Offer 450, delivery 30`.
_NAMED = re.compile(
    r"\b(?:abschnitt|abs(?:atz)?|clause|ziffer|chapter|kapitel|page|seite|offer|angebot|option|room|raum)\b\.?\s*\Z",
    re.IGNORECASE,
)
_MAX_NAMED_DIGITS = 2
_NUMBERED_CHARS = 20


class Cells:
    """The cells of the lines of one text. A line without any is no row."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.is_csv = path.lower().endswith((".csv", ".tsv"))
        self._lines = lines
        first = lines[0] if lines else ""
        self._mark = next((mark for mark in ";\t" if mark in first), ",") if self.is_csv else "|"
        self._marks = [self._marks_of(line) for line in lines]
        self._begins = [len(line) - len(line.lstrip(_BLANK)) for line in lines]
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

    def is_item_number(self, number: int, start: int, end: int) -> bool:
        """True for a whole number without a unit that numbers its row, its section, or a thing, and counts nothing."""
        line = self._lines[number]
        before = max(0, start - _NUMBERED_CHARS), start
        if _NUMBERED.search(line, *before) or (end - start <= _MAX_NAMED_DIGITS and _NAMED.search(line, *before)):
            return True
        if line[:start].strip(" \t>*-") == "(" and line[end : end + 1] == ")":
            return True
        cell, top = self.cell(number, start), self._tops[number]
        said = line[start:end]
        if top < 0 or self._text(number, cell) != said:
            return False
        header = self._text(top, cell)
        is_named = bool(header) and not header.isdigit()
        if is_named and not _NUMBERS_ROWS.fullmatch(header):
            return False
        if is_named and not _MAY_NUMBER_ROWS.fullmatch(header):
            return True
        leads = self._begins[number] >= self._start(number, cell)
        around = [near for near in (number - 1, number + 1) if 0 <= near < len(self._tops) and self._tops[near] == top]
        goes_on = any(self._text(near, cell) == str(int(said) + near - number) for near in around)
        return goes_on and (is_named or leads)

    def _start(self, number: int, cell: int) -> int:
        return self._marks[number][cell - 1] + 1 if cell else 0

    def _text(self, number: int, cell: int) -> str:
        marks = self._marks[number]
        if cell > len(marks):
            return ""
        end = marks[cell] if cell < len(marks) else len(self._lines[number])
        return self._lines[number][self._start(number, cell) : end].strip(' "*')
