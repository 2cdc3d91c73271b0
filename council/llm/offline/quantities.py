"""Figures in a statement: amounts, shares, dates, times, durations, measures, counts, and the words around each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import Language, is_content, lexicon, named, pattern, spellings, stem, weak_words

Day = tuple[int, int, int]
Value = float | Day  # a date as (year, month, day), with 0 for what is not said

# Repetitions are bounded, so that a page of digits and commas costs linear time.
_DIGITS = r"\d{1,3}(?:[ '’\u00a0\u202f]\d{3}){1,4}(?:[.,]\d{1,4})?(?!\d)|\d{1,12}(?:[.,]\d{1,6}){0,4}"
_NOT_COUNTED = re.compile(r"\s*(?:[-–/]\s?\d|[.,:]\d|\w*straße|\.\s?(?=[a-zäöü§(])|\))|[-–]\w+\s(?:street|road)")
_RANGE_BEFORE = re.compile(
    r"(?:\d[\w%€£$ .]{0,12}\s*(?:–|—|-|\bto|\bbis|\bor|\boder)|\b(?:between|zwischen)(?:\s+[^,;]{0,20}(?:and|und))?)\s*$",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(r"\s*(?:–|—|-|to\b|or\b|bis\b|oder\b)\s*(?:€|£|\$)?\d", re.IGNORECASE)
_MAX_CHARS = 2_000  # no sentence is longer; what is, is not prose


@cache
def _quantity() -> re.Pattern[str]:
    digits, year = _DIGITS, r"(?:,?\s+(?:19|20)\d\d)?"
    month, scale, numerals, currency, time, measure = map(
        spellings, ("months", "scales", "numerals", "currencies", "times", "measures")
    )
    number = rf"(?:{digits}|\b{numerals})"
    kinds = {
        "iso": r"\b(?:19|20)\d\d-\d\d-\d\d\b",
        "dotted": r"\b\d{1,2}\.\s?\d{1,2}\.(?:\s?(?:19|20)\d\d\b|(?!\d))",
        "date": rf"\b(?:\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{month}\b\.?{year}|{month}\s+\d{{1,2}}(?:st|nd|rd|th)?\b{year})",
        "clock": r"\b\d{1,2}(?::\d\d|[.:]?\d{0,2}\s?(?:uhr\b|[ap]\.?m\b))",
        "amount": rf"{currency}\s?(?:{digits})(?:\s?{scale}\b)?|\b{number}(?:\s?{scale}\b)?(?:\s?,-)?\s?{currency}(?!\w)",
        "percent": rf"\b{number}\s?(?:%|per\s?cent\b|prozent\b)",
        "fraction": rf"\b{spellings('fractions')}\b",
        "duration": rf"(?<![\w.,]){number}[\s-]?{time}(?![\w/])(?:\s(?:and\s|und\s)?\d+\s?{time}\b)*",
        "measure": rf"(?<![\w.,]){number}[\s-]?{measure}(?!\w)",
        "count": rf"(?<![\w.,/§-])(?:{digits}|{numerals}\b)",
    }
    return re.compile("|".join(f"(?P<{kind}>{kinds[kind]})" for kind in kinds), re.IGNORECASE)


@cache
def _clause_end() -> re.Pattern[str]:
    word = pattern("patterns", "clause").pattern
    return re.compile(rf"[;()|]|,(?!\d)|\s[–—-]\s|[.:!?]\s|\s{word}\s", re.IGNORECASE)


@cache
def figure_pattern() -> str:
    """A figure as `parse_number` reads it."""
    return rf"(?:{spellings('currencies')}\s?)?(?:{_DIGITS})\s?(?:{spellings('currencies')}(?!\w)|%)?"


@dataclass(frozen=True, eq=False)
class Quantity:
    """A figure of `kind` (amount, percent, fraction, date, duration, measure, count, bare) in a unit.

    `near` are the stems of its clause, or of its row and column; `clause` is their text. `value` is in one unit for each
    kind: minutes for durations. `bare` is a cell's figure without a unit.
    """

    statement: Statement
    kind: str
    unit: str
    rate: str
    value: Value
    shown: str
    clause: str
    before: str
    near: frozenset[str]
    noun: str = ""

    @cached_property
    def head(self) -> str:
        """The word that the figure belongs to: the last one of substance before it in its clause; empty without one."""
        before = self.clause.partition(self.shown)[0]
        said = [word for word in _stems(self.statement, before) if word in self.near and word not in weak_words()]
        return said[-1] if said else ""

    @cached_property
    def frames(self) -> frozenset[str]:
        """The circumstances that the clause names: net, at most, for children."""
        return frozenset(name for name in lexicon()["frames"] if pattern("frames", name).search(self.clause))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The cells that name its row."""
        return row_labels(self.statement)[0]

    @cached_property
    def ids(self) -> frozenset[str]:
        """Names of its row such as W3."""
        return frozenset(
            word
            for label in self.labels
            for word in re.findall(r"\b[a-z]+-?\d\w*\b", label.lower())
            if not dates_of(label)
        )

    @cached_property
    def phrases(self) -> frozenset[tuple[str, str]]:
        return frozenset(phrases(self.clause, self.statement.language))


