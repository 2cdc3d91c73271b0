"""Totals checked by arithmetic: of columns and lists, quantity times price in a row, and sums that a line spells out."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations, pairwise, permutations, product, takewhile

from council.citations import CitedPlace
from council.llm.offline.mentions import read_mentions
from council.llm.offline.numerals import (
    MAX_CHARS,
    exchanged_digits,
    figures,
    misprinted,
    parse_number,
    value_of,
    written_like,
)
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import lexicon, pattern

_LABEL_WORDS = 6  # longer ones are sentences that mention a sum
_MAX_RATIO, _MAX_RATIO_UNNAMED = (
    1.5,
    1.15,
)  # of a wrong total to the right one; beyond it, it is the total of something else
_MAX_RATIO_SHARE = 2.0
_ROUNDED = 0.002  # of a product, whose factors may be rounded
_MAX_COLUMNS = 8  # of figures that may make one another; more would be cubic
_FEWEST_ADDED = 3  # rows above a total that no word names
_COUNTED = 60  # whole numbers that make less are counted, not rounded
_MAX_SIGNS = 3  # rows that may be added, subtracted or left out: 27 readings


@dataclass(frozen=True)
class WrongSum:
    """`row` writes `shown`, which is `told`, where `parts` make `sum`. `place` cites the parts where other lines hold them."""

    row: Statement
    shown: str
    told: float
    parts: str
    sum: float
    place: str = ""

    @property
    def made(self) -> str:
        """The sum as the row would write it."""
        return written_like(self.shown, self.told, self.sum, self.row.language)


@dataclass(frozen=True)
class _Entry:
    """A figure of a column. `total` is "named" by its label, or "marked" by bold letters or a line drawn above it."""

    row: Statement
    shown: str
    value: float
    total: str = ""

    @property
    def signed(self) -> bool:
        return pattern("sums", "signed").search(self.row.text) is not None


def wrong_sums(statements: Sequence[Statement]) -> list[WrongSum]:
    """In order of the documents. A total that any usual reading of the figures above it explains is none of them."""
    found: list[WrongSum] = []
    for lines in _tables(statements):
        if lines[0].kind == "row":
            found += [*_products(lines), *(wrong for row in lines for wrong in _stated(row, None))]
            width = max(len(row.cells) for row in lines) if lines[0].header else 2
            columns = _with_totals([_column(lines, place) for place in range(-width + 1, 0)])
        else:
            amounts = [(s, [m for m in read_mentions([s]) if m.kind == "amount"]) for s in lines]
            single = [
                _Entry(s, m[0].shown, m[0].value, _named(s.text))
                for s, m in amounts
                if len(m) == 1 and isinstance(m[0].value, float)
            ]
            columns = [single] if lines[0].kind == "item" else []
            found += [wrong for last, s in pairwise([lines[0], *lines]) for wrong in _stated(s, last)]
            found += [wrong for end in range(len(lines)) for wrong in _led_to(lines[max(0, end - 2) : end + 1])]
        for column in columns:
            found += _totals(column)
    return list({(wrong.row.where, wrong.shown): wrong for wrong in reversed(found)}.values())[::-1]


def _tables(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Neighbouring lines of one kind: the rows of a table, the items of a list."""
    groups: list[list[Statement]] = []
    for s in statements:
        last = groups[-1][-1] if groups else s
        near = (s.path, s.section) == (last.path, last.section)
        if groups and near and (s.kind, s.whole) == (last.kind, last.whole):
            groups[-1].append(s)
        elif (
            near
            and last.kind == "item"
            and (pattern("sums", "summed").search(s.text) or (s.kind == "prose" and _named(s.text)))
        ):
            groups[-1].append(s)  # the sentence or the total below a list that adds it up
        elif near and s.kind == last.kind == "row" and not (s.header or last.header) and _named(s.cells[0]):
            groups[-1].append(s)  # the total of an invoice, below a blank line
        else:
            groups.append([s])
    return groups


