"""The cells of lines: of a table, of a CSV file, of columns that spaces set apart. Pure, linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from council.deliberation.quotations.figure import Figure
from council.deliberation.quotations.figure_reading import CURRENCIES, SECTION, figures

_COLUMNS = re.compile(r"\t|(?<=\S)[ \u00a0]{2,}+(?=\S)")
_QUOTED = re.compile(r'"[^"\n]*"')
_NUMBERS_ROWS = re.compile(r"\W*(?:lfd\W*)?(?:#|№|n[ro°º]|pos(?:ition)?|item|id|row|line|zeile)\W*", re.IGNORECASE)
# The unit of a column in its header. Where it counts other thousands or is beside an amount, it is none.
_CURRENCY = re.compile(
    r"(?<![^\W_])(?<![0-9] )(?:(?P<k>[KT]|TSD\.? |THOUSANDS? (?:OF )?)|(?P<m>M|MIO\.? |MILLIONS? (?:OF )?))?"
    rf"(?P<unit>{'|'.join(CURRENCIES)}|[€$£])(?![^\W_]| ?(?!000\b)[0-9])"
    r"(?: ?\(?(?:IN )?(?:(?P<k_behind>['’]?000|THOUSANDS?|TSD)|(?P<m_behind>MIO|MILLIONS?))\b)?"
)
_MEASURE = re.compile(
    r"(?<![^\W_])(?<!per )(?<!/)(?<![Ww]orking )(?<![Bb]usiness )(?:kg|mg|km²?|m²|ha|kWh|MWh|kW|ml"
    r"|(?<=\()(?:h|min|m|cm|mm|g|t|l)(?=\))|(?i:hours|stunden|minutes|minuten|days|tage|weeks|wochen|months|monate))(?![^\W_]|/)"
)
_THOUSANDS = re.compile(r"\b(?:k|T|Tsd|thousands?|Mio|millions?)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"[\s\"*(+–-]*[0-9][0-9.,'’ ]*(?<=[0-9])(?=[\s\"*)]*\Z)")
HEADING = re.compile(r" {0,3}(#{1,6})\s")
NUMBERED = re.compile(rf"[ *_]*{SECTION}[0-9]+")  # a section: `§ 7 Fees`
_MIN_PART, _MAX_PART = 50, 150  # lines that are read together: a figure may go on in the next line, within a sentence


IN_THOUSANDS = ("TEUR", "T€")


class Cells:
    """The cells of the lines of one text. A line without any is no row. In `lines` no figure goes on from one cell of a CSV
    file into the next, and an amount that stands alone in its cell has the unit that the header of its column names."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.is_csv = path.lower().endswith((".csv", ".tsv"))
        self.lines = list(lines)
        self._mark = max(";\t,", key=lambda mark: sum(mark in line for line in lines)) if self.is_csv else "|"
        self._marks = [self._marks_of(line) for line in lines]
        self._tops: list[int] = []  # for each line the first of its table, -1 for one of no table
        for number, marks in enumerate(self._marks):
            self._tops.append(-1 if not marks else self._tops[-1] if number and self._marks[number - 1] else number)
        for number, top in enumerate(self._tops):
            if -1 < top < number:
                self.lines[number] = self._with_currencies(number, top)
                self._marks[number] = self._marks_of(self.lines[number])
        if self.is_csv:
            self.lines = ["|".join(self._cells(number)) for number in range(len(lines))]
        self._parts = [0]  # where a text may be cut, for it to be read in parts
        for number, line in enumerate(self.lines, 1):
            ends = not line.strip() or line.rstrip()[-1] in ".:;|"
            if number - self._parts[-1] >= (_MIN_PART if ends else _MAX_PART):
                self._parts.append(number)
        self._read: dict[tuple[int, int, str], list[tuple[int, int, Figure]]] = {}
        self._numbering: dict[int, set[int]] = {}  # the columns that number the rows of a table, by its first line

    @cached_property
    def titles(self) -> list[int]:
        """The lines that others stand below: headings and numbered sections. They are looked for once."""
        return [number for number, line in enumerate(self.lines) if HEADING.match(line) or NUMBERED.match(line)]

    def _marks_of(self, line: str) -> list[int]:
        if self.is_csv:
            bare = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
            return [at for at, char in enumerate(bare) if char == self._mark]
        if "|" in line:
            return [at for at, char in enumerate(line) if char == "|"]
        return [match.start() for match in _COLUMNS.finditer(line)]

    def _cells(self, number: int) -> list[str]:
        bounds = (-1, *self._marks[number], len(self.lines[number]))
        return [self.lines[number][start + 1 : end] for start, end in pairwise(bounds)]

    def _with_currencies(self, number: int, top: int) -> str:
        cells = self._cells(number)
        if _CURRENCY.search(self.lines[number].upper()):  # the row names its own
            return self.lines[number]
        for at, header in enumerate(self._cells(top)[: len(cells)]):
            if (amount := _AMOUNT.match(cells[at])) and (unit := unit_of(header)):
                cells[at] = f"{amount[0]} {unit}{cells[at][amount.end() :]}"
        parts = [self.lines[number][at] for at in self._marks[number]]
        return "".join(cell + part for cell, part in zip(cells, (*parts, ""), strict=True))

    def top(self, number: int) -> int:
        """The first line of the table that a line belongs to; -1 for a line of no table."""
        return self._tops[number]

    def cell(self, number: int, at: int) -> int:
        """The number of the cell in which a character of a line stands."""
        return bisect_right(self._marks[number], at)

    def is_row_number(self, number: int, at: int) -> bool:
        """True for a character in the column that numbers the rows of a table, by its header."""
        top = self._tops[number]
        if top not in self._numbering:
            headers = self._cells(top) if top >= 0 else ()
            self._numbering[top] = {cell for cell, header in enumerate(headers) if _NUMBERS_ROWS.fullmatch(header)}
        return self.cell(number, at) in self._numbering[top]

    def figures(self, rows: range, language: str) -> list[tuple[int, int, Figure]]:
        """The figures of some lines, each with its line and where in it it starts. A part that lies within is read once."""
        parts = self._parts[bisect_left(self._parts, rows.start) : bisect_right(self._parts, rows.stop)]
        found: list[tuple[int, int, Figure]] = []
        for first, end in pairwise(sorted({rows.start, *parts, rows.stop})):
            read = self._read.get((first, end, language))
            if read is None:
                starts = list(accumulate((len(line) + 1 for line in self.lines[first:end]), initial=0))
                some = figures("\n".join(self.lines[first:end]), "" if self.is_csv else language)
                placed = ((bisect_right(starts, each.start) - 1, each) for each in some)
                read = [(first + row, each.start - starts[row], each) for row, each in placed]
                if first in parts and end in parts:
                    self._read[first, end, language] = read
            found += read
        return found


@lru_cache(maxsize=512)
def unit_of(header: str) -> str:
    """The one unit that the header of a column or a line above a table names, as it is put behind an amount: `TEUR`."""
    named = {match["unit"]: match for match in _CURRENCY.finditer(header.upper())}
    if len(named) == 1:
        unit, match = named.popitem()
        large = "T" if match["k"] or match["k_behind"] else "M" if match["m"] or match["m_behind"] else ""
        return f"{large}{unit}" if large or not _THOUSANDS.search(header) else ""
    measures = set(_MEASURE.findall(header))
    return measures.pop() if len(measures) == 1 and not named and not _THOUSANDS.search(header) else ""
