"""The cells of lines: of a table, of a CSV file, of columns that spaces set apart. Pure, linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from council.deliberation.quotations.figure_reading import CURRENCIES

_COLUMNS = re.compile(r"\t|(?<=\S)[ \u00a0]{2,}+(?=\S)")
_QUOTED = re.compile(r'"[^"\n]*"')
_NUMBERS_ROWS = re.compile(r"\W*(?:lfd\W*)?(?:#|№|n[ro°º]|pos(?:ition)?|item|id|row|line|zeile)\W*", re.IGNORECASE)
# The currency of a column in its header. Where it counts thousands or is beside an amount, it is none.
_CURRENCY = re.compile(rf"(?<![^\W_])(?<![0-9] )(?:{'|'.join(CURRENCIES)}|[€$£])(?![^\W_]| ?[0-9])")
_THOUSANDS = re.compile(r"\b(?:k|T|Tsd|thousands?|Mio|millions?)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"[\s\"*(+–-]*(?:[0-9]+[.,'’ ]?)*[0-9](?=[\s\"*)]*\Z)")


class Cells:
    """The cells of the lines of one text. A line without any is no row. `lines` have the currency that the header of a column
    names, behind each amount that stands alone below it."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.is_csv = path.lower().endswith((".csv", ".tsv"))
        self.lines = list(lines)
        first = lines[0] if lines else ""
        self._mark = next((mark for mark in ";\t" if mark in first), ",") if self.is_csv else "|"
        self._marks = [self._marks_of(line) for line in lines]
        self._tops: list[int] = []  # for each line the first of its table, -1 for one of no table
        for number, marks in enumerate(self._marks):
            self._tops.append(-1 if not marks else self._tops[-1] if number and self._marks[number - 1] else number)
        for number, top in enumerate(self._tops):
            if -1 < top < number:
                self.lines[number] = self._with_currencies(number, top)
                self._marks[number] = self._marks_of(self.lines[number])

    def _marks_of(self, line: str) -> list[int]:
        if self.is_csv:
            bare = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
            return [at for at, char in enumerate(bare) if char == self._mark]
        if "|" in line:
            return [at for at, char in enumerate(line) if char == "|"]
        return [match.start() for match in _COLUMNS.finditer(line)]

    def _bounds(self, number: int) -> Iterator[tuple[int, int]]:
        return pairwise((-1, *self._marks[number], len(self.lines[number])))

    def _with_currencies(self, number: int, top: int) -> str:
        line = self.lines[number]
        for (start, end), (left, right) in reversed([*zip(self._bounds(number), self._bounds(top), strict=False)]):
            header, amount = self.lines[top][left + 1 : right], _AMOUNT.match(line[start + 1 : end])
            named = set(_CURRENCY.findall(header.upper()))
            if amount and len(named) == 1 and not _THOUSANDS.search(header):
                at = start + 1 + amount.end()
                line = f"{line[:at]} {named.pop()}{line[at:]}"
        return line

    def apart(self, number: int) -> str:
        """A line in which no figure goes on from one cell into the next."""
        if not self.is_csv:
            return self.lines[number]
        chars = list(self.lines[number])
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
        start, end = list(self._bounds(top))[cell]
        return _NUMBERS_ROWS.fullmatch(self.lines[top], start + 1, end) is not None
