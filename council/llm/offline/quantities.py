"""Amounts, percentages, dates, durations, sizes and counts in a statement, each with the words that label it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import is_content, stem, tokens

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_UP_TO_TWELVE = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED = {name: number for number, name in enumerate(_UP_TO_TWELVE, 1)}
_MINUTES = {"s": 1 / 60, "min": 1.0, "h": 60.0, "day": 1440.0, "week": 10080.0, "month": 43200.0, "year": 525600.0}
_TIME = (
    r"(?:seconds?|secs?|minutes?|mins?|min|hours?|hrs?|h|(?:working |business |calendar )?days?|weeks?|months?|years?)"
)
# Repetitions are bounded, so that a page of digits and commas costs linear time.
_NUMBER = r"\d{1,3}(?:[ ,'’\u00a0\u202f]\d{3}){1,5}(?:\.\d{1,6})?(?!\d)|\d{1,12}(?:[.,]\d{1,6}){0,3}"
_SCALE = r"(?:\s?(?:k|m|bn|thousand|million|billion)\b)?"
_CURRENCY = r"(?:€|\$|£|eur\b|usd\b|gbp\b|chf\b|euros?\b|dollars?\b)"
_NUM = rf"(?:{_NUMBER}){_SCALE}"
_SPELLED_OR_DIGITS = rf"(?:\b(?:{'|'.join(_SPELLED)})\b|{_NUMBER})"

_QUANTITY = re.compile(
    rf"""(?P<iso>\b(?:19|20)\d\d-\d\d-\d\d\b)
    |(?P<date>\b(?:\d{{1,2}}\.?\s+{_MONTH}(?:\s+(?:19|20)\d\d)?|{_MONTH}\s+\d{{1,2}},?\s+(?:19|20)\d\d|{_MONTH}\s+(?:19|20)\d\d)\b)
    |(?P<amount>{_CURRENCY}\s?{_NUM}|\b{_NUM}\s?{_CURRENCY})
    |(?P<percent>\b{_NUM}\s?(?:%|per\s?cent\b))
    |(?P<duration>(?<![\w.]){_SPELLED_OR_DIGITS}[\s-]?{_TIME}\b(?:\s(?:and\s)?\d+\s?{_TIME}\b)*)
    |(?P<size>\b{_NUM}\s?(?:[kmgt]i?b)\b)
    |(?P<count>(?<![\x23./-])\b(?:{_NUMBER})\s+(?=[a-z]{{4,}}))""",
    re.IGNORECASE | re.VERBOSE,
)
_RATE = re.compile(
    r"\s*(?:/|per\b|an?\b|each\b|every\b)\s*(month|year|week|day|hour|quarter|person|user|member|head)\b", re.I
)
_RATE_WORDS = {"monthly": "month", "yearly": "year", "annual": "year", "annually": "year", "weekly": "week",
               "daily": "day", "hourly": "hour", "quarterly": "quarter"}  # fmt: skip
_BOUND = re.compile(
    r"(up to|at least|at most|more than|less than|fewer than|over|under|below|above|within|minimum|maximum|max|min"
    r"|before|after|since|until|from|instead of|rather than|[<>≤≥])\s*$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"(about|around|roughly|approximately|almost|nearly|some|circa|ca\.|~)\s*$", re.IGNORECASE)
_RANGE_BEFORE = re.compile(r"(?:\d|between)\s*(?:–|—|-|to|and)?\s*$", re.IGNORECASE)
_RANGE_AFTER = re.compile(r"\s*(?:–|—|-|to\b|or\b)\s*\d")
_MAX_CHARS = 2_000  # no sentence is longer; what is, is not prose
_ADDRESS = re.compile(r"https?://[^\s)>\]]+")
_CLAUSE_END = re.compile(r"[;,()]|\s[–—-]\s|\.\s|\s(?:but|while|because|which|so that|whereas)\s")
_PAST = re.compile(
    r"\b(last year|previous(?:ly)?|former(?:ly)?|used to|until now|in the past|originally)\b", re.IGNORECASE
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Words that name a kind of figure, or merely introduce one: they neither make two labels the same nor tell them apart.
_WEAK_WORDS = """cost costs price priced budget fee fees charge amount figure value total sum expense spend
    pay paid planned plan
    expected expect estimated estimate takes take took set agreed currently lasts last scheduled due date time
    duration measured number count approximately roughly monthly yearly annual annually weekly daily hourly
    quarterly eur euro usd gbp chf per year month week day hour minute item step remark note notes comment"""
WEAK = frozenset(map(stem, _WEAK_WORDS.split()))


@dataclass(frozen=True)
class Quantity:
    """`kind` and `unit` say what can be compared with what; `value` is in one unit per kind (minutes, bytes, …).

    `label` holds the strong words around it; `sequence` the clause's words in order, '' for stops, figures and marks.
    """

    statement: Statement
    kind: str
    unit: str
    value: float | tuple[int, int, int]
    shown: str
    bound: str
    about: bool
    past: bool
    years: frozenset[str]
    label: frozenset[str]
    sequence: tuple[str, ...]


def quantities(statement: Statement) -> list[Quantity]:
    """The comparable quantities of a statement; ranges are left out, they state no single number."""
    if statement.kind == "row" and len(statement.cells) > 1:
        found: list[Quantity] = []
        # A cell is labelled by its row's first cell and, where there are several figures, by its column.
        for index, text in enumerate(statement.cells[1:], 1):
            column = statement.header[index] if index < len(statement.header) else ""
            prefix = statement.cells[0] + (f" {column}" if len(statement.cells) > 2 else "")
            if re.fullmatch(_NUM, text.strip(), re.IGNORECASE):  # the unit may stand in the column's heading
                unit = re.search(rf"{_CURRENCY}|%|\b{_TIME}\b", column, re.IGNORECASE)
                rate = _RATE.search(column)
                text = f"{text.strip()} {unit.group() if unit else ''}{rate.group() if rate else ''}"
            found += _of_text(statement, text, prefix)
        return found
    return list(_of_text(statement, statement.text, ""))


def _of_text(statement: Statement, text: str, prefix: str) -> Iterator[Quantity]:
    text = _ADDRESS.sub(
        lambda match: "\x00" * len(match.group()), text[:_MAX_CHARS]
    )  # digits and words of a URL label nothing
    found = list(_QUANTITY.finditer(text))
    masked = text
    for match in found:  # blanked to marks of the same length; the noun of a count stays
        masked = masked[: match.start()] + "\x00" * len(match.group()) + masked[match.end() :]
    for match in found:
        kind = match.lastgroup or ""
        before, after = text[: match.start()], text[match.end() :]
        value, unit = _value(kind, match.group(), after)
        if value is None or _RANGE_BEFORE.search(before[-12:]) or (kind != "count" and _RANGE_AFTER.match(after)):
            continue
        # The clause around it; when that labels nothing ("by then, 5 days"), the one before it comes along.
        cuts = [0] + [m.end() for m in _CLAUSE_END.finditer(masked) if m.end() <= match.start()]
        stop = next((m.start() for m in _CLAUSE_END.finditer(masked, match.end())), len(masked))
        clause = masked[cuts[-1] : stop]
        if not any(_sequence(clause)) and len(cuts) > 1:
            clause = masked[cuts[-2] : stop]
        sequence = _sequence(f"{prefix} \x00 {clause}" if prefix else clause)
        label = frozenset(word for word in sequence if word)
        bound, about = _BOUND.search(before), _ABOUT.search(before)
        around = f"{prefix} {clause}"
        rate = ""
        if kind not in ("date", "iso"):
            per = _RATE.match(after)
            words = (_RATE_WORDS[w.lower()] for w in tokens(around) if w.lower() in _RATE_WORDS)
            rated = per.group(1).lower() if per else next(words, "")
            rate = f"/{rated}" if rated else ""
        yield Quantity(
            statement, "date" if kind == "iso" else kind, unit + rate, value,
            match.group().strip(), bound.group(1).lower() if bound else "", about is not None,
            _PAST.search(around) is not None, frozenset(_YEAR.findall(around)), label, sequence,
        )  # fmt: skip


def _sequence(clause: str) -> tuple[str, ...]:
    parts: list[str] = []
    for piece in re.split(r"([^\w\s'’‑-]+)", clause):
        words = tokens(piece)
        parts.extend(stem(w) if is_content(w) and stem(w) not in WEAK else "" for w in words)
        if not words:
            parts.append("")
    return tuple(parts)


def _value(kind: str, raw: str, after: str) -> tuple[float | tuple[int, int, int] | None, str]:
    low = raw.lower()
    if kind == "iso":
        year, month, day = map(int, low.split("-"))
        return (year, month, day), ""
    if kind == "date":  # 0 where the text does not say
        named = [n for n, month in enumerate(_MONTHS, 1) for word in tokens(low) if word[:3] == month]
        spelled, dated = _YEAR.search(low), re.search(r"\b\d{1,2}\b", low)
        date = (int(spelled.group()) if spelled else 0, named[0], int(dated.group()) if dated else 0) if named else None
        return date, ""
    if kind == "duration":
        minutes = 0.0
        for figure, unit in re.findall(rf"({_SPELLED_OR_DIGITS})[\s-]?({_TIME})", low):
            name = unit.split()[-1]
            key = next(k for k in ("min", "month", "s", "h", "day", "week", "year") if name.startswith(k))
            minutes += (_SPELLED.get(figure) or _number(figure) or 0) * _MINUTES[key]
        return round(minutes, 4), "working" if re.search("working|business", low) else ""
    number = _number(low)
    if kind == "amount":
        unit = re.search(_CURRENCY, low)
        name = unit.group() if unit else ""
        return number, {"€": "eur", "euro": "eur", "euros": "eur", "$": "usd", "£": "gbp"}.get(name, name)
    if kind == "size":
        unit = re.search(r"[kmgt]i?b", low)
        power = "kmgt".index(unit.group()[0]) + 1 if unit else 0
        return (None if number is None else number * 1000**power), ""
    if kind == "count":
        noun = tokens(after)[0]
        countable = is_content(noun) and number is not None and number >= 10 and not _YEAR.fullmatch(low.strip())
        return (number if countable else None), stem(noun)
    return number, ""


def _number(text: str) -> float | None:
    match = re.search(_NUMBER, text)
    if match is None:
        return None
    digits = re.sub(r"[ '’\u00a0\u202f]", "", match.group())
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", digits):  # three digits after the mark: thousands, in either style
        digits = re.sub(r"[.,]", "", digits)
    elif re.fullmatch(r"\d+,\d+", digits):
        digits = digits.replace(",", ".")
    try:
        value = float(digits.replace(",", ""))
    except ValueError:  # 1.2.3 is a version, not a number
        return None
    scale = re.search(r"\d\s?(k|m|bn|thousand|million|billion)\b", text)
    factors = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
    return value * (factors[scale.group(1)] if scale else 1)
