"""The figures of a sentence that cites, looked up in the lines that it cites. Pure.

A figure belongs to the citation behind it. A citation that opens its sentence also owns the figures behind it. A figure holds if
the cited lines say it in any spelling, with the headings and the table header above them. So does one that the task says,
and one that follows from what was cited (`arithmetic`). `about`, `over` and `under` leave a little room.

A small number in letters is often a count of the writer's own. It must not disagree with a number of the same things, and
above three be no more than the cited lines may hold. `The third day` must not disagree with another day, and neither must the
article in `eine Woche` with another length of time. A small number in digits may be the count of the lines, items, names or
places that are cited.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, combinations, pairwise, permutations
from math import floor
from typing import Literal

from council.citations import CitedPlace
from council.deliberation.quotations.arithmetic import (
    LENGTHS,
    OF,
    YEARS,
    Operands,
    follows,
    is_multiple,
    is_price,
    near,
)
from council.deliberation.quotations.ballots import is_of
from council.deliberation.quotations.days_and_hours import dates_as_numbers, same_date, weekdays, weekdays_named
from council.deliberation.quotations.figure import Ballot, Figure, Hedge
from council.deliberation.quotations.figure_reading import CROWNS, THING, figures, hedge_of, is_of_things
from council.deliberation.quotations.number_words import language_of
from council.deliberation.quotations.passages import NAMED_NUMBER, Passage, Place
from council.deliberation.quotations.table_cells import HEADING, IN_THOUSANDS, NUMBERED, Cells, unit_of
from council.lines_and_pages import without_marks

Standing = Literal["cited", "own", "missing"]
Support = Literal["said", "follows", "counted"]

_MAX_SOURCES = 4_000  # figures of the lines that a sentence cites
_MAX_IN_ROWS = 900  # pairs of figures, each of one row, over all rows
_MAX_LAID_OUT = 8  # combinations of places that are kept for the next sentences
_MAX_KEPT_LINES = 8_000  # of cited places, with their figures
_MAX_PLACES = 64  # of one sentence, whose figures are added and multiplied
_MAX_BESIDE = 24  # figures of a sentence that another one of it may follow from
_MAX_DERIVED = 400  # figures of one decision that are tried as sums and products
_WEEK = Fraction(3, 13)  # of a month
_DAY, _MONTH = 1_440, 43_800  # minutes
_MONTHS = (43_680, _MONTH)  # the same, so that three are 13 weeks and twelve 365 days
_MEASURES = frozenset({"%", "minute", "month", "kg", "metre"})
# Things of which there are many, as a noun says.
_MANY = re.compile(
    r"(?!month|monat|year|jahr|week|woche|days?|tage|hour|stunde|mois|jour)(?:.{3,}[^s]s|.{3,}(?:en|ieder|kinder)|people)"
)
_MAX_ROUGH = 2_000  # figures that one of "about" is compared with
# A number of times that is no number word.
_DOUBLED = re.compile(
    r"\b(?:twice|doubl(?:e[sd]?|ing)|twofold|(?:ver)?doppel\w*|doppio|doble|dubbel\w*)\b", re.IGNORECASE
)
_AVERAGE = re.compile(
    r"\b(?:averag|mean\b|durchschnitt|im (?:schnitt|mittel)\b|moyenne|promedio|in media\b|gemiddeld)", re.IGNORECASE
)
_BY_VOTES = frozenset({"short", "more", "fewer", "less", "mehr", "weniger"})  # behind how far two ballots are apart
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|cheaper|dearer|higher|lower|longer|shorter|under|over|differ\w*|sav(?:es?|ings?)|undercuts?|exceeds?|left|remain\w*"
    r"|surplus|deficit|rest|mehr(?:kosten|preis|ausgaben)?|aufpreis|weniger|günstiger|billiger|teurer|höher|niedriger|länger|kürzer|spar\w*|bleib\w*|überschuss|differenz"
    r"|moins|plus|reste\w*|menos|más|meno|più|rimane)\b",
    re.IGNORECASE,
)
_TAXED = re.compile(
    r"\b(?:VAT|tax(?:es|ed)?|gross|MwSt|USt|\w*(?:mehrwert|umsatz)steuer|brutto|TVA|TTC|IVA|lord[oi]|BTW|bruto)\b",
    re.IGNORECASE,
)
# What others have, what is taken off, or those who did not: elsewhere 60 % are not the rest of 40 %.
_REMAINING = re.compile(
    r"\b(?:no|not|non?e|never|(?:an)?others?|rest(?:e[nrs]?|lich\w*|ant\w*|o)?|left|free|empty|home|away|less(?! than)|nicht"
    r"|kein\w*|übrig\w*|frei|leer|ander\w*|pas|aucun\w*|sans|autres?|nadie|ningun\w*|sin|demás|otr[oa]s|non|nessun\w*|senza|altr[ie]|niet"
    r"|geen|zonder|gegen|contr[aeo]|tegen|lack\w*|miss(?:ed|ing)?|unused)\b|n['’]t\b|against|absent|abst|stay|remain|verbl|without"
    r"|un(?:paid|able)|cheap|reduc|discount|saving|lower|enthalt|fehl|blieb|bleib|ohne|spar|rabatt|günst|billig|baiss|absen|ausen|asen"
    r"|ahorr|rebaj|menos|menor|meno|moins",
    re.IGNORECASE,
)
# Of a change, or of what remains: elsewhere `more than 60 %` are not the rest of 35 %.
_TURNED = re.compile(
    rf"{_REMAINING.pattern}|\b(?:by|up|down|nor|out|more(?! than)|um|gut(?= um)|meer)\b|under|dear|sav|drop|f[ae]ll|declin"
    r"|decreas|increas|\br[io]se|\brising|gr[eo]w|chang|differ|higher|teur|s[aiu]nk|st[ei]eg|steig|wachs|wuchs|rückg|hausse|augment"
    r"|baj[aó]|sub[ei]|aument|diminu|minder|daal|steeg",
    re.IGNORECASE,
)
_ADDED = re.compile(  # votes of two ballots
    r"\b(?:together|altogether|combined|in (?:all|total)|zusammen|insgesamt|ensemble|au total|en total|in totaal|in totale)\b",
    re.IGNORECASE,
)
_BOTH = re.compile(  # also `both the minutes and the letter give`, and not `both the fee of 190 EUR and the deposit`
    r"\b(?:both|neither|beiden?|sowohl|les deux|ambos|ambas|ninguno de los dos|entramb[ie])\b"
    r"(?!.{0,300}\b(?:and|nor|und|als auch|et|ni|y|e)\b"
    r"(?![^,;.:0-9]{1,80}\b(?:costs?|gives?|names?|mentions?|states?|says?|shows?|lists?|quotes?"
    r"|puts?|sets?|asks?|agrees?|confirms?|requires?|kosten|nennen|zeigen|erwähnen|verlangen|bestätigen)\b))",
    re.IGNORECASE | re.DOTALL,
)
_LIMITS: frozenset[Hedge] = frozenset({"least", "most"})
_TWO = Figure(-1, -1, "twice", frozenset({Fraction(2)}), frozenset({Fraction(2)}), worded=True)
_OF_TODAY = re.compile(
    r"\b(?:today|tonight|now|as of|currently|heut\w*|jetzt|aktuell|derzeit|stand (?:vom|am|heute)|aujourd['’]hui|hoy|oggi"
    r"|vandaag)\b",
    re.IGNORECASE,
)
_ONE = re.compile(r"(?:an?|eine?[mnrs]?)\b", re.IGNORECASE)
# Beside one of these, a writer may take an amount for `one year of fuel`.
_OF_YEARS = re.compile(r"year|annual|\bp\. ?a\b|jahr|jähr|\bann[éouea]|\baño|jaar|\b20[0-9]{2}\b", re.IGNORECASE)
_DECIMALS = re.compile(r"[0-9][.,][0-9]{1,2}(?![0-9])")
_SUBJECTS = frozenset(
    {"the", "we", "you", "he", "she", "it", "they", "this", "our", "an", "all", "somebody", "someone"}
)
_ITEM = re.compile(r"\s*(?:[-+*•]|[0-9]{1,3}[.)])\s")
_BLOCK = re.compile(rf"\n\s*\n|\n(?=[^\n]*\||{_ITEM.pattern})")
_LISTED = re.compile(r",\s+(?:(?:and|und|et|y|e|en)\s)?|\s(?:and|und|et|y|e|en|&)\s")
_BEHIND_COLON = re.compile(r":\s+([^.:;()]+)")
# What may stand between two things, and the names of persons; in German all nouns begin with a capital letter.
_APART = re.compile(
    r"[,;:/&+|•·()–—]|[.!?]\s|\b(?:and|n?or|with|plus|then|but|of|to|und|oder|sowie|mit|dann|aber|zu[rm]?|von|et|ou|avec|puis|de|y|o|con|e"
    r"|en|of|met)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[^.!?]\s)[^\W\d_a-zà-ÿ][\w'’-]+(?: [^\W\d_a-zà-ÿ][\w'’-]+)*")
_TITLED = re.compile(r"\b(?:Herrn?|Frau|Dr\.|Familie)\s(\S+)")
_AND_ONE = re.compile(r"\b(?:and|und|et|y|e|en|plus) (?:an?|eine?|une?|un[ao]?|een)\s", re.IGNORECASE)
# Those who vote or are present, and what they give.
_PEOPLE = re.compile(
    r"(?:members?|people|persons?|councillors?|delegates?|guests?|adults?|children|pupils?|votes?|mitglied|person|leute|gäste?"
    r"|stimmen?|kinder|membres?|personnes?|voix|miembros?|socios?|votos?|membri|soci|voti|leden|stemmen)",
    re.IGNORECASE,
)
_H = re.compile(r"[0-9]\s?h\s?[0-5][0-9]\Z")  # a length of time, or a time of day
_TABLE_RULE = re.compile(r"[\s|:+-]*-{3}[\s|:+-]*")


@dataclass(frozen=True)
class CitedLines:
    """The lines of one cited place, and what stands above them and belongs to them: headings, the header of a table."""

    passage: Passage
    cells: Cells
    numbers: range
    lines: tuple[str, ...]
    above: tuple[str, ...]
    language: str

    @cached_property
    def own(self) -> list[tuple[int, int, Figure]]:
        """The figures of the lines alone, each with its line and where in it it starts."""
        return self.cells.figures(self.numbers, self.language)

    @cached_property
    def index(self) -> FigureIndex:
        """The figures of the lines and of what stands above them; those of a table in thousands of euros as that, too."""
        found = [*(figure for *_, figure in self.own), *figures("\n".join(self.above), self.language)]
        for number, _, figure in self.own:
            top = self.cells.top(number)
            head = (*self.above, *self.cells.lines[max(0, top - 2) : top + 1]) if top >= 0 else ()
            is_plain = figure.kind == "number" and not figure.unit and not figure.worded
            if is_plain and any(unit_of(line) in IN_THOUSANDS for line in head):
                values = frozenset(1_000 * value for value in figure.values)
                found.append(replace(figure, values=values, bare=values, unit="EUR"))
        return FigureIndex(found)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The lines with the figures that may be calculated with."""
        held: dict[int, list[tuple[int, Figure]]] = {}
        for number, at, figure in self.own:
            if not self.cells.is_row_number(number, at):
                held.setdefault(number, []).append((self.cells.cell(number, at), figure))
        places = self.passage.places
        tops = map(self.cells.top, held)
        return tuple(
            Row(places[number], places[top] if top >= 0 else None, tuple(held[number]))
            for number, top in sorted(zip(held, tops, strict=True))
        )

    @cached_property
    def weekdays(self) -> set[int]:
        return weekdays_named("\n".join((*self.lines, *self.above)), self.index.figures)

    @cached_property
    def limits(self) -> set[tuple[Hedge, str]]:
        """The limits that they have, each with its unit: another one of its kind is no rounding of it."""
        lines = self.cells.lines
        return {(hedge_of(lines[row], at, at + len(each.text)), each.unit) for row, at, each in self.own}

    @cached_property
    def counts(self) -> set[int]:
        """The numbers of things that these lines hold, as lines, items, rows, or names behind a colon."""
        said = [line for line in self.lines if line.strip() and not _TABLE_RULE.fullmatch(line)]
        rows = [line for line in said if line.lstrip().startswith("|") and line not in self.above]
        listed = {1 + len(_LISTED.findall(each[1])) for line in self.lines for each in _BEHIND_COLON.finditer(line)}
        return {len(said), sum(bool(_ITEM.match(line)) for line in said), len(rows), len(rows) - 1, *listed} - {0}

    @cached_property
    def blocks(self) -> list[list[str]]:
        """The sentences of each paragraph, item and row."""
        return [re.split(r"[.!?]\s", block) for block in _BLOCK.split("\n".join(self.lines))]

    @cached_property
    def most_persons(self) -> int:
        """The largest number of persons that a writer may count in these lines."""
        text = "\n".join(self.lines)
        names = set((_TITLED if self.language == "de" else _NAME).findall(text))
        besides = len(_AND_ONE.findall(text))  # `three cooks and a waiter`
        counted = [int(each.value) + besides for *_, each in self.own if besides and each.is_count]
        clauses = [clause for block in self.blocks for clause in re.split("[:;()]", " ".join(block))]
        listed = max(1 + len(_LISTED.findall(clause)) for clause in clauses)
        return max(len(names), listed, len(self.blocks), *counted)

    @cached_property
    def most_things(self) -> int:
        """The same of things: each sentence may be one, and each part of a sentence."""
        parts = [1 + len(_APART.findall(part.strip("| \n"))) for block in self.blocks for part in block]
        return max(self.most_persons, *self.counts, *map(len, self.blocks), *parts)