def _column(rows: Sequence[Statement], place: int) -> list[_Entry]:
    """The figures of one column, counted from the last; none of a column that holds other things, or prices of one piece."""
    header = rows[0].header
    if len(header) >= -place and pattern("sums", "price").search(header[place]):
        return []
    entries: list[_Entry] = []
    units: set[str] = set()
    for row, before in zip(rows, [rows[0], *rows], strict=False):
        cell = row.cells[place] if len(row.cells) >= -place else ""
        value, unit = _cell(row, place)
        if value is None and header and any(char.isdecimal() for char in cell):
            if not any(entry.total for entry in entries):
                return []
            break
        if value is not None:
            units.add(unit)
            names = [c.strip("*_ ") for c in row.cells[:place] if c.strip() and parse_number(c, row.language) is None]
            drawn = not header and row.line > before.end_line + 1  # the line between is one of dashes
            marked = (
                "marked" if entries and (drawn or cell.strip().startswith("**") or _alone(row, value, entries)) else ""
            )
            named = next(filter(None, map(_named, names)), "")
            entries.append(_Entry(row, cell.strip("*_ "), value, named or marked))
    if len(units - {""}) > 1:
        return []
    if len(entries) > 3 and entries[0].total and not any(e.total for e in entries[1:]):
        return [*entries[1:], entries[0]]  # the total heads its column
    return entries


def _with_totals(columns: Sequence[list[_Entry]]) -> list[list[_Entry]]:
    """The columns of a table; a row in which two of them add up is a total, whatever its name."""
    adding = Counter(
        entry.row.line
        for column in columns
        for above, (made, entry) in enumerate(zip(accumulate(e.value for e in column), column[1:], strict=False), 1)
        if above >= _FEWEST_ADDED and math.isclose(made, entry.value)
    )
    return [[replace(e, total="named") if adding[e.row.line] > 1 else e for e in column] for column in columns]


def _cell(row: Statement, place: int) -> tuple[float | None, str]:
    cell = row.cells[place].strip("*_ ") if len(row.cells) >= (-place if place < 0 else place + 1) else ""
    value = parse_number(cell, row.language)
    found = None if value is not None else re.fullmatch(r"(.*\d)\s*([^\W\d]{1,8}[²³]?)\.?", cell)
    return (parse_number(found[1], row.language), found[2]) if found else (value, "")


def _alone(row: Statement, value: float, above: Sequence[_Entry]) -> bool:
    """Recognises a total, right or misprinted, whose row leaves cells empty, where each row above gives its factors."""
    if not above or _width(row) >= _width(above[-1].row):
        return False
    added = list(takewhile(lambda e: not e.total, reversed(above)))
    made = sum(e.value for e in added)
    near = math.isclose(made, value) or misprinted(round(made, 2), value)
    return len(added) > 2 and near and all(_width(e.row) > max(2, _width(row)) for e in added)


def _width(row: Statement) -> int:
    return sum(_cell(row, place)[0] is not None for place in range(-len(row.cells), 0))


def _named(label: str) -> str:
    return "named" if len(label.split()) <= _LABEL_WORDS and pattern("sums", "total").search(label) else ""