def quantities(statement: Statement) -> list[Quantity]:
    """The comparable figures of a statement; ranges are left out, they state no single number."""
    if statement.kind != "row" or len(statement.cells) < 2:
        return list(_of_text(statement, statement.text))
    found: list[Quantity] = []
    labels, first = row_labels(statement)
    label = " ".join(labels)
    for index, cell in enumerate(statement.cells[first:], first):
        column = statement.header[index].replace("_", " ") if index < len(statement.header) else ""
        number = parse_number(cell, statement.language)
        if number is None:
            found += _of_text(statement, cell.strip(), f"{label} | {column}")
            continue
        header = statement.header[index] if column else ""
        kind, unit = _unit_of_column(cell)
        if kind == "bare":
            kind, unit = _unit_of_column(header)
        near = frozenset(_stems(statement, f"{label} {column}"))
        rate = _rate(f"{label} {column}")
        shown = cell.strip().strip("*").strip()
        found.append(Quantity(statement, kind, unit, rate, number, shown, f"{label} | {column}", "", near))
    return found


def row_labels(row: Statement) -> tuple[tuple[str, ...], int]:
    """The cells that name a table row, and the place of the first cell after them. A number before a name is none."""
    labels: list[str] = []
    for index, cell in enumerate(row.cells):
        figure = _quantity().match(cell.strip("* "))
        if labels and (
            parse_number(cell) is not None or (figure and figure.lastgroup not in ("iso", "date", "dotted"))
        ):
            return tuple(labels), index
        if cell.strip("* ") and parse_number(cell) is None:
            labels.append(cell.strip("* "))
    return tuple(labels), len(row.cells)


def parse_number(text: str, language: str = "en") -> float | None:
    """The value of a figure that stands alone; None for anything else. `language` decides what 1.234 means."""
    plain = text.strip().strip("*").replace("−", "-").replace("–", "-").strip()
    if not re.fullmatch(rf"[-+]?\s?{figure_pattern()}", plain, re.IGNORECASE):
        return None
    digits = re.search(_DIGITS, plain)
    value = _number(digits.group(), language) if digits else None
    return None if value is None else -value if plain.startswith("-") else value


def phrases(text: str, language: Language) -> list[tuple[str, str]]:
    """Adjacent words that both say something, as stems."""
    said = re.findall(r"[^\W\d_]+(?:['’‑-][^\W\d_]+)*|[^\w\s]", text)
    pairs = [(left, right) for left, right in pairwise(said) if is_content(left) and is_content(right)]
    return [(stem(left, language), stem(right, language)) for left, right in pairs]


def dates_of(text: str) -> list[tuple[int, int, int]]:
    """All dates that a text names."""
    found = (_value(match, match.lastgroup or "", "en") for match in _quantity().finditer(text[:_MAX_CHARS]))
    return [value for value, _ in found if isinstance(value, tuple)]


