"""Calculation with cited figures: sums, differences, products, parts, shares, the time between two dates. Pure.

Every operand has support, and each counts once, however often it is said. A number of things that the writer counted is
multiplied and divides, but it is not added.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product

from council.deliberation.quotations.days_and_hours import same_date
from council.deliberation.quotations.figure import NONE, Figure
from council.deliberation.quotations.figure_reading import CROWNS, CURRENCIES, DEGREES

_MAX_OPERANDS = 24  # of the cited figures, besides as many that the sentence or the task names
_MAX_DATED = 64
_MAX_TERM = {"minute": 50_000_000, "month": 1_140}  # both are 95 years
_MAX_PRICES = 100
_MAX_AFAR = 2_400  # of a figure that the sentence names and one farther on in a long document
# Pairs of cited figures of which one may be a share of the other, in whole numbers: so many shares come about by chance.
_MAX_COMPARED = 9
_MAX_DAYS = 3  # the same for a day without a year, and terms of days and weeks
_MAX_TRIPLES = 16  # figures of which three are added
_MAX_SUBTRACTED = 4  # of which one or two are subtracted
_MAX_RATES = 3  # percentages that an amount is multiplied with
_MAX_TAX = 0.3
_MAX_NAMED = 8  # figures of a sentence of which two are multiplied and a third one is added
_MAX_APART = 5  # prices, or pairs of one row, whose differences are calculated with
_STEM = 4  # letters of a noun, of one thing and of many
_SMALL = 100  # sums and products of smaller numbers come about by chance
_EXACT = 1e-12  # of a number, for there are thousands of pairs, and fractions are slow
OF = frozenset({"of", "out", "von", "sur", "di", "van"})  # between a part and its whole: `5 of 7`
_CENT = 0.005  # for there are many such totals, and one of them would round to any number
_DAY = 1_440  # minutes
_NIGHTS = frozenset({"night", "nights", "nacht", "nächte", "nächten", "nuits", "noches", "notti", "nachten"})
YEARS = frozenset(map(str, range(1800, 2200)))
_ROUGHLY = Fraction(7, 100)  # `about`
_FINEST = 4  # decimals
_FOLD, _ROUGH_FOLD = 0.05, 0.1  # `tripled`, `nearly doubled`
_BEYOND = Fraction(15, 100)  # `more than`, `less than`
_CENTS = re.compile(r"[0-9][.,][0-9]{2}\Z")
_OF_WORKDAY = {"workday": Fraction(7 * 1_440, 5), "minute": Fraction(5, 7 * 1_440)}  # five of them are a week
LENGTHS = {"minute": (1, 60, 1_440, 10_080), "month": (1, 12)}  # of the times that a price may be for


@dataclass(frozen=True)
class Operands:
    """The figures that another one may follow from, and what its sentence speaks of."""

    sources: Sequence[Figure]  # of the cited lines, in order
    columns: Sequence[Sequence[Figure]]  # the same, as the cells of a table have them below one another
    totals: Sequence[Figure]  # prices times the numbers beside them, in order
    pairs: Sequence[tuple[Figure, Figure]]  # two of one row
    beside: Sequence[Figure]  # of the sentence, with support
    added: Sequence[Figure]  # those of them that are in no source
    counted: Sequence[Figure]  # of the sentence: the writer's own counts, and what is rounded; they are not added
    asked: Sequence[Figure]  # of the task
    averaged: bool  # an average
    compared: bool  # more or less
    taxed: bool  # amounts with a tax
    turned: bool  # a change, or those who did not
    remaining: bool  # what others have, or those who did not


def follows(said: Figure, given: Operands) -> bool:
    """True for a sum, difference or product of cited figures, or of one of them and another. True also for the days between two
    dates, and for the share that two figures beside it have in one another."""
    if said.kind == "date":
        return _is_end_of_term(said, given)
    if said.kind == "time":
        return _is_so_long_after(said, given) or any(_is_sum_of_some(said.length, each) for each in given.columns)
    if _is_time_between(said, given):
        return True
    if said.kind != "number":
        return False
    sources, beside, added, counted, asked = (
        [each for each in figures if each.kind == "number"]
        for figures in (given.sources, given.beside, given.added, given.counted, given.asked)
    )
    if said.unit == "times":
        fold = _ROUGH_FOLD if said.rough else _FOLD
        both = product([each for each in (*beside, *sources[:_MAX_OPERANDS]) if each.text not in YEARS], repeat=2)
        # A cell leaves its unit to the header.
        alike = [(a, b) for a, b in both if b.value and (a.unit == b.unit or min(a.value, b.value) >= _SMALL)]
        return any(abs(one.value - said.value * other.value) <= fold * one.value for one, other in alike)
    if said.each and not said.unit:  # so many pupils, shared out among so many teachers
        things = [each for each in (*beside, *sources) if each.noun and not each.unit and each.value]
        parts = [each.value for each in things if each.noun[:_STEM] == said.each[:_STEM]]
        wholes = (each.value for each in things if each.noun[:_STEM] == said.noun[:_STEM])
        room = 0.5 * 0.1 ** _decimals(said.text)
        if any(abs(whole / part - said.value) <= room for whole, part in product(wholes, parts[:_MAX_OPERANDS])):
            return True
    names = {value for each in (*beside, *asked) for value in each.values}
    named = [each for each in sources if each.values & names][:_MAX_OPERANDS]
    ranked = sorted(sources, key=lambda each: (not each.values & names, each.unit != said.unit))
    nearest = _MAX_OPERANDS + len(named)
    cited = [*added, *ranked[:nearest]]
    all_cited = [*cited, *ranked[nearest:]]
    summed = cited if given.compared else [*beside, *asked]
    votes = {each.votes_cast for each in cited if each.side}
    others = [each.value for each in cited if not each.side and not each.unit and each.text not in YEARS]
    runs = [[each for each in run if each.unit == said.unit and each.text not in YEARS] for run in (beside, sources)]
    runs += [list(column) for column in given.columns if {each.unit for each in column} <= {"", said.unit}]
    averages = [sum(each.value for each in run) / len(run) for run in runs if given.averaged and len(run) > 1]
    return (
        any(_is(said, _in_a_period(said, one)) for one in cited)
        or any(_follows(said, one, other) for one, other in combinations(cited, 2))
        or any(_follows(said, *both, add=said.value >= _SMALL) for both in product(cited, asked[:_MAX_OPERANDS]))
        or _from_a_named_figure(said, [*added, *named], counted, all_cited)
        or _is_twelve(said, beside, sources)
        or _at_a_price_each(said, list({each.start: each for each in (*beside, *counted)}.values()), cited, given)
        or _is_sum(said, cited, summed, sources[:_MAX_OPERANDS], (*given.columns, given.totals))
        or (is_price(said) and any(_is(said, [each.value]) for each in given.totals if each.unit in ("", said.unit)))
        or any(_adds_to_product(said, *three) for three in permutations(beside[:_MAX_NAMED], 3))
        or _is_share(said, beside, sources, given)
        or _is_end_of_term(said, given)
        or _is(said, averages)
        or (not said.unit and _is(said, [*votes, *(each - cast for each, cast in product(others, votes))]))
    )


def is_multiple(said: Figure, factor: Figure, named: Iterable[Figure], sources: Sequence[Figure]) -> bool:
    """True for a price, taken `factor` times: one that the sentence names, or one that the sources name for a period, of
    which `factor` is so many. True also for a share of a price that the sources name."""
    if said.kind == "number" and factor.unit == "%" and said.unit in CURRENCIES:
        share = factor.bare_value if factor.worded else factor.value / 100
        return any(_is(said, [share * price.value]) for price in sources[:_MAX_PRICES] if price.unit == said.unit)
    whole = factor.kind == "number" and all(value.denominator == 1 and value > 1 for value in factor.bare)
    if said.kind != "number" or said.unit not in CURRENCIES or not whole or factor.unit not in ("", *LENGTHS):
        return False
    prices = [*named, *(each for each in sources[:_MAX_PRICES] if each.per and factor.unit)]
    return any(_is(said, _products(said, factor, price)) for price in prices if price.unit == said.unit)


def _follows(said: Figure, one: Figure, other: Figure, *, add: bool = True) -> bool:
    large = min(one.value, other.value) >= _SMALL and "" in (one.unit, other.unit)
    if not said.unit and (one.unit == other.unit or large) and one.bare and other.bare:  # `five thousand more` of hours
        one, other = (replace(each, values=each.bare, unit="") for each in (one, other))
    adds = add and _may_add(said, (one, other)) and min(one.value, other.value) > _slack(said, said.value)
    found = [*_products(said, one, other), *_parts(said, one, other), *_parts(said, other, one)]
    found += [abs(one.value - other.value)] if adds else []
    return _is(said, found) or (adds and _is(said, [one.value + other.value]) and _are_apart((one, other)))


def _adds_to_product(said: Figure, one: Figure, other: Figure, added: Figure) -> bool:
    """True for `4 × 92 EUR + 14 EUR`, where the sentence names all three."""
    if not _may_add(said, (added,)) or added.value <= _slack(said, said.value):
        return False
    return _is(said, (each + sign * added.value for each in _products(said, one, other) for sign in (1, -1)))


def _from_a_named_figure(
    said: Figure, named: Sequence[Figure], counted: Sequence[Figure], sources: Sequence[Figure]
) -> bool:
    """True for what follows from a figure that the sentence names and from any that is cited. In a long document, only
    figures of one unit are added."""
    reach = sources[: _MAX_AFAR // max(1, len(named) + len(counted))]
    return any(
        _follows(said, one, other, add=bool(said.unit) and one.unit == other.unit)
        for one, other in product(named, reach)
        if one is not other
    ) or any(_follows(said, one, other, add=False) for one, other in product(counted, reach))


def _in_a_period(said: Figure, one: Figure) -> list[float]:
    """The amount of one period, for another one. Where only one of them is said, the other is a year, or also a month."""
    if not (one.unit == said.unit or (not one.unit and one.value >= _SMALL)) or not (said.per or one.per):
        return []
    months = said.per or Fraction(12)
    paid_for = (one.per,) if one.per else (Fraction(1), Fraction(12))
    return [one.value * float(months / each) for each in paid_for if each != months]


def _is_twelve(said: Figure, beside: Sequence[Figure], sources: Sequence[Figure]) -> bool:
    """True for the number of months, where the sentence says what is paid each month and what that makes in a year."""
    if said.unit not in ("", "month") or said.value != 12:
        return False
    paid = {(each.unit, each.value * 12) for each in sources if each.per == 1}
    return any((each.unit, each.value) in paid for each in beside)


def _at_a_price_each(said: Figure, named: Sequence[Figure], cited: Sequence[Figure], given: Operands) -> bool:
    """True for what so many nights cost so many guests, what six cost at 4 % off, what a share of a month's rent is in a year.
    True also for so many at one price and what the sentence counts besides, at another: two adults and three children.
    Where the sentence compares, true for the difference of two columns or of few prices: as it is, taxed, or by the month."""
    if not is_price(said):
        return False
    prices = [each for each in cited if each.unit == said.unit and is_price(each)]
    rates = list({each.value / 100: each for each in (*named, *cited) if each.unit == "%"})[:_MAX_RATES]
    parts = [part for rate in rates for part in (rate, 1 - rate, 1 + rate)]
    counts = [each.bare_value for each in named if each.bare and (not each.unit or each.unit in LENGTHS)]
    many = {count * each for at, count in enumerate(counts, 1) for each in (*counts[at:], *parts)} - {1}
    found = [each * price.value for price in prices for each in many]
    found += (each * paid for price in prices for paid in _in_a_period(said, price) for each in (*counts, *parts))
    of_each = {each.value: each for each in prices if each.value > _slack(said, said.value)}
    columns = [[each for each in column if each.text not in YEARS] for column in given.columns]
    columns = [each for each in columns if len(each) > 1 and {cell.unit for cell in each} <= {"", said.unit}]
    sums = [(sum(each.value for each in column), column[-1].value) for column in columns]
    # The last cell may be the total already.
    all_of = [last if abs(total - 2 * last) < _CENT else total for total, last in sums]
    said_rates = {each.value / 100 for each in named if each.unit == "%"}
    taxes = [1 + rate for rate in rates if given.taxed and (len(rates) == 1 or rate in said_rates)]
    found += (tax * each for tax in taxes for each in all_of)
    if given.compared or given.turned:
        values = {each.value for each in named}
        few = [each for value, each in of_each.items() if len(of_each) <= _MAX_APART or value in values]
        both = [*combinations(few, 2), *[pair for pair in given.pairs if pair[0].unit in ("", said.unit)][:_MAX_APART]]
        pairs = [(one.value, other.value) for one, other in both if one.per == other.per] + [*combinations(all_of, 2)]
        by_period = [float(said.per) / 12] if 0 < said.per < 12 else []
        found += (factor * abs(one - other) for factor in (*taxes, *by_period) for one, other in pairs)
        found += (abs(one - other) for one, other in combinations(all_of, 2))
    if len(of_each) > _MAX_COMPARED:
        return _is(said, found)
    taxed = ((1 + rate) * (one + other) for rate in rates for one, other in combinations(of_each, 2))
    two = permutations(of_each, 2) if len(counts) == 2 else ()
    totals = [counts[0] * one + counts[1] * other for one, other in two]
    near_totals = (abs(each - wanted) < _CENT for each in totals for wanted in _floats(said.values))
    return _is(said, (*found, *taxed)) or any(near_totals)


def _is_sum(
    said: Figure,
    cited: Sequence[Figure],
    named: Sequence[Figure],
    in_order: Sequence[Figure],
    columns: Sequence[Sequence[Figure]],
) -> bool:
    """True for the sum of any three figures, or of some in a row or below one another. Of few figures, one of them `named`,
    one may be subtracted from two, or two from one. A column is also added up with its signs."""
    alike = [each for each in cited if each.value and _may_add(said, (each,))]
    triples = combinations(alike, 3) if len(alike) <= _MAX_TRIPLES else ()
    if any(_adds_up(said, three) for three in triples):
        return True
    if said.value >= _SMALL:
        measured = [each.value for each in alike if each.unit == said.unit or (not each.unit and each.value >= _SMALL)]
        few = combinations(measured, 3) if len(measured) <= _MAX_SUBTRACTED else ()
        names = {each.value for each in named}
        found = [abs(sum(three) - 2 * each) for three in few if not names.isdisjoint(three) for each in three]
        signed = [[-each.value if each.sign == "-" else each.value for each in column] for column in columns]
        mixed = [column for column in signed if len(column) > 1 and min(column) < 0]
        if _is(said, [*found, *(abs(sum(part)) for column in mixed for part in (column, column[1:]))]):
            return True
    rows = [each for each in in_order if each.value and _may_add(said, (each,))]
    return any(_is_sum_of_some(said, run) for run in (rows, *columns))


def _is_sum_of_some(said: Figure, run: Sequence[Figure]) -> bool:
    """True for the sum of neighbours; of a long column, only for that of all, with or without a last line for the total."""
    if len(run) > _MAX_OPERANDS:
        return _adds_up(said, run) or _adds_up(said, run[:-1])
    for first in range(len(run) - 1):
        total = run[first].value
        for at, each in enumerate(run[first + 1 :], first + 2):
            total += each.value
            if _is(said, [total]) and _adds_up(said, run[first:at]):
                return True
    return False


def _adds_up(said: Figure, parts: Sequence[Figure]) -> bool:
    return _is(said, [sum(each.value for each in parts)]) and _may_add(said, parts) and _are_apart(parts)


def _are_apart(parts: Sequence[Figure]) -> bool:
    """False where a vote is added to a number that may hold those who voted, for it is no smaller: `4 votes to 1, six were
    present`."""
    least = min((each.votes_cast for each in parts if len(each.ballot) > 1), default=math.inf)
    return all(each.side or each.value < least for each in parts)


def _is_share(said: Figure, beside: Sequence[Figure], sources: Sequence[Figure], given: Operands) -> bool:
    """True for the share, or the change, of one figure and another that the sentence names too; of few cited ones, of any, and
    of few rows, of two in one row. Only where the sentence says so, it may be what remains of a share."""
    if said.unit != "%":
        return False
    in_rows, turned = given.pairs, given.turned or said.rough in ("", "about")
    rest = {100 - max(each.values) for each in (*beside, *sources) if each.unit == "%"}
    if given.remaining and not said.worded and len(rest) < _MAX_RATES and near(said, said.values, rest):
        return True
    if said.rough and near(said, said.values, (max(each.values) for each in beside if each.unit == "%")):
        return True
    pairs = [*((one, other) for one, other in pairwise(sources) if one.noun in OF), *permutations(beside, 2)]
    most = _MAX_COMPARED * (5 if said.worded else 10 ** _decimals(said.text))
    pairs += [each for one, other in in_rows for each in ((one, other), (other, one))] if len(in_rows) <= most else []
    countable = [each for each in sources if each.unit != "%" and each.text not in YEARS]
    for unit in dict.fromkeys(each.unit for each in countable):
        alike = {max(each.values): each for each in countable if each.unit == unit}
        named = {max(each.values): each for each in beside if each.unit == unit}
        largest, total = max(alike), sum(alike, Fraction(0))  # one of them may be what the others are parts of
        all_of_it = {total: replace(alike[largest], values=frozenset({total}))} if total != 2 * largest else alike
        votes = [(each, Fraction(each.votes_cast)) for each in countable if each.side and each.unit == unit]
        cast = {number: replace(each, values=frozenset({number})) for each, number in votes}
        for wholes in (alike, named, {largest: alike[largest]}, alike | all_of_it, cast):
            if len(wholes) * len(alike) <= most:
                both = [pair for pair in product(wholes.values(), alike.values()) if pair[0].value != pair[1].value]
                pairs += [*both, *((other, one) for one, other in both)]
    return any(near(said, said.values, _shares(*pair, turned=turned)) for pair in pairs)


def _shares(one: Figure, other: Figure, *, turned: bool) -> Iterator[Fraction]:
    counts = one.noun in OF and not one.unit  # `6 of the 9 weeks`
    large = min(one.value, other.value) >= _SMALL and not (one.unit and other.unit)  # `3,840 instead of 2,850 EUR`
    wholes = other.values if one.unit == other.unit or large else other.bare if counts else NONE
    if whole := max(wholes, default=0):
        share = 100 * max(one.values) / whole
        for each, places in product((share, abs(share - 100)) if turned or share > 100 else (share,), (1, 10, 100)):
            yield Fraction(int(each * places + Fraction(1, 2)), places)


def _is_so_long_after(said: Figure, given: Operands) -> bool:
    """True for a time of day so long after or before another one, where the sentence says how long, or few cited lines do."""
    times = [each for each in (*given.beside, *given.sources) if each.kind == "time"][:_MAX_OPERANDS]
    named, cited = (
        [each for each in some if each.unit == "minute" and each.kind == "number"]
        for some in (given.beside, given.sources)
    )
    few = cited if len(times) * len(cited) <= _MAX_COMPARED else ()
    lengths = [each for each in (*named, *few) if each.value < _DAY / 2]  # `19h30` is also a length
    found = (
        (time + sign * length) % _DAY
        for one, other in product(times, lengths)
        for time, length, sign in product(one.values, other.values, (1, -1))
    )
    return near(said, said.values, found)


def _is_end_of_term(said: Figure, given: Operands) -> bool:
    """True for a date so long after or before another one, where the sentence says how long, or few cited lines do. For a year,
    so many years after one, the sentence says both. A term may end on the day before."""
    is_year = said.kind == "number"
    names_day = any(day for _, _, day in said.dates)
    dated = given.beside if is_year else [*given.beside, *given.sources, *given.asked][:_MAX_DATED]
    begins = {each for figure in dated for each in figure.dates}
    begins |= {(int(figure.value), 1, 0) for figure in dated if figure.text in YEARS}
    found: list[tuple[int, int, int]] = []
    terms, cited = (
        [each for each in some if each.kind == "number" and each.unit in LENGTHS and each.value < _MAX_TERM[each.unit]]
        for some in (given.beside, given.sources)
    )
    has_year = all(year for year, *_ in said.dates)
    cited = [each for each in cited if has_year or (names_day and each.unit == "minute")]
    if not is_year and len(begins) * (len(terms) + len(cited)) <= (_MAX_COMPARED if has_year else _MAX_DAYS):
        terms += cited
    for term, (year, month, day) in product(terms, begins):
        for sign in (1,) if is_year else (1, -1):
            if is_year and term.value % 12:
                continue
            if is_year and month == 1 and day < 2:  # from the first of January to the end of a year
                found.append((year + round(term.value) // 12 - 1, 12, 31))
            if term.unit == "month":
                at, then = divmod(12 * year + month - 1 + sign * round(term.value), 12)
                found.append((at if year else 0, then + 1, day))
                at = at if year else 2001
                last = monthrange(at, then + 1)[1]
                if day == monthrange(year or 2001, month)[1]:  # the last of a month, to the last of another one
                    found.append((at if year else 0, then + 1, last))
                if not is_year and (names_day or not day):  # from 1 September to 31 August
                    beside = date(at, then + 1, min(day, last) or (1 if sign > 0 else last)) - timedelta(days=sign)
                    found.append((beside.year if year else 0, beside.month, beside.day))
            elif not is_year and year and 0 < day <= monthrange(year, month)[1]:
                then_on = date(year, month, day) + timedelta(minutes=sign * term.value)
                found.append((then_on.year, then_on.month, then_on.day))
    if is_year:
        return said.text in YEARS and any(int(said.value) == year for year, _, _ in found)
    return any(same_date(one, other) for one in said.dates for other in found)


@lru_cache(maxsize=8_192)
def _floats(values: frozenset[Fraction]) -> tuple[float, ...]:
    return tuple(map(float, values))


def _is(said: Figure, found: Iterable[float]) -> bool:
    """True when one of the numbers found is the one said, as it is rounded."""
    for value in found:
        for wanted in _floats(said.values):
            away = abs(value - wanted) - _EXACT * max(1.0, wanted)
            rounds = away <= 0.5 and away <= _slack(said, wanted)
            if away <= 0 or rounds or (said.rough == "about" and away < value / 100):
                return True
            if said.rough == "about" and _SMALL <= wanted > 20 * away and said.unit not in LENGTHS:
                grain = _grain(said, Fraction(wanted))
                if 2 * away <= grain <= wanted / 10:  # `some 3,700` for 3,660, but not `almost 700` for 650
                    return True
    return False


@lru_cache(maxsize=1_024)
def _decimals(text: str) -> int:
    return max((len(part) for part in re.findall(r"[.,]([0-9]{1,2})(?![0-9])", text)), default=0)


def _slack(said: Figure, value: float) -> float:
    """The room that the rounding of a figure leaves, none for a small whole number. It is also the largest addend that counts
    for nothing: with it another figure would merely be said again."""
    half = 0.5 * 0.1 ** _decimals(said.text)  # of the last digit as it is written
    in_its_unit = min(1.0, said.value / (said.bare_value or 1.0))  # half of a second is less than half of a minute
    return half * in_its_unit if value >= _SMALL or half < 0.05 else 0.0


def _may_add(said: Figure, parts: Sequence[Figure]) -> bool:
    """True for figures of one unit, which small numbers must name. To an amount a number without one is added only where it is
    large enough to be another: the cell of a table may leave its unit to the header."""
    if (said.text in YEARS or said.rough) and any(each.text in YEARS for each in parts):
        return False
    money = said.unit if said.unit in CURRENCIES else ""
    units = {each.unit or (money if money and is_price(each) else "") for each in parts}
    small = [each for each in parts if not each.unit and each.value < _SMALL]
    if len(units) > 1 and "" in units and (small or not said.unit):
        return False
    if units != {"°C"} or said.noun not in DEGREES:
        units.add(said.unit)
    if units <= {"%", "point"}:
        units = {"%"}
    if len(units) == 2 and units <= CROWNS:
        units -= {"kr"}
    return len(units) == 1 or (said.value >= _SMALL and len(units - {""}) == 1)


def _products(said: Figure, one: Figure, other: Figure) -> list[float]:
    """The products of a share, a number of things or a time with what each is or costs. A factor of one proves nothing: it
    says anew what stands at another place."""
    found: list[float] = []
    beside = not one.unit and 0 < other.start - one.end <= len(" x ")  # `6 × 4.5 m`
    if said.unit == "m²" and other.unit == "metre" and (one.unit == "metre" or beside):
        return [one.value * other.value]
    if said.unit == "kWh" and {one.unit, other.unit} == {"kW", "minute"}:
        return [one.value * other.value / 60]
    for factor, amount in ((one, other), (other, one)):
        if factor.side:  # nothing is calculated from ballots
            continue
        if amount.unit != said.unit and ((amount.unit and said.unit) or said.value < _SMALL):
            continue
        factors: list[float] = []
        if factor.unit == "%" and amount.unit not in LENGTHS:
            share = factor.bare_value if factor.worded and factor.bare_value < 1 else factor.value / 100  # `two thirds`
            net = [1 / (1 + share)] if amount.unit == said.unit and share < _MAX_TAX else []  # of a gross price
            factors = [share, 1 + share, 1 - share, *net]
        elif not factor.unit and (said.unit or said.value >= _SMALL or (is_price(said) and is_price(amount))):
            factors = [factor.value]
        elif factor.unit in LENGTHS and (amount.unit in CURRENCIES or not amount.unit) and said.value >= _SMALL:
            factors = [factor.value / length for length in LENGTHS[factor.unit]]
        elif amount.unit in CURRENCIES and factor.unit not in {*CURRENCIES, *LENGTHS}:  # a price by the metre
            factors = [factor.bare_value]
        found += [each * amount.value for each in factors if abs(each - 1) * amount.value > _slack(said, said.value)]
    return found


def _parts(said: Figure, one: Figure, other: Figure) -> list[float]:
    """An amount of money, shared out among a number of things."""
    if one.unit != said.unit or one.unit not in CURRENCIES or other.unit in {*CURRENCIES, "%"} or other.side:
        return []
    return [one.value / other.bare_value] if other.bare and other.bare_value > 1 else []


def _is_time_between(said: Figure, given: Operands) -> bool:
    """True for the time between two times of day, or two dates; and for working days, as a length of time."""
    worked = [each for each in (*given.sources, *given.beside) if {said.unit, each.unit} == {"minute", "workday"}]
    if near(said, said.values, (value * _OF_WORKDAY[each.unit] for each in worked for value in each.values)):
        return True
    nights = said.noun in _NIGHTS and not said.unit
    length = replace(said, values=frozenset(_DAY * each for each in said.values), unit="minute") if nights else said
    if length.unit not in LENGTHS:
        return False
    times = [each for each in given.sources if each.kind == "time"][:_MAX_OPERANDS]
    clock = list(combinations(times, 2))
    apart = [abs(a - b) for one, other in clock for a in one.values for b in other.values]
    apart += [(min(other.values) - min(one.values)) % _DAY for one, other in clock]  # over midnight
    if said.unit == "minute" and near(said, said.values, apart):
        return True
    dated, asked = (
        [each for each in some if each.dates or each.text in YEARS]
        for some in ((*given.beside, *given.sources), given.asked)
    )
    for some in (dated[:_MAX_DATED], [*dated, *asked][:_MAX_DATED]):  # a year of the task is no year of the cited lines
        days: list[date] = []
        has_year = any(year for figure in some for year, _, day in figure.dates if day)
        for figure in some:
            for year, month, day in figure.dates:
                if day and (year or not has_year):  # `15 July to 11 August`
                    try:
                        days.append(date(year or 2001, month, day))
                    except ValueError:  # a 31 February
                        continue
        found: set[int] = set()
        pairs = list(combinations(list(dict.fromkeys(days))[:_MAX_DATED], 2))
        turns = [(one, other.replace(year=2002)) for one, other in pairs if other < one and not has_year]  # of the year
        for first, last in (*map(sorted, pairs), *turns):
            for end in (last, last + timedelta(days=length.noun not in _NIGHTS)):  # the last day may count
                months = (end.year - first.year) * 12 + end.month - first.month
                found.add((end - first).days * _DAY if length.unit == "minute" else months)
        years = {int(figure.text) for figure in some if figure.text in YEARS and length.unit == "month"}
        found |= {12 * (abs(a - b) + last) for a, b in combinations(years, 2) for last in (0, 1)}
        if not length.values.isdisjoint(found) or (length.rough and near(length, length.values, map(Fraction, found))):
            return True
    return False


def is_price(figure: Figure) -> bool:
    """True for money, and for a number that is written like it."""
    return figure.unit in CURRENCIES or (not figure.unit and _CENTS.search(figure.text) is not None)


def _grain(said: Figure, value: Fraction) -> Fraction:
    """The room of a number that is rounded: one of its last digit but zeros, five of one that ends in five."""
    if said.worded:
        return value
    unit = Fraction(1, 10**_FINEST)
    while value % (10 * unit) == 0 < value:
        unit *= 10
    return 5 * unit if value / unit % 10 == 5 else unit


def near(said: Figure, values: Iterable[Fraction], of_source: Iterable[Fraction]) -> bool:
    """True when a source has one of the values, or one that is as near as the figure leaves open."""
    for there in of_source:
        for value in values:
            away = there - value
            if value == there or (
                (said.rough == "about" and abs(away) <= min(_ROUGHLY * there, _grain(said, value)))
                or (said.rough in ("over", "least") and 0 <= away <= _BEYOND * value)
                or (said.rough in ("under", "most") and 0 <= -away <= _BEYOND * value)
            ):  # fmt: skip
                return True
    return False