def _totals(entries: Sequence[_Entry]) -> Iterator[WrongSum]:
    since = 0
    for index, entry in enumerate(entries):
        if not entry.total:
            continue
        parts = [e for e in entries[:index] if not e.total]
        above = entries[since:index] if index - since > 1 else parts
        since = index + 1
        made = sum(e.value for e in above)
        decimals = max((len(found[1]) for e in above if (found := re.search(r"[.,](\d{1,2})\D*$", e.shown))), default=0)
        rounding = 0.5 * 10.0**-decimals * len(above) if decimals else float(made > _COUNTED)
        rounding += 1e-6
        most = (_MAX_RATIO if entry.total == "named" else _MAX_RATIO_UNNAMED) * min(made, entry.value)
        if max(made, entry.value) > most:  # of some of the rows, such as those below an opening balance
            run = list(enumerate(accumulate(e.value for e in reversed(entries[:index])), 1))
            count, made = next(
                ((n, made) for n, made in run if n > 2 and misprinted(round(made, 2), entry.value)), (0, 0.0)
            )
            above = entries[index - count : index]
        if len(above) < 2:
            continue
        if all(abs(reading - entry.value) > rounding for reading in _readings(entries[:index], entry)):
            yield _made_above(entry, made, above, "the figures above it")
    for index, entry in enumerate(entries):
        made = sum(e.value for e in entries[:index])
        for reading, told in ((made, "the figures above it"), (made / 2, "the figures above it, without subtotals,")):
            misprint = reading * entry.value > 0 and exchanged_digits(reading, entry.value) > 3
            if index > 2 and not entry.total and misprint:
                yield _made_above(entry, reading, entries[:index], told)
        total = next((e for e in reversed(entries[:index]) if e.total), None)
        share = re.search(r"(\d{1,2}(?:[.,]\d)?)\s*%", entry.row.text)
        if total and share and pattern("patterns", "tax").search(entry.row.text):
            part = (parse_number(share[1], entry.row.language) or 0.0) / 100
            near = abs(part * total.value - entry.value) <= (_MAX_RATIO_UNNAMED - 1) * entry.value
            shares = [
                rate * e.value for e in entries[:index] for rate in (part, part / (1 + part))
            ]  # beside it, or within
            if near and all(abs(made - entry.value) > 0.011 for made in shares):
                yield _made_above(entry, round(part * total.value, 2), [total], f"{share[0]} of {total.shown}")
        opened = pattern("sums", "result").search(entries[0].row.text)  # a balance brought forward
        before = [e for at, e in enumerate(entries[:index]) if index < 5 or e.total or (opened and not at)]
        if 1 < len(before) < 5 and pattern("sums", "result").search(entry.row.text):
            signs = product((1,), *[(1, -1, 0)] * (len(before) - 1))
            readings = [[sign * e.value for sign, e in zip(chosen, before, strict=True)] for chosen in signs]
            best = min(readings, key=lambda reading: abs(abs(sum(reading)) - abs(entry.value)))
            made = abs(sum(best))
            if 0.011 < abs(made - abs(entry.value)) <= (_MAX_RATIO_UNNAMED - 1) * made:
                added = " + ".join(e.shown for value, e in zip(best, before, strict=True) if value)
                less, more = sorted((sum(v for v in best if v > 0), -sum(v for v in best if v < 0)))
                both = [written_like(entry.shown, entry.value, each, entry.row.language) for each in (more, less)]
                yield _made_above(entry, made, before, " less ".join(both) if less else added)


def _led_to(statements: Sequence[Statement]) -> Iterator[WrongSum]:
    """Figures that "so" or "which makes" introduces, and that misprint what two figures before them make."""
    if not pattern("sums", "led").search(statements[-1].text[:MAX_CHARS]):
        return
    told = [(m, m.value) for m in read_mentions(statements) if not m.timed and isinstance(m.value, float)]
    said = [(value / 100 if m.kind == "percent" else value, m) for m, value in told]
    for index, (value, mention) in enumerate(said):
        led = pattern("sums", "led").search(mention.clause.partition("\x00")[0])
        if mention.statement is not statements[-1] or mention.kind not in ("amount", "count") or not led:
            continue
        before = said[max(0, index - _MAX_COLUMNS) : index]
        made: dict[float, tuple[str, Statement, Statement]] = {}
        for (x, a), (y, b) in combinations(before, 2):
            parts = {x * y: "{} × {}", x + y: "{} + {}", abs(x - y): "{} and {}, subtracted,"}
            made |= {each: (text.format(a.shown, b.shown), a.statement, b.statement) for each, text in parts.items()}
        wrong = [each for each in made if each not in dict(before) and misprinted(round(each, 2), value)]
        if wrong and all(abs(each - value) > 0.006 for each in (*made, *dict(before))):
            text, first, last = made[wrong[0]]
            place = _elsewhere(mention.statement, first, last)
            yield WrongSum(mention.statement, mention.shown, value, text, round(wrong[0], 4), place)


def _made_above(entry: _Entry, made: float, parts: Sequence[_Entry], told: str) -> WrongSum:
    place = _elsewhere(entry.row, parts[0].row, parts[-1].row)
    return WrongSum(entry.row, entry.shown, entry.value, told, round(made, 4), place)