def _of_text(statement: Statement, text: str, label: str = "") -> Iterator[Quantity]:
    text = re.sub(r"https?://[^\s)>\]]+|[\w.+-]+@[\w.-]+", lambda m: "\x00" * len(m.group()), text[:_MAX_CHARS])
    found = list(_quantity().finditer(text))
    masked = text
    for match in found:  # a figure's own marks end no clause
        masked = masked[: match.start()] + "\x00" * len(match.group()) + masked[match.end() :]
    cuts = [0, *(m.end() for m in _clause_end().finditer(masked))]
    for match in found:
        kind = match.lastgroup or ""
        before, after = text[: match.start()], text[match.end() :]
        value, unit = _value(match, kind, statement.language)
        if value is None or _RANGE_BEFORE.search(before[-36:]) or _RANGE_AFTER.match(after):
            continue
        start = max(cut for cut in cuts if cut <= match.start())
        stop = min((m.start() for m in _clause_end().finditer(masked, match.end())), default=len(text))
        clause = masked[start:stop]
        if len(_stems(statement, clause)) < 2 and start:  # "by then, 5 days" says nothing alone
            start = max((cut for cut in cuts if cut < start), default=0)
            clause = masked[start:stop]
        noun = ""
        if kind == "count":
            noun = next(
                (stem(w, statement.language) for w in re.findall(r"[^\W\d_]+", after[:60])[:3] if is_content(w)), ""
            )
            year = re.fullmatch(r"(?:19|20)\d\d", match.group())
            thing = (
                pattern("patterns", "naming", end=r"\.?\s*(?:[(:#-]\s*)?$").search(before[-14:])
                or re.search("[#/]$", before)
                or _NOT_COUNTED.match(after)
            )
            if not thing and re.fullmatch(r"\d{1,9}[.,]\d\d", match.group()):
                kind = "bare"
                if not _rate(after, at_once=True):  # 07.20 may be a time
                    continue
            elif thing or year or not noun or re.match(r"\s*(?:[^\w\s]|[^\W\d_]\b)", after):
                continue
        if kind in ("iso", "dotted", "date") and _dated(before[-24:]):
            continue
        rate = _rate(after[:30], at_once=kind == "count") or (_rate(clause) if kind in ("amount", "bare") else "")
        every = re.search(r"\b(?:every|alle)\s*$", before, re.IGNORECASE)
        near = frozenset(_stems(statement, f"{label} {clause}"))
        if kind in ("iso", "dotted", "date"):
            kind, rate = "date", ""
        said = f"{label} {text[start:stop]}"
        yield Quantity(statement, kind, unit, "every" if every else rate, value, match.group().strip(" ."), said, before[-24:],
                       near, noun)  # fmt: skip


def _stems(statement: Statement, text: str) -> list[str]:
    """Content words, and ids such as W2."""
    ids = [word.lower() for word in re.findall(r"\b[A-Za-z]{1,3}-?\d{1,4}\b", text)]
    return [
        stem(w, statement.language) for w in re.findall(r"[^\W\d_]+(?:['’‑-][^\W\d_]+)*", text) if is_content(w)
    ] + ids


def _dated(before: str) -> bool:
    after = r"[\s:*]*(?:(?:of|on)\s)?(?:\w{2,10}\.?,?\s)?$"
    return bool(pattern("patterns", "dated", end=after).search(before) or re.search(rf",{after}", before))


def _rate(text: str, *, at_once: bool = False) -> str:
    """The unit that a figure is per: `month` of "a month", "/month", "monthly". `at_once`: only at the text's beginning."""
    each = rf"(?:/|{pattern('patterns', 'per').pattern})\s*({spellings('rates')})(?!\w)"
    per = rf"{each}|(?<!\w)(\w+(?:ly|lich|liche[nrs]?|annual))(?!\w)"
    for found in re.finditer(per, text, re.IGNORECASE):
        rate = named("rates", found.group(1) or found.group(2))
        if rate and (not at_once or not text[: found.start()].strip()):
            return rate
    return ""