@dataclass(frozen=True)
class Row:
    """A line with its figures, each with the number of its cell. `table` is the place of the first line of its table."""

    place: Place
    table: Place | None
    figures: tuple[tuple[int, Figure], ...]


class Sources:
    """The lines that a sentence cites, each once."""

    def __init__(self, lines: Iterable[CitedLines]) -> None:
        self.lines = list(lines)

    @cached_property
    def _rows(self) -> list[Row]:
        return list({row.place: row for each in self.lines for row in each.rows}.values())

    @cached_property
    def figures(self) -> list[Figure]:
        return [figure for row in self._rows for _, figure in row.figures][:_MAX_SOURCES]

    @cached_property
    def index(self) -> FigureIndex:
        return FigureIndex(self.figures)

    def unmeasured(self, said: Figure) -> int | None:
        """The first place of the same figure without the unit that it is said with, as in the cell of a table; None where it
        stands with it."""
        places = [self._units[each].get("") for each in said.bare | said.values if each in self._units]
        is_measured = any(said.unit in self._units.get(each, ()) for each in said.values)
        return None if is_measured else next((at for at in places if at is not None), None)

    @cached_property
    def _units(self) -> dict[Fraction, dict[str, int]]:
        """The units that each value stands with, and where each does first."""
        units: dict[Fraction, dict[str, int]] = {}
        for at, figure in enumerate(self.figures):
            for value in figure.values:
                units.setdefault(value, {}).setdefault(figure.unit, at)
        return units

    @cached_property
    def columns(self) -> list[list[Figure]]:
        """The numbers and times that stand below one another in tables, alone in their cells."""
        columns: dict[tuple[object, int], list[Figure]] = {}
        for row in self._rows:
            cells = [cell for cell, _ in row.figures]
            for cell, figure in row.figures if row.table else ():
                if figure.kind in ("number", "time") and cells.count(cell) == 1 and max(figure.values):
                    counted = figure.length if figure.kind == "time" else figure
                    columns.setdefault((row.table, cell), []).append(counted)
        return list(columns.values())

    @cached_property
    def pairs(self) -> list[tuple[Figure, Figure]]:
        """Two numbers of one row of a table, in one unit, which may be a part and its whole; none where there are many."""
        rows = [[each for _, each in row.figures if each.kind == "number"] for row in self._rows if row.table]
        if sum(len(row) * (len(row) - 1) // 2 for row in rows) > _MAX_IN_ROWS:
            return []
        pairs = [pair for row in rows for pair in combinations(row, 2)]
        return [(a, b) for a, b in pairs if a.unit == b.unit != "%" and YEARS.isdisjoint((a.text, b.text))]

    @cached_property
    def totals(self) -> list[Figure]:
        """Each number of things times the price beside it: `250 | 0.12`, `6 tins at 34.50`."""
        totals: list[Figure] = []
        for row in self._rows if len(self.figures) < _MAX_SOURCES else ():
            before: Figure | None = None
            for _, figure in row.figures:
                count, price = (before, figure) if is_price(figure) else (figure, before)
                is_count = count and count.kind == "number" and not count.unit and count.text.isdigit()
                if not (count and price and is_price(price) and is_count and count.value >= 1):
                    before = figure
                    continue
                value = max(count.values) * max(price.values)
                totals.append(replace(price, values=frozenset({value}), noun=""))
                before = None
        return totals


class FigureIndex:
    """Figures by what they say, for a document may hold thousands."""

    def __init__(self, found: Iterable[Figure]) -> None:
        self._by_key: dict[object, list[Figure]] = {}
        self.figures = list(found)
        things = [*self.figures]
        for each in self.figures:  # `four valid votes` are votes
            things += (replace(each, noun=noun) for noun in each.following if _MANY.fullmatch(noun))
        self._things = set(map(_thing, things))
        for figure in self.figures:
            for key in _keys(figure):
                self._by_key.setdefault(key, []).append(figure)

    def says(self, said: Figure) -> bool:
        if said.rough:
            return any(_says(each, said) for each in self.figures[:_MAX_ROUGH])
        return any(_says(each, said) for key in _keys(said) for each in self._by_key.get(key, ()))

    @cached_property
    def _ballots(self) -> dict[object, dict[Ballot, int]]:
        """The ballots by each of their numbers, and of each list of sides the first, with their order."""
        ballots: dict[object, dict[Ballot, int]] = {}
        for at, each in enumerate(self.figures):
            for _, votes in each.ballot:
                ballots.setdefault(votes, {}).setdefault(each.ballot, at)
            if each.side:
                ballots.setdefault(tuple(side for side, _ in each.ballot), {each.ballot: at})
        return ballots

    @property
    def has_ballot(self) -> bool:
        return any(len(each) > 1 for each in self._ballots if isinstance(each, tuple))

    def ballots_like(self, said: Figure) -> list[Ballot]:
        """The same ballot, or else those that have a number of it, and one of each kind: others are no nearer to it."""
        found: dict[Ballot, int] = {}
        for key in (*(votes for _, votes in said.ballot), *(each for each in self._ballots if isinstance(each, tuple))):
            found |= self._ballots.get(key, {})
        return [said.ballot] if said.ballot in found else sorted(found, key=lambda each: found[each])

    def says_number(self, said: Figure) -> bool:
        """True for a bare number of no ballot that says the same."""
        plain = (each for key in _keys(said) for each in self._by_key.get(key, ()))
        return any(_says(each, said) for each in plain if not (each.side or each.unit or each.dates))

    def has_another(self, said: Figure) -> bool:
        """True when figures of its unit are there, and none that it may be or that lies within its bound."""
        alike = [each.value for each in self.figures if each.unit == said.unit and each.kind == "number"]
        above, below = max(alike, default=0) >= said.value, min(alike, default=0) <= said.value
        within = {"over": above, "least": above, "under": below, "most": below}
        return bool(alike) and not self.says(said) and not within.get(said.rough, False)

    def contradicts(self, said: Figure) -> bool:
        """True when another number of the same things is there."""
        return _thing(said) in self._things and bool(said.unit or said.noun)

    def is_limit(self, said: Figure) -> bool:
        """True when the same figure is a limit here, of the other kind."""
        return any(each.bound in _LIMITS - {said.bound} and each.values & said.values for each in self.figures)

    def is_by(self, said: Figure) -> bool:
        """True for one month where an amount is by the month."""
        minutes = said.value * _MONTH if said.unit == "month" else said.value
        return any(abs(each.per * _MONTH - minutes) < minutes / 100 for each in self.figures)


def _keys(figure: Figure) -> set[object]:
    """The keys under which figures meet that may say the same."""
    keys: set[object] = {*figure.values, *figure.bare, *_wholes(figure)}
    keys |= {("month", month) for _, month, _ in figure.dates} | set(map(Fraction, dates_as_numbers(figure)))
    if figure.kind == "time":
        keys = {("time", value // 1 % 720) for value in figure.values}
        keys |= {min(figure.values)} if figure.text.endswith("h") else set()
    elif _H.search(figure.text):
        keys |= {("time", value % 720) for value in figure.values}
    keys |= {value * each for value in figure.values for each in _MONTHS if figure.unit == "month"}
    return keys or {figure.text}


class CitedFigures:
    """Looks figures up in the passages that were read, and in the words of the `task`. The `day` of the run is known, too: other
    figures follow from it, but only a sentence that speaks of today may give it."""

    def __init__(self, passages: Sequence[Passage], task: str = "", day: str = "") -> None:
        self._passages = passages
        self._words = f"{task}\n{day}"
        self._asked = FigureIndex(figures(task))
        self._today = FigureIndex(figures(day))
        self._left = {"counts": _MAX_DERIVED, "others": _MAX_DERIVED}
        self._known: dict[tuple[CitedPlace, bool], CitedLines] = {}
        self._kept_lines = 0  # of all that is known
        self._cells: dict[int, Cells] = {}
        self._sources: dict[tuple[CitedPlace, ...], Sources] = {}

    @property
    def gave_up(self) -> bool:
        """True when no more figures are tried as sums, products or shares: a text had too many."""
        return not all(self._left.values())

    @cached_property
    def _task(self) -> tuple[Figure, ...]:
        return tuple(figures(self._words))

    @cached_property
    def _weekdays(self) -> set[int]:
        return weekdays_named(self._words, self._task)

    def standings(
        self, owned: Sequence[tuple[Figure, Sequence[CitedPlace]]], here: Sequence[CitedPlace], sentence: str
    ) -> list[tuple[Figure, Standing]]:
        """The standing of the figures of a `sentence`, first of those that hold. `owned`: with the places that each belongs
        to, if any. `here`: all that the sentence cites."""
        if self._kept_lines > _MAX_KEPT_LINES:
            self._known.clear()
            self._kept_lines = 0
        twice: list[tuple[Figure, Support]] = [(_TWO, "counted")] if _DOUBLED.search(sentence) else []
        cited = tuple(dict.fromkeys(here[:_MAX_PLACES]))
        if cited not in self._sources:
            if len(self._sources) >= _MAX_LAID_OUT:
                self._sources.clear()
            self._sources[cited] = Sources(lines for place in cited for lines in self._lines_of(place))
        sources = self._sources[cited]
        held: dict[int, tuple[Figure, Support]] = {}
        tried: dict[int, int] = {}  # how many figures held when each that does not hold was looked up
        paths = {each.passage.path for _, places in owned for place in places for each in self._lines_of(place)}
        names = {
            (match["number"], (match["noun"] or "").casefold())
            for match in NAMED_NUMBER.finditer(sentence)
            if any(match["name"] in each.named_numbers for each in self._passages if each.path in paths)
        }
        left = []
        for figure, places in owned if here else ():
            is_name = not figure.unit and (figure.text, figure.noun) in names
            lines = [each for place in places for each in self._lines_of(place)]
            is_idle = figure.kind == "weekday" and not figure.dates and not any(each.weekdays for each in lines)
            if places and not (is_name or is_idle):
                left.append((figure, places))
        # `Both cost 5,000 EUR [E1:1] [E1:2]`: each of the two lines must say it.
        units = [figure.unit for figure, _ in owned]
        both = [figure for figure, places in left if len(places) == 2 and figure.unit and units.count(figure.unit) == 1]
        of_both = {figure.start for figure in both if figure.kind == "number" and _BOTH.search(sentence)}
        for _ in range(2):  # what follows from a figure may stand before it
            for figure, places in left:
                if tried.get(figure.start) == len(held):
                    continue
                tried[figure.start] = len(held)
                lines = [each for place in places for each in self._lines_of(place)]
                if figure.start in of_both and 0 < sum(each.index.has_another(figure) for each in lines) < len(lines):
                    continue
                beside = [*twice, *held.values()][:_MAX_BESIDE]
                if support := self._support(figure, lines, here, sources, beside, sentence):
                    held[figure.start] = figure, support
            left = [(figure, places) for figure, places in left if figure.start not in held]
        # `four children pay 32 EUR`: the writer supposes a number that no line holds, or two at a price each.
        supposed: list[tuple[Figure, Support]] = [
            (each, "counted") for each, _ in left[:_MAX_BESIDE] if each.worded and each.is_count
        ]
        for figure, places in left if supposed else ():
            lines = [each for place in places for each in self._lines_of(place)]
            supposed.sort(key=lambda each: abs(each[0].start - figure.start))
            for some in (*zip(supposed), *pairwise(supposed)) if figure.unit else ():
                beside = [*some, *twice, *held.values()][:_MAX_BESIDE]
                if self._support(figure, lines, here, sources, beside, sentence) == "follows":
                    held |= {each.start: (each, support) for each, support in (*some, (figure, "follows"))}
                    break
        # `640 EUR a year, so 1,280 EUR for two years`: the writer chose the time.
        named = [figure for figure, support in held.values() if support == "said" and figure.kind == "number"]
        for (figure, _), (factor, _) in permutations(left[:_MAX_BESIDE], 2):
            if is_multiple(figure, factor, named, sources.figures):
                held |= {each.start: (each, "follows") for each in (figure, factor)}
        left = [(figure, places) for figure, places in left if figure.start not in held]
        missing: list[tuple[Figure, Standing]] = []
        for figure, places in left:
            own = [each for place in places for each in self._lines_of(place, own=True)]
            beside = [*twice, *held.values()][:_MAX_BESIDE]
            is_own = own and self._support(figure, own, here, Sources(own), beside, sentence)
            missing.append((figure, "own" if is_own else "missing"))
        return [*((figure, "cited") for figure, _ in held.values()), *missing]

    def _support(
        self,
        figure: Figure,
        lines: Sequence[CitedLines],
        here: Sequence[CitedPlace],
        sources: Sources,
        beside: Sequence[tuple[Figure, Support]],
        sentence: str,
    ) -> Support | None:
        """The support that a figure has. `lines` are those it belongs to, `beside` the figures that hold already."""
        if figure.side and _BY_VOTES.isdisjoint(figure.following[:1]) and not _spoken_of(sentence)["added"]:
            indexes = (self._asked, *(each.index for each in lines))
            if (is_member := is_of(figure, chain(*(each.ballots_like(figure) for each in indexes)))) is not None:
                return "said" if is_member else None
            if any(each.says_number(figure) for each in indexes):
                return "said"
            has_ballot = any(each.has_ballot for each in indexes)
            counted = figure.value in {count for each in lines for count in each.counts}
            if counted or (not has_ballot and self._is_counted(figure, lines, here, sentence)):
                return "counted"
            return None
        if figure.rough in ("least", "most") and any((figure.rough, figure.unit) in each.limits for each in lines):
            figure = replace(figure, rough="")
        if figure.dates and figure.kind == "weekday":
            known_dates = (*self._task, *(each for line in lines for each in line.index.figures))
            by_calendar = weekdays(replace(figure, weekday=None))
            falling = [weekdays(each) or by_calendar for each in known_dates if each.dates and _says(each, figure)]
            return None if falling and all(days and figure.weekday not in days for days in falling) else "said"
        if figure.kind == "weekday":
            known = self._weekdays.union(*(each.weekdays for each in lines))
            return "said" if figure.weekday in known else None
        if figure.bound in _LIMITS and any(each.index.is_limit(figure) for each in lines):
            exact = replace(figure, rough="")
            return "said" if any(each.says(exact) for each in (self._asked, *(each.index for each in lines))) else None
        is_today = self._today.says(figure) and _OF_TODAY.search(sentence)
        if is_today or self._asked.says(figure) or any(each.index.says(figure) for each in lines):
            return "said"
        if _is_one_length(figure) and any(each.index.is_by(figure) for each in lines):
            return "said"
        is_of_week = figure.unit == "minute" and figure.per == _WEEK  # `two days a week`, on Monday and on Thursday
        if is_of_week and any(figure.value == _DAY * len(each.weekdays) for each in lines):
            return "said"
        counted = self._is_counted(figure, lines, here, sentence)
        if "pound" in figure.text.lower() and any(each.unit == "lb" for each in sources.figures):
            figure = replace(figure, unit="lb")
        # A count may be a share of another one: it is tried, too, but on a budget of its own.
        budget = "counts" if counted else "others"
        if self._left[budget]:
            self._left[budget] -= 1
            if follows(figure, self._operands(figure, sources, beside, sentence)):
                return "follows"
        return "counted" if counted else None

    @staticmethod
    def _is_counted(figure: Figure, lines: Sequence[CitedLines], here: Sequence[CitedPlace], sentence: str) -> bool:
        """True for a number of the writer's own: of what is cited or listed, or so small that anybody may count it."""
        if figure.worded and figure.unit == "month" and figure.noun == "of" and figure.value in (6, 12):
            return any(_OF_YEARS.search(line) for each in lines for line in (*each.lines, *each.above))
        if figure.is_count and figure.bare & {len(here), *(count for each in lines for count in each.counts)}:
            return True
        if not figure.worded or any(each.index.contradicts(figure) for each in lines):
            return False
        if not figure.is_count:
            is_some_day = figure.text.casefold() == "one day" and figure.noun in _SUBJECTS
            is_article = _is_one_length(figure) and _ONE.match(figure.text) is not None
            return figure.kind == "ordinal" or is_some_day or is_article
        are_persons = _PEOPLE.match(figure.noun) is not None
        listed = {1 + len(_LISTED.findall(each)) for each in re.split(r"[.;:()–—]", sentence)}  # by the writer
        if figure.value <= (2 if are_persons else 3) or figure.value in listed:
            return True
        most = sum(each.most_persons if are_persons else each.most_things for each in lines)
        return figure.value <= max(most, len(here))

    def _operands(
        self, figure: Figure, sources: Sources, beside: Sequence[tuple[Figure, Support]], sentence: str
    ) -> Operands:
        """The figures that another one may follow from. One that stands at another place that the sentence cites follows
        from no figure that follows itself: the difference of two offers would prove each of them at the other's place."""
        stands_elsewhere = any(each.index.says(figure) for each in sources.lines)
        of_source = list(sources.figures)
        new: list[Figure] = []
        counted: list[Figure] = []
        beside = [(each, support) for each, support in beside if each.kind != "weekday"]
        for each, support in beside:
            plain = replace(each, rough="")
            if support == "counted" or (support == "follows" and each.is_count):  # so small a number follows by chance
                counted.append(each)
            elif support == "said" and each.unit and (at := sources.unmeasured(each)) is not None:
                of_source[at] = plain
            elif sources.index.says(plain) or FigureIndex(new).says(plain):
                continue
            elif support == "said" and each.rough:
                counted.append(each)
            elif support == "said" or not stands_elsewhere:
                new.append(each)
        known = FigureIndex(new)
        asked = [each for each in self._task if not (sources.index.says(each) or known.says(each))]
        supported = [each for each, support in beside if support != "counted"]
        spoken = ("averaged", "compared", "taxed", "turned", "remaining")
        told = {name: _spoken_of(sentence)[name] for name in spoken}
        return Operands(
            of_source, sources.columns, sources.totals, sources.pairs, supported, new, counted, asked, **told
        )

    def _lines_of(self, place: CitedPlace, *, own: bool = False) -> list[CitedLines]:
        found = []
        for number, passage in enumerate(self._passages):
            if passage.own is own and passage.id == place.id and place.path in ("", passage.path):
                first, last = passage.first_line, passage.last_line
                if place.first is not None:
                    first, last = max(place.first, first), min(place.last, last)
                key = CitedPlace(str(number), "", first, last)
                if number not in self._cells:
                    lines = without_marks(passage.path, passage.text.removesuffix("\n")).split("\n")
                    self._cells[number] = Cells(passage.path, lines)
                if (key, own) not in self._known:
                    self._known[key, own] = _cited_lines(passage, self._cells[number], first, last)
                    self._kept_lines += len(self._known[key, own].lines)
                found.append(self._known[key, own])
        return found


def _cited_lines(passage: Passage, cells: Cells, first: int, last: int) -> CitedLines:
    lines = cells.lines
    low, high = bisect_left(passage.numbers, first), bisect_right(passage.numbers, last)
    above: list[str] = []
    level = 7
    begun = low < len(lines) and NUMBERED.match(lines[low]) is not None
    for line in (lines[number] for number in reversed(cells.titles[: bisect_left(cells.titles, low)])):
        if level == 7 and not begun and (section := NUMBERED.match(line)):
            begun = True
            above.append(section[0])
        heading = HEADING.match(line)
        if heading and len(heading[1]) < level:
            level = len(heading[1])
            above.append(line)
    top = cells.top(low) if low < len(lines) else -1
    if 0 <= top < low and "|" in lines[top] and (passage.first_line == 1 or not cells.is_csv):  # else it may be a log
        above.append(lines[top])
    above.append(re.sub(r"[^\w.]+|_", " ", passage.path))
    language = language_of("\n".join(lines[low:high]), language_of(passage.text))
    return CitedLines(passage, cells, range(low, min(high, len(lines))), tuple(lines[low:high]), tuple(above), language)


# ── one figure and another ───────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=8)
def _spoken_of(sentence: str) -> dict[str, bool]:
    """A sentence, which may be long, with what it says of its figures."""
    words = {
        "averaged": _AVERAGE,
        "compared": _COMPARED,
        "taxed": _TAXED,
        "turned": _TURNED,
        "remaining": _REMAINING,
        "added": _ADDED,
    }
    return {name: pattern.search(sentence) is not None for name, pattern in words.items()}


def _is_one_length(figure: Figure) -> bool:
    """True for `one month` and `eine Woche`."""
    return figure.worded and figure.unit in LENGTHS and figure.bare == {Fraction(1)}


def _says(source: Figure, said: Figure) -> bool:
    """True when a figure of the source says what is said."""
    if said.dates and any(same_date(one, other) for one in said.dates for other in source.dates):
        return True
    sides = {each.bound in ("over", "least") for each in (said, source) if each.bound not in ("", "about")}
    if len(sides) > 1 and (said.values & source.values or {said.bound, source.bound} == _LIMITS):
        return False
    if {said.sign, source.sign} == {"+", "-"} or (said.per and source.per and said.per != source.per):
        return False
    if said.kind == "label" or source.kind == "label":
        return said.text.lstrip("0") == source.text.lstrip("0")
    if said.kind == "time" or source.kind == "time":
        time, length = (said, source) if said.kind == "time" else (source, said)
        if length.unit == "minute" and (time.text.endswith("h") or _H.search(length.text)):  # `1:30 h`, `1h30`
            return min(time.values) in length.values
        return said.kind == source.kind and any(  # seconds may be left out
            0 <= other - one < (1 if one.denominator == 1 else Fraction(1, 60))
            for one in said.values
            for other in source.values
        )
    if source.dates and not said.dates and not said.unit:
        # `20 cats` and `up to 20` are no 20 December.
        counts = said.rough or ((said.worded or said.text.isdigit()) and len(said.noun) >= THING)
        return bool(said.bare & {*source.values, *map(Fraction, dates_as_numbers(source, with_day=not counts))})
    is_nth = said.kind == "ordinal"
    if is_nth is not (source.kind == "ordinal"):  # the second year is no 24, and the fourth day no four days
        counts = source.noun[:THING] == said.noun[:THING] != "" if is_nth else is_of_things(said)
        return bool(said.bare & source.bare) and not (counts or (source if is_nth else said).unit)
    units = {said.unit, source.unit}
    is_pound = units == {"GBP", "lb"} and "pound" in f"{said.text} {source.text}".lower()  # of money, or of weight
    if units == {"month", "minute"}:  # half a year is 26 weeks
        months, minutes = (said, source) if said.unit == "month" else (source, said)
        return any(value * each in minutes.values for value in months.values for each in _MONTHS)
    if units <= {"%", "point"} or len(units) == 1 or ("kr" in units and units <= CROWNS) or is_pound:
        return near(said, said.values, source.values) or _in_whole_units(said, source)
    bare = source if said.unit else said  # `12 members` are no 12 %, and no 12 weeks; `3 Monatsmieten` are 3 months
    if (source.unit == "%" and len(bare.noun) >= THING) or (said.unit in _MEASURES and _MANY.fullmatch(bare.noun)):
        return False
    return not (said.unit and source.unit) and near(said, said.bare | said.values, source.bare | source.values)


def _in_whole_units(said: Figure, source: Figure) -> bool:
    """True for `£612` where the source says £612.40, and not for `£612.00`."""
    is_whole = not said.worded and not _DECIMALS.search(said.text)
    return is_whole and is_price(source) and bool(said.bare & _wholes(source))


def _wholes(figure: Figure) -> set[Fraction]:
    """A figure with decimals cut and rounded to whole units. Of less than ten too much would go."""
    halves = (Fraction(0), Fraction(1, 2))
    wholes = (Fraction(floor(one + half)) for one in figure.bare if one.denominator != 1 for half in halves)
    return {whole for whole in wholes if whole >= 10}


def _thing(figure: Figure) -> tuple[str, str]:
    """The unit or the noun of a figure, for comparison; `5 of 7` and `fünf von sieben` are of one thing. So are the third
    day and the fourth, and not the third week."""
    noun = figure.noun
    if figure.kind == "ordinal" and figure.unit:
        return f"nth {figure.unit}", str(figure.value / (figure.bare_value or 1))
    if figure.unit in LENGTHS:
        return "time", ""
    kind = "nth" if figure.kind == "ordinal" else figure.unit
    return kind, "" if figure.unit else "of" if noun in OF else noun[:3] + noun[3:].rstrip("esn")


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