def _elsewhere(row: Statement, first: Statement, last: Statement) -> str:
    """A citation of the lines from `first` to `last`; none where they are those of the row."""
    if row.line <= first.line and last.end_line <= row.end_line:
        return ""
    return str(CitedPlace(first.source, first.path, first.line, last.end_line))


def _readings(before: Sequence[_Entry], total: _Entry) -> Iterator[float]:
    """All usual ways to add up what stands above a total: the last rows, all rows, the totals, the rows of its name."""
    yield from accumulate(e.value for e in reversed(before))
    parts = [e for e in before if not e.total]
    totals = [e.value for e in before if e.total]
    named = set(total.row.stems)
    yield sum(e.value for e in parts if named & set(e.row.stems))
    yield from (sum(totals), sum(e.value for e in parts), *(abs(a - b) for a, b in pairwise(totals)))
    run = list(takewhile(lambda e: not e.total, reversed(before)))
    for chosen in (run, parts):
        signed = [e.value for e in chosen if e.signed][:_MAX_SIGNS]
        plain = sum(e.value for e in chosen if not e.signed)
        for base in (0.0, *totals[-1:]):
            for signs in product((1, -1, 0), repeat=len(signed)):
                yield base + plain + sum(sign * value for sign, value in zip(signs, signed, strict=True))


def _products(rows: Sequence[Statement]) -> Iterator[WrongSum]:
    """Rows in which quantity times price is not the amount, or the figures do not make the last one."""
    header = rows[0].header
    table = [[_cell(row, place)[0] for place in range(len(header))] for row in rows]
    figures = [place for place in range(len(header)) if any(row[place] is not None for row in table)][:_MAX_COLUMNS]
    roles = {
        role: [place for place in figures if pattern("sums", role).search(header[place])]
        for role in ("quantity", "price", "amount")
    }
    amounts = [place for place in roles["amount"] if place not in roles["price"] + roles["quantity"]]
    for many, each, total in permutations(figures, 3):
        named = many in roles["quantity"] and each in roles["price"] and [total] == amounts
        if named or many < each:
            yield from _by_rule(rows, table, (many, each, total), math.prod, named=named)
    if len(figures) > 2:
        yield from _by_rule(rows, table, figures, sum, named=False)


def _by_rule(
    rows: Sequence[Statement],
    table: Sequence[Sequence[float | None]],
    places: Sequence[int],
    make: Callable[[Sequence[float]], float],
    *,
    named: bool,
) -> Iterator[WrongSum]:
    """Rows that break a rule, the last of some figures being made of the others, which the header names or most rows keep."""
    kept, broken = 0, []
    for row, cells in zip(rows, table, strict=True):
        *parts, told = [cell for place in places if (cell := cells[place]) is not None] or [0.0]
        if len(parts) < len(places) - 1 or not told or (not named and min(parts) in (0.0, 1.0)):
            continue
        apart = abs(make(parts) - told)
        if apart <= max(0.006 * max(1.0, parts[0]), 0.0 if named or make is sum else _ROUNDED * told):
            kept += 1
        elif named or apart <= (_MAX_RATIO - 1) * told:
            others = [cell for cell in cells if cell is not None and cell != told][: 2 * _MAX_COLUMNS]
            readings = [math.prod(few) for size in (2, 3) for few in combinations(others, size)]
            if all(abs(reading - told) > 0.006 for reading in readings):  # 20 rooms × 4 nights × 112.00
                broken.append((row, told, round(make(parts), 4)))
        else:
            kept -= 1
    if named or (kept > 1 and kept >= 2 * len(broken)):
        for row, told, made in broken:
            *texts, last = (row.cells[place].strip("*_ ") for place in places)
            yield WrongSum(row, last, told, f" {'+' if make is sum else '×'} ".join(texts), made)


