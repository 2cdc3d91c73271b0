"""The figures of a sentence that cites, looked up in the lines that it cites. Pure.

A figure belongs to the citation behind it. It also belongs to the one before it, where no figure stands before that. It holds if
the cited lines say it in any spelling, with the headings and the table header above them. So does one that the task says,
and the sum, difference or product of what was cited. `about`, `over` and `under` leave a little room.

A small number in letters is often a count of the writer's own: it must disagree with a number of the same things. A small
number in digits may be the count of the lines or places that are cited.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal

from council.citations import CitedPlace
from council.deliberation.quotations.figure_reading import (
    CURRENCIES,
    DEGREES,
    Figure,
    dates_as_numbers,
    figures,
    in_thousands,
    language_of,
    same_date,
)
from council.deliberation.quotations.passages import Passage
from council.places import without_marks

Standing = Literal["cited", "own", "missing"]

_MAX_OPERANDS = 24
_MAX_PLACES = 64  # of one sentence, whose figures are added and multiplied
_MAX_DERIVED = 250  # figures of one decision that are tried as sums and products
_MAX_ROUGH = 2_000  # figures that one of "about" is compared with
_MAX_COMPARED = 3  # figures of which one may be a share of another, though the sentence names neither
_MAX_TRIPLES = 16  # figures of which three are added
_SMALL = 100  # sums and products of smaller numbers come about by chance
_ROUGHLY = Fraction(7, 100)  # `about`
_BEYOND = Fraction(15, 100)  # `more than`, `less than`
_LENGTHS = {"minute": (1, 60, 1_440, 10_080), "month": (1, 12)}  # of the times that a price may be for
_YEAR = re.compile(r"(?<![0-9])(?:(?:1[89]|20|21)[0-9]{2}|(?<=[0-9][./-])[0-9]{2})(?![0-9])")
_HEADING = re.compile(r" {0,3}(#{1,6})\s")
_ITEM = re.compile(r"\s*(?:[-+*•]|[0-9]{1,3}[.)])\s")
_TABLE_RULE = re.compile(r"[\s|:+-]*-{3}[\s|:+-]*")


@dataclass(frozen=True)
class CitedLines:
    """The lines of one cited place, and what stands above them and belongs to them: headings, the header of a table."""

    lines: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    language: str = "en"

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figures("\n".join(self.lines), self.language))

    @cached_property
    def index(self) -> FigureIndex:
        above = "\n".join(self.above)
        thousands = in_thousands("\n".join((above, *self.lines)), self.figures)
        return FigureIndex((*self.figures, *figures(above, self.language), *thousands))

    @property
    def counts(self) -> set[int]:
        """The numbers of things that these lines hold."""
        said = [line for line in self.lines if line.strip() and not _TABLE_RULE.fullmatch(line)]
        rows = [line for line in said if line.lstrip().startswith("|") and line not in self.above]
        return {len(said), sum(bool(_ITEM.match(line)) for line in said), len(rows), len(rows) - 1} - {0}


class FigureIndex:
    """Figures by what they say, for a document may hold thousands."""

    def __init__(self, found: Iterable[Figure]) -> None:
        self._by_key: dict[object, list[Figure]] = {}
        self._all = list(found)
        self._nouns = {(figure.unit, "" if figure.unit else _stem(figure.noun)) for figure in self._all}
        for figure in self._all:
            for key in _keys(figure):
                self._by_key.setdefault(key, []).append(figure)

    def says(self, said: Figure) -> bool:
        if said.rough:
            return any(_says(each, said) for each in self._all[:_MAX_ROUGH])
        return any(_says(each, said) for key in _keys(said) for each in self._by_key.get(key, ()))

    def contradicts(self, said: Figure) -> bool:
        """True when another number of the same things is there."""
        return (said.unit, "" if said.unit else _stem(said.noun)) in self._nouns and bool(said.unit or said.noun)


def _keys(figure: Figure) -> set[object]:
    """The keys under which figures meet that may say the same."""
    keys: set[object] = {*figure.values, *figure.bare}
    keys |= {("month", month) for _, month, _ in figure.dates} | set(map(Fraction, dates_as_numbers(figure)))
    if figure.kind == "time":
        keys = {("time", value // 1 % 720) for value in figure.values}
    return keys or {figure.text}


class CitedFigures:
    """Looks figures up in the passages that were read, and in the words of the `task`."""

    def __init__(self, passages: Sequence[Passage], task: str = "") -> None:
        self._passages = passages
        self._words = task
        self._left = _MAX_DERIVED
        self._known: dict[tuple[CitedPlace, bool], CitedLines] = {}

    @cached_property
    def _task(self) -> tuple[Figure, ...]:
        return tuple(figures(self._words))

    @cached_property
    def _asked(self) -> FigureIndex:
        return FigureIndex(self._task)

    @cached_property
    def _years(self) -> set[int]:
        """The years that anything names, and those beside them, for a date that names none; empty where nothing does."""
        texts = (self._words, *(text for each in self._passages for text in (each.path, each.text)))
        named = {int(year) % 100 for text in texts for year in _YEAR.findall(text)}
        return {(year + beside) % 100 for year in named for beside in (-1, 0, 1)}

    def standing(
        self, figure: Figure, places: Sequence[CitedPlace], in_sentence: Sequence[CitedPlace], beside: Sequence[Figure]
    ) -> Standing:
        """The standing of a figure. `places` are those it belongs to, `in_sentence` all that its sentence cites. `beside`
        are figures that hold already."""
        near = [lines for place in places for lines in self._lines_of(place)]
        if self._holds(figure, near, in_sentence, beside):
            return "cited"
        own = [lines for place in places for lines in self._lines_of(place, own=True)]
        return "own" if own and self._holds(figure, own, in_sentence, beside, own=True) else "missing"

    def _holds(
        self,
        figure: Figure,
        near: Sequence[CitedLines],
        in_sentence: Sequence[CitedPlace],
        beside: Sequence[Figure],
        *,
        own: bool = False,
    ) -> bool:
        years = {year % 100 for year, _, _ in figure.dates if year}
        if years and self._years and years.isdisjoint(self._years):
            return False
        if self._asked.says(figure) or any(lines.index.says(figure) for lines in near):
            return True
        counted = figure.worded and (figure.is_count or max(figure.bare, default=2) <= 1)
        if counted and not any(lines.index.contradicts(figure) for lines in near):
            return True
        if figure.is_count and figure.bare & {len(in_sentence), *(count for lines in near for count in lines.counts)}:
            return True
        if not self._left:
            return False
        self._left -= 1
        places = dict.fromkeys(in_sentence[:_MAX_PLACES])
        everywhere = near if own else [lines for place in places for lines in self._lines_of(place)]
        cited = [each for lines in everywhere for each in lines.figures[:_MAX_OPERANDS]]
        return _follows(figure, cited, [*beside, *self._task], beside)

    def _lines_of(self, place: CitedPlace, *, own: bool = False) -> list[CitedLines]:
        found = []
        for number, passage in enumerate(self._passages):
            if passage.own is own and passage.id == place.id and place.path in ("", passage.path):
                first = max(place.first, passage.first_line) if place.first else passage.first_line
                last = min(place.last, passage.last_line) if place.first else passage.last_line
                key = CitedPlace(str(number), "", first, last)
                if (key, own) not in self._known:
                    self._known[key, own] = _cited_lines(passage, first, last)
                found.append(self._known[key, own])
        return found


def _cited_lines(passage: Passage, first: int, last: int) -> CitedLines:
    lines = without_marks(passage.path, passage.text.removesuffix("\n")).split("\n")
    low, high = bisect_left(passage.numbers, first), bisect_right(passage.numbers, last)
    above: list[str] = []
    level = 7
    for line in reversed(lines[:low]):
        heading = _HEADING.match(line)
        if heading and len(heading[1]) < level:
            level = len(heading[1])
            above.append(line)
    cited = lines[low:high]
    top = low
    while 0 < top < len(lines) and lines[top].lstrip().startswith("|") and lines[top - 1].lstrip().startswith("|"):
        top -= 1
    if 0 <= top < low:
        above.append(lines[top])
    if low > 0 and passage.first_line == 1 and passage.path.lower().endswith((".csv", ".tsv")):
        above.append(lines[0])
    if passage.path.lower().endswith((".csv", ".tsv")):  # there a comma parts two cells
        cited = [*cited, *(re.sub(r"[,;\t]", "\n", line) for line in cited)]
    above.append(re.sub(r"[^\w.]+|_", " ", passage.path))
    return CitedLines(tuple(cited), tuple(above), language_of(passage.text))


# ── one figure and another ───────────────────────────────────────────────────────────────────────────────────────────


def _says(source: Figure, said: Figure) -> bool:
    """True when a figure of the source says what is said."""
    if said.dates and any(same_date(one, other) for one in said.dates for other in source.dates):
        return True
    if {said.sign, source.sign} == {"+", "-"}:
        return False
    if said.kind == "label" or source.kind == "label":
        return said.text == source.text
    if said.kind == "time" or source.kind == "time":
        return said.kind == source.kind and any(  # seconds may be left out
            0 <= other - one < (1 if one.denominator == 1 else Fraction(1, 60))
            for one in said.values
            for other in source.values
        )
    if source.dates and not said.dates and not said.unit:
        return bool(said.bare & set(map(Fraction, dates_as_numbers(source))))
    if {said.unit, source.unit} <= {"%", "point"} or said.unit == source.unit:
        return _near(said, said.values, source.values)
    return not (said.unit and source.unit) and _near(said, said.bare | said.values, source.bare | source.values)


def _near(said: Figure, values: Iterable[Fraction], of_source: Iterable[Fraction]) -> bool:
    for there in of_source:
        for value in values:
            away = there - value
            if value == there or (
                (said.rough == "about" and abs(away) <= _ROUGHLY * there)
                or (said.rough == "over" and 0 <= away <= _BEYOND * value)
                or (said.rough == "under" and 0 <= -away <= _BEYOND * value)
            ):  # fmt: skip
                return True
    return False


def _stem(noun: str) -> str:
    return noun[:3] + noun[3:].rstrip("esn")


# ── what follows from figures ────────────────────────────────────────────────────────────────────────────────────────


def _follows(said: Figure, cited: Sequence[Figure], others: Sequence[Figure], beside: Sequence[Figure]) -> bool:
    """True for a sum, difference or product of cited figures, or of one of them and another. True also for the days between two
    dates, and for the share that two figures beside it have in one another."""
    pool = [*cited, *others]
    if said.unit in _LENGTHS:
        times = [each for each in cited if each.kind == "time"][:_MAX_OPERANDS]
        apart = (abs(a - b) for one, other in combinations(times, 2) for a in one.values for b in other.values)
        if said.unit == "minute" and _near(said, said.values, apart):
            return True
        if _between_dates(said, [each for each in pool if each.dates]):
            return True
    if said.kind != "number":
        return False
    cited = [each for each in (*beside, *cited) if each.kind == "number"][:_MAX_OPERANDS]
    pool = [*cited, *(each for each in others if each.kind == "number")][: 2 * _MAX_OPERANDS]
    for one in cited:
        a_year = [_value(one) * 12] if said.per == "year" else [_value(one) / 12] if said.per == "month" else []
        if one.unit == said.unit and _is(said, a_year):
            return True
        for other in pool:
            small = max(said.values) < _SMALL and other not in cited
            may_add = not small and _may_add(said, (one, other))
            sums = [_value(one) + _value(other), abs(_value(one) - _value(other))] if may_add else []
            if one is not other and _is(said, [*sums, *_products(said, one, other), *_parts(said, one, other)]):
                return True
        if one.unit == said.unit and one.unit in CURRENCIES:  # so many nights for so many guests
            counts = [each for each in beside if each.is_count or not each.unit or each.unit in _LENGTHS]
            if _is(
                said, (max(a.bare) * max(b.bare) * _value(one) for a, b in combinations(counts, 2) if a.bare and b.bare)
            ):
                return True
    alike = [each for each in cited if _may_add(said, (each,))]
    if len(alike) <= _MAX_TRIPLES and any(
        _is(said, [sum(map(_value, three), Fraction(0))]) for three in combinations(alike, 3) if _may_add(said, three)
    ):
        return True
    for first in range(len(alike)):  # the total of a column
        total = _value(alike[first])
        for last in range(first + 1, len(alike)):
            total += _value(alike[last])
            if _may_add(said, alike[first : last + 1]) and _is(said, [total]):
                return True
    wholes = [each for each in cited if each.unit != "%" and (said.worded or _value(each) >= _SMALL)]
    compared = [*beside, *(wholes if len(wholes) <= _MAX_COMPARED else ())]
    return said.unit == "%" and any(_is(said, _shares(one, other)) for one in compared for other in compared)


def _value(figure: Figure) -> Fraction:
    return max(figure.values)


def _is(said: Figure, found: Iterable[Fraction]) -> bool:
    """True when one of the numbers found is the one said, as it is rounded."""
    close = _rounding(said.text)
    for value in found:
        for wanted in said.values:
            away = abs(value - wanted)
            rounds = wanted >= _SMALL or close < Fraction(1, 20)
            if not away or (rounds and away <= close) or (said.rough == "about" and away < value / 100):
                return True
    return False


@lru_cache(maxsize=1_024)
def _rounding(text: str) -> Fraction:
    """Half of the last digit of a figure as it is written."""
    decimals = max((len(part) for part in re.findall(r"[.,]([0-9]{1,2})(?![0-9])", text)), default=0)
    return Fraction(1, 2 * 10**decimals)


def _may_add(said: Figure, parts: Sequence[Figure]) -> bool:
    """True for figures of one unit, which small numbers must name."""
    units = {each.unit for each in parts}
    units |= set() if units == {"°C"} and said.noun in DEGREES else {said.unit}
    return len(units) == 1 or (max(said.values) >= _SMALL and len(units - {""}) <= 1)


def _products(said: Figure, one: Figure, other: Figure) -> list[Fraction]:
    """The products of a share, a number of things or a time with what each is or costs."""
    found = []
    for factor, amount in ((one, other), (other, one)):
        if amount.unit != said.unit and ((amount.unit and said.unit) or max(said.values) < _SMALL):
            continue
        if factor.unit == "%" and amount.unit not in _LENGTHS:
            found.append(_value(factor) * _value(amount) / 100)
            found += [(1 + sign * _value(factor) / 100) * _value(amount) for sign in (1, -1)]
        elif not factor.unit and (said.unit or max(said.values) >= _SMALL):
            found.append(_value(factor) * _value(amount))
        elif factor.unit in _LENGTHS and (amount.unit in CURRENCIES or not amount.unit) and max(said.values) >= _SMALL:
            found += [_value(factor) / length * _value(amount) for length in _LENGTHS[factor.unit]]
        elif factor.unit not in {*CURRENCIES, *_LENGTHS} and amount.unit in CURRENCIES:  # a price by the metre
            found.append(max(factor.bare) * _value(amount))
    return found


def _parts(said: Figure, one: Figure, other: Figure) -> list[Fraction]:
    """An amount of money, shared out among a number of things."""
    if one.unit != said.unit or one.unit not in CURRENCIES or other.unit in {*CURRENCIES, "%"} or not other.bare:
        return []
    return [_value(one) / max(other.bare)] if max(other.bare) > 1 else []


def _shares(one: Figure, other: Figure) -> list[Fraction]:
    if one.kind != "number" or other.kind != "number" or one.unit != other.unit or not _value(other):
        return []
    share = 100 * _value(one) / _value(other)
    return [
        Fraction(round(each * 10**places), 10**places) for each in (share, abs(share - 100)) for places in (0, 1, 2)
    ]


def _between_dates(said: Figure, dated: Sequence[Figure]) -> bool:
    days = []
    for figure in dated:
        for year, month, day in figure.dates:
            if year and day:
                try:
                    days.append(date(year, month, day))
                except ValueError:  # a 31 February
                    continue
    for one, other in combinations(dict.fromkeys(days), 2):
        first, last = min(one, other), max(one, other)
        for end in (last, last + timedelta(days=1)):  # the last day may count
            months = (end.year - first.year) * 12 + end.month - first.month
            away = Fraction((end - first).days * 1440)
            if _near(said, said.values, [away] if said.unit == "minute" else [Fraction(months)]):
                return True
    return False


def groups(items: Sequence[Figure | Sequence[CitedPlace]]) -> list[tuple[Figure, list[CitedPlace]]]:
    """The figures of a sentence, each with the places it belongs to. `items`: figures and citations, in order."""
    runs: list[tuple[bool, list[Figure], list[CitedPlace]]] = []  # figures and citations by turns
    for item in items:
        figure = isinstance(item, Figure)
        if not runs or runs[-1][0] is not figure:
            runs.append((figure, [], []))
        if isinstance(item, Figure):
            runs[-1][1].append(item)
        else:
            runs[-1][2].extend(item)
    found: list[tuple[Figure, list[CitedPlace]]] = []
    for at, (is_figures, said, _) in enumerate(runs):
        if is_figures:
            behind = runs[at + 1][2] if at + 1 < len(runs) else []
            before = runs[at - 1][2] if at else []
            leading = at == 1  # nothing stands before the citation that could own it
            found += [(figure, [*behind, *(before if leading or not behind else [])]) for figure in said]
    return found
