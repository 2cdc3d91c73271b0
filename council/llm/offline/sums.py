"""Totals checked by arithmetic: of columns and lists, quantity times price in a row, and sums that a line spells out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from council.citations import CitedPlace
from council.llm.offline.mentions import read_mentions
from council.llm.offline.numerals import figure_pattern, parse_number
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import pattern

_LABEL_WORDS = 6  # longer ones are sentences that mention a sum
_MAX_RATIO = 3  # of a wrong sum to the right one; beyond it, the line adds other things than it tells
_MAX_SIGNS = 3  # rows that may be added, subtracted or left out: 27 readings


@dataclass(frozen=True)
class WrongSum:
    """`row` writes `shown` where `parts` make `sum`. `places` cites the parts where other rows hold them."""

    row: Statement
    shown: str
    parts: str
    sum: float
    places: str = ""


@dataclass(frozen=True)
class _Entry:
    row: Statement
    label: str
    shown: str
    value: float


def wrong_sums(statements: Sequence[Statement]) -> list[WrongSum]:
    """In order of the documents. A total that any usual reading of the figures above it explains is none of them."""
    found: list[WrongSum] = []
    for lines in _tables(statements):
        if lines[0].kind == "row":
            found += _products(lines)
            width = max(len(row.cells) for row in lines) if lines[0].header else 2
            columns = [_column(lines, place) for place in range(-width + 1, 0)]
        else:
            amounts = [(s, [m for m in read_mentions([s]) if m.kind == "amount"]) for s in lines]
            single = [
                _Entry(s, s.text, m[0].shown, m[0].value)
                for s, m in amounts
                if len(m) == 1 and isinstance(m[0].value, float)
            ]
            columns = [single] if lines[0].kind == "item" else []
            found += [wrong for s in lines for wrong in _spelled_out(s)]
        for column in columns:
            found += _totals(column)
    return found


def _tables(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Neighbouring lines of one kind: the rows of a table, the items of a list."""
    groups: list[list[Statement]] = []
    for s in statements:
        last = groups[-1][-1] if groups else s
        if groups and (s.path, s.kind, s.whole, s.section) == (last.path, last.kind, last.whole, last.section):
            groups[-1].append(s)
        else:
            groups.append([s])
    return groups


def _column(rows: Sequence[Statement], place: int) -> list[_Entry]:
    """The figures of one column, counted from the last; none of a column that holds other things, or prices of one piece."""
    header = rows[0].header
    if len(header) >= -place and pattern("sums", "price").search(header[place]):
        return []
    entries = []
    for row in rows:
        cell = row.cells[place].strip("*_ ") if len(row.cells) >= -place else ""
        value = parse_number(cell, row.language)
        if value is None and header and any(char.isdigit() for char in cell):
            return []
        label = " ".join(c.strip("*_ ") for c in row.cells if parse_number(c, row.language) is None).strip()
        if value is not None:
            entries.append(_Entry(row, label, cell, value))
    return entries


def _totals(entries: Sequence[_Entry]) -> Iterator[WrongSum]:
    since, totals = 0, list[float]()
    for index, entry in enumerate(entries):
        if len(entry.label.split()) > _LABEL_WORDS or not pattern("sums", "total").search(entry.label):
            continue
        above = entries[since:index]
        plain = [e.value for e in above if not pattern("sums", "signed").search(e.label)]
        signed = [e.value for e in above if pattern("sums", "signed").search(e.label)][:_MAX_SIGNS]
        bases = {0.0, *totals[-1:], sum(totals), sum(e.value for e in entries[:since] if e.value not in totals)}
        readings = [
            base + sum(plain) + sum(sign * value for sign, value in zip(signs, signed, strict=True))
            for base in bases
            for signs in product((1, -1, 0), repeat=len(signed))
        ]
        decimals = max(
            (len(found.group(1)) for e in above if (found := re.search(r"[.,](\d{1,2})\D*$", e.shown))), default=0
        )
        rounding = 0.5 * 10.0**-decimals * max(1, len(above)) + 1e-6
        if len(above) > 1 and all(abs(reading - entry.value) > rounding for reading in readings):
            first, last = above[0].row, above[-1].row
            places = str(CitedPlace(first.source, first.path, first.line, last.end_line))
            made = round(sum(each.value for each in above), 4)
            yield WrongSum(entry.row, entry.shown, "the figures above it", made, places)
        totals.append(entry.value)
        since = index + 1


def _products(rows: Sequence[Statement]) -> Iterator[WrongSum]:
    """Rows in which quantity times price is not the amount, where the header names all three."""
    roles = {}
    for index, head in enumerate(rows[0].header):
        role = next((name for name in ("price", "quantity", "amount") if pattern("sums", name).search(head)), "")
        roles[role] = index
    if not {"price", "quantity", "amount"} <= roles.keys():
        return
    for row in rows:
        cells = [
            row.cells[roles[name]] if roles[name] < len(row.cells) else "" for name in ("quantity", "price", "amount")
        ]
        many, each, total = (_leading(cell, row) for cell in cells)
        if many and each and total is not None and abs(many * each - total) > 0.006 * max(1.0, many):
            yield WrongSum(
                row, cells[2].strip("*_ "), f"{cells[0].strip()} × {cells[1].strip()}", round(many * each, 4)
            )


def _leading(cell: str, row: Statement) -> float | None:
    """The figure of a cell, with or without a unit behind it."""
    return parse_number(re.sub(r"\s*[^\W\d]+\.?$", "", cell.strip("*_ ")), row.language)


def _spelled_out(statement: Statement) -> Iterator[WrongSum]:
    one = figure_pattern()
    equation = rf"{one}(?:\s*[×x*]\s*{one}|(?:\s*\+\s*{one}){{1,8}})\s*=\s*{one}"
    for match in re.finditer(equation, statement.text, re.IGNORECASE):
        values = [parse_number(part, statement.language) for part in re.split("[×x*+=]", match.group())]
        numbers = [value for value in values if value is not None]
        if len(numbers) < 3 or len(numbers) != len(values):
            continue
        made = sum(numbers[:-1]) if "+" in match.group() else numbers[0] * numbers[1]
        other_unit = made > _MAX_RATIO * numbers[-1] or numbers[-1] > _MAX_RATIO * made
        if not other_unit and abs(made - numbers[-1]) > 0.006 * max(1.0, numbers[0]):
            left, _, right = match.group().rpartition("=")
            yield WrongSum(statement, right.strip(), left.strip(), round(made, 4))