def _unit_of_column(text: str) -> tuple[str, str]:
    if found := re.search(rf"(?<!\w){spellings('currencies')}(?!\w)", text.replace("_", " "), re.IGNORECASE):
        return "amount", named("currencies", found.group())
    if "%" in text or re.search(r"percent|prozent|_pct", text, re.IGNORECASE):
        return "percent", ""
    if found := re.search(rf"(?:[(\[,_]|\bin\s)\s*({spellings('measures')})\s*(?:[)\],]|$)", text, re.IGNORECASE):
        return "measure", named("measures", found.group(1))
    return "bare", ""


def _value(match: re.Match[str], kind: str, language: str) -> tuple[Value | None, str]:
    low = match.group().lower()
    if kind == "iso":
        year, month, day = map(int, low.split("-"))
        return (year, month, day), ""
    if kind == "dotted":
        day, month, year = (int(part) if part else 0 for part in re.sub(r"\s", "", low).split("."))
        return ((year, month, day) if 0 < month < 13 and 0 < day < 32 else None), ""
    if kind == "date":
        said = re.search(rf"\b{spellings('months')}\b", low)
        year_of, day_of = re.search(r"\b(?:19|20)\d\d\b", low), re.search(r"\b\d{1,2}(?!\d)", low)
        month = int(named("months", said.group())) if said else 0
        return (int(year_of.group()) if year_of else 0, month, int(day_of.group()) if day_of else 0), ""
    if kind == "fraction":
        over, under = named("fractions", low).split("/")
        return int(over) / int(under), ""
    if kind == "clock":  # recognised so that its digits count nothing
        return None, ""
    if kind == "duration":
        parts = re.findall(rf"((?:{_DIGITS})|{spellings('numerals')})[\s-]?({spellings('times')})(?!\w)", low)
        minutes = sum((_spelled(figure, language) or 0) * float(named("times", unit)) for figure, unit in parts)
        return minutes, "working" if re.search("working|business|werkt|arbeitst", low) else ""
    number = _spelled(low, language)
    if kind == "amount" and number is not None:
        scale = re.search(rf"(?<![^\W\d])({spellings('scales')})(?!\w)", low)
        currency = re.search(spellings("currencies") + r"(?![^\W\d])", low)
        return number * float(named("scales", scale.group(1)) if scale else 1), named(
            "currencies", currency.group()
        ) if currency else ""
    if kind == "measure" and (unit := re.search(rf"(?:[\d\s-]|^)({spellings('measures')})$", low)):
        return number, named("measures", unit.group(1))
    return number, ""


def _spelled(text: str, language: str) -> float | None:
    """The number that a text begins with or holds, in digits or in words."""
    if figures := re.search(_DIGITS, text):
        return _number(figures.group(), language)
    word = re.match(rf"{spellings('numerals')}(?!\w)", text, re.IGNORECASE)
    return float(named("numerals", word.group())) if word else None


def _number(text: str, language: str) -> float | None:
    digits = re.sub(r"[ '’\u00a0\u202f]", "", text)
    thousands, decimal = (".", ",") if language == "de" else (",", ".")
    marks = set(re.findall(r"[.,]", digits))
    if len(marks) == 2:
        decimal = digits[max(digits.rfind("."), digits.rfind(","))]
        thousands = "," if decimal == "." else "."
    elif marks and (digits.count(mark := marks.pop()) > 1 or (mark == thousands and re.search(r"[.,]\d{3}$", digits))):
        thousands, decimal = mark, "," if mark == "." else "."
    elif "," in digits or "." in digits:
        thousands, decimal = " ", "," if "," in digits else "."
    if re.search(rf"{re.escape(thousands)}(?!\d{{3}}(?!\d))", digits.partition(decimal)[0]):
        return None  # 1.2.3 is a version, not a number
    try:
        return float(digits.replace(thousands, "").replace(decimal, "."))
    except ValueError:
        return None