@cache
def _forms() -> dict[str, re.Pattern[str]]:
    """Arithmetic as sentences and rows write it, with # for a figure and % for a share."""
    names = ("times", "each", "joined", "of", "makes", "that", "so", "summed", "them")
    times, each, joined, of, makes, that, so, summed, them = (pattern("sums", name).pattern for name in names)
    words = rf"(?:[ (]+(?!{joined})[^\W\d_][\w'’.-]*){{0,4}}\)?"
    makes, more = rf"(?:,? {makes}| =)", rf"(?:(?:,|,? {joined}| \+){words} ?#{words})+"
    total = rf"(?:{makes} ?#|,?(?: {so})? #(?={words} {summed}))"
    forms = {
        "product": rf"#{words} ?(?:[×x*]|{times}) ?#(?:{words} ?[×x*] ?#)?{words}(?:{total}| \| ?#[ |]*$)",
        "each": rf"#{words},? #{words},? {each}{total}",
        "sum": rf"#{words}{more}{total}",
        "share": rf"#{words} {of} #[^#%.;]{{0,60}}(?:{makes} ?%|[,(] ?%(?=[.;)]|$))",
        "share of them": rf"#[^#%.;]{{0,60}}# {them}[^#%.;]{{0,60}}\. {that}[^#%.;]{{0,30}} %",
        "share of": rf"#[^#%]{{0,80}}\. {that} % {of} #",
    }
    return {form: re.compile(text, re.IGNORECASE) for form, text in forms.items()}


def _stated(statement: Statement, before: Statement | None) -> Iterator[WrongSum]:
    """Arithmetic that a sentence or a row states. One that begins with "that is" speaks of the sentence `before` it."""
    text = " | ".join(filter(None, statement.cells)) or statement.text[:MAX_CHARS]
    place = ""
    if before and pattern("sums", "that").match(text):
        text, place = f"{before.text} {text}", _elsewhere(statement, before, before)
    said: list[tuple[str, float, str]] = []
    masked, end = "", 0
    for match in figures().finditer(text):
        value, unit = value_of(match, match.lastgroup or "", statement.language)
        about = pattern("patterns", "about", end=r"\s*$").search(text[: match.start()])
        mark = "?"
        if isinstance(value, float) and match.lastgroup != "clock" and not about:
            mark = "%" if match.lastgroup == "percent" else "#"
            said.append((match.group().strip(" ."), value, unit or match.lastgroup or ""))
        masked += re.sub("[#%?]", ".", text[end : match.start()]) + mark
        end = match.start() + len(match.group().rstrip())
    masked += re.sub("[#%?]", ".", text[end:])
    for form, shape in _forms().items():
        for match in shape.finditer(masked):
            first = len(re.findall("[#%]", masked[: match.start()]))
            named = said[first : first + len(re.findall("[#%]", match.group()))]
            shown, told, unit = named.pop(1 if form == "share of" else -1)
            values, units = [value for _, value, _ in named], [each for *_, each in named]
            if form in ("product", "each"):
                made, slack, most, sign = math.prod(values), 0.006 * max(1.0, values[0]), _MAX_RATIO, " × "
                fits = units[-1] not in lexicon()["measures"] or unit == units[-1]  # 90 × 60 cm is a size
            elif form == "sum":
                made, slack, most, sign = sum(values), 0.006 * len(values), _MAX_RATIO_UNNAMED, " + "
                listed = re.search(
                    rf"#(?:,| {pattern('sums', 'joined').pattern})", match.group()
                )  # stations 3, 5 and 8
                fits = {unit} == set(units) and not (listed and unit == "count")
            else:
                if form == "share of them":  # the whole is told first
                    named, values, units = named[::-1], values[::-1], units[::-1]
                made, most, sign = 100 * values[0] / (values[1] or 1.0), _MAX_RATIO_SHARE, " of "
                slack = 0.51 * 10.0 ** -len("".join(re.findall(r"[.,](\d+)", shown)))
                fits = units[0] in (units[1], "count")
            near = max(made, told) <= most * min(made, told) or exchanged_digits(made, told)
            if fits and near and abs(made - told) > slack:
                yield WrongSum(statement, shown, told, sign.join(each for each, *_ in named), round(made, 4), place)
