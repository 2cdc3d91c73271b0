"""Figures in a statement: amounts, shares, dates, times, durations, measures, counts, and the words around each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import is_content, stem, weak_words

Day = tuple[int, int, int]
Value = float | Day  # a date as (year, month, day), with 0 for what is not said

_MONTHS = {name: number for number, names in enumerate(
    ("jan", "feb", "mar mär mae", "apr", "may mai", "jun", "jul", "aug", "sep", "oct okt", "nov", "dec dez"), 1)
    for name in names.split()}  # fmt: skip
_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|maerz|apr(?:il)?|may|mai|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b\.?"
)
_SPELLED = {name: number for number, names in enumerate((
    "two zwei", "three drei dreimal", "four vier viermal", "five fünf fuenf", "six sechs", "seven sieben", "eight acht",
    "nine neun", "ten zehn", "eleven elf", "twelve zwölf zwoelf", "thirteen dreizehn", "fourteen vierzehn", "fifteen fünfzehn",
    "sixteen sechzehn", "seventeen siebzehn", "eighteen achtzehn", "nineteen neunzehn", "twenty zwanzig"), 2)
    for name in names.split()} | {"thirty": 30, "dreißig": 30, "forty": 40, "vierzig": 40, "fifty": 50, "fünfzig": 50,
    "sixty": 60, "sechzig": 60}  # fmt: skip
_WORDS = "|".join(_SPELLED)
# Repetitions are bounded, so that a page of digits and commas costs linear time.
_DIGITS = r"\d{1,3}(?:[ '’\u00a0\u202f]\d{3}){1,4}(?:[.,]\d{1,4})?(?!\d)|\d{1,12}(?:[.,]\d{1,6}){0,4}"
_SCALE = r"(?:\s?(?:k|million|millionen|mio\.?|thousand|tausend|billion|bn)\b)?"
_CURRENCY = r"(?:€|\$|£|(?:eur|euros?|usd|gbp|chf|dollars?|pounds?|francs?|franken|cents?|ct)\b)"
_TIME = (
    r"(?:(?:working|business|calendar|full|volle[nr]?|ganze[nr]?)\s)?(?:seconds?|secs?|sekunden?|minutes?|mins?|minuten?|hours?|hrs?|h"
    r"|stunden?|std\.?|days?|tage?n?|werktage?n?|arbeitstage?n?|weeks?|wochen?|months?|monate?n?|years?|jahre?n?)"
)
_MEASURE = (
    r"(?:km/h|m/s|mg/l|µg/m³|μg/m³|µg/m3|[kmc]?m[²³23]|[kcm]?m|kilomet(?:er|re)s?|millimet(?:er|re)s?|centimet(?:er|re)s?"
    r"|zentimetern?|met(?:er|re)s?|metern?|square\smet(?:er|re)s?|quadratmetern?|kubikmetern?|cubic\smet(?:er|re)s?|k?g|tonnes?|tonnen?"
    r"|t|l|litres?|liters?|litern?|kwh|mwh|kwp?|watt|°c|degrees|grad|[kmgt]i?b|bar|hpa|db|ha|hektar|sqm|qm|ppm|miles?|feet|ft)"
)
_QUANTITY = re.compile(
    rf"""(?P<iso>\b(?:19|20)\d\d-\d\d-\d\d\b)
    |(?P<dotted>\b\d{{1,2}}\.\s?\d{{1,2}}\.(?:\s?(?:19|20)\d\d\b|(?!\d)))
    |(?P<date>\b(?:\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+(?:19|20)\d\d)?|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+(?:19|20)\d\d)?))
    |(?P<clock>\b\d{{1,2}}(?::\d\d(?:\s?(?:uhr\b|[ap]\.?m\.?))?|[.:]?\d{{0,2}}\s?(?:uhr\b|[ap]\.?m\b)))
    |(?P<amount>{_CURRENCY}\s?(?:{_DIGITS}){_SCALE}|\b(?:(?:{_DIGITS}){_SCALE}|{_WORDS})(?:\s?,-)?\s?{_CURRENCY})
    |(?P<percent>\b(?:{_DIGITS}|{_WORDS})\s?(?:%|per\s?cent\b|prozent\b))
    |(?P<part>\b(?:one\sthird|a\sthird|ein(?:em)?\sdrittel|(?:two|zwei)[\s-](?:thirds|dritteln?)|(?:three|drei)[\s-](?:quarters|vierteln?)|(?:ein(?:em)?|one|a)[\s-](?:quarter|viertel))\b)
    |(?P<duration>(?<![\w.,])(?:{_DIGITS}|\b(?:{_WORDS}))[\s-]?{_TIME}(?![\w/])(?:\s(?:and\s|und\s)?\d+\s?{_TIME}\b)*)
    |(?P<measure>(?<![\w.,])(?:{_DIGITS}|\b(?:{_WORDS}))[\s-]?{_MEASURE}(?!\w))
    |(?P<count>(?<![\w.,/§-])(?:{_DIGITS}|(?:{_WORDS})\b))""",
    re.IGNORECASE | re.VERBOSE,
)
FIGURE = rf"(?:{_CURRENCY}\s?)?(?:{_DIGITS})\s?(?:{_CURRENCY}|%)?"  # as `parse_number` reads it
_UNITS = {"€": "eur", "euro": "eur", "euros": "eur", "$": "usd", "dollar": "usd", "dollars": "usd", "£": "gbp", "pound": "gbp",
          "pounds": "gbp", "franken": "chf", "franc": "chf", "francs": "chf", "cents": "ct", "cent": "ct", "m2": "m²", "sqm": "m²",
          "qm": "m²", "quadratmeter": "m²", "quadratmetern": "m²", "m3": "m³", "kubikmeter": "m³", "kubikmetern": "m³",
          "litre": "l", "liter": "l", "degrees": "°c", "grad": "°c", "tonne": "t", "tonnen": "t", "hektar": "ha", "litern": "l",
          "meter": "m", "metre": "m", "metern": "m", "millimeter": "mm", "millimetre": "mm", "kilometer": "km",
          "kilometre": "km", "zentimeter": "cm", "centimetre": "cm", "centimeter": "cm"}  # fmt: skip
_MINUTES = (("s", 1 / 60), ("min", 1.0), ("mon", 43200.0), ("h", 60.0), ("st", 60.0), ("d", 1440.0), ("t", 1440.0),
            ("werkt", 1440.0), ("arbeitst", 1440.0), ("w", 10080.0), ("y", 525600.0), ("j", 525600.0))  # fmt: skip
# A number behind one of these names a place or a thing: it counts nothing.
_NAMING = re.compile(
    r"(?:§+|\b(?:nos?|nr|number|numbers|nummer|art|abs|absatz|article|section|clause|page|pages|seite|room|raum|zimmer"
    r"|haus|house|phase|step|stage|version|figure|abb|item|pos|position|lot|top|chapter|kapitel|invoice|rechnung|unit|class"
    r"|level|floor|plot|parzelle|wohnung|flat|gate|table|tabelle|station|sensor|week|woche|kw|quarter|line|zeile|offer|angebot"
    r"|street|straße|str|weg|platz|road|tel|fax|iban|din|iso|en|bgb|article|grade|stufe|gruppe|group|option|variante|row)\.?)"
    r"\s*(?:[(:#-]\s*)?$|[#/]$",
    re.IGNORECASE,
)
# A date behind one of these says when something was written.
_DATED = re.compile(
    r"(?:\b(?:date|dated|datum|sent|gesendet|vom|version|stand|updated|written|created)\b|,)[\s:*]*(?:(?:of|on)\s)?(?:\w{2,10}\.?,?\s)?$",
    re.IGNORECASE,
)
_NOT_COUNTED = re.compile(r"\s*(?:[-–/]\s?\d|[.,:]\d|\w*straße|\.\s?(?=[a-zäöü§(])|\))|[-–]\w+\s(?:street|road)")
_RANGE_BEFORE = re.compile(
    r"(?:\d[\w%€£$ .]{0,12}\s*(?:–|—|-|\bto|\bbis|\bor|\boder)|\b(?:between|zwischen)\s+[^,;]{0,20}(?:and|und)|\b(?:between|zwischen))\s*$",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(r"\s*(?:–|—|-|to\b|or\b|bis\b|oder\b)\s*(?:€|£|\$)?\d", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[;()|]|,(?!\d)|\s[–—-]\s|[.:!?]\s|\s(?:but|while|because|which|so that|whereas|although|aber|weil|während|sondern|wobei|obwohl)\s",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"(?:/|\bper\b|\bpro\b|\bje\b|\ban?\b|\beach\b|\bevery\b|\balle\b|\bim\b)\s*(month|year|week|day|hour|night|quarter|person|head|guest"
    r"|member|participant|child|word|page|piece|unit|monat|jahr|woche|tag|stunde|nacht|quartal|kopf|gast|mitglied|teilnehmer|kind"
    r"|stück|quadratmeter|m²|qm|kwh|m³|km|kg|litre|liter|lfm|meter|metre|m)\b"
    r"|\b(monthly|yearly|annual(?:ly)?|weekly|daily|hourly|monatlich|monatliche[nrs]?|jährlich|jährliche[nrs]?|wöchentlich|täglich)\b",
    re.IGNORECASE,
)
_RATES = {"monthly": "month", "yearly": "year", "annual": "year", "annually": "year", "weekly": "week", "daily": "day", "hourly": "hour",
          "monat": "month", "jahr": "year", "woche": "week", "tag": "day", "stunde": "hour", "nacht": "night", "quartal": "quarter",
          "head": "person", "guest": "person", "member": "person", "participant": "person", "kopf": "person", "gast": "person",
          "mitglied": "person", "teilnehmer": "person", "monatlich": "month", "jährlich": "year", "wöchentlich": "week",
          "täglich": "day", "quadratmeter": "m²", "qm": "m²", "metre": "m", "meter": "m", "liter": "litre"}  # fmt: skip
_MAX_CHARS = 2_000  # no sentence is longer; what is, is not prose


@dataclass(frozen=True)
class Quantity:
    """A figure of `kind` (amount, percent, part, date, clock, duration, measure, count, bare) in a unit.

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
        kind, unit = (
            _unit_of_column(cell) if re.search(rf"{_CURRENCY}|%", cell, re.IGNORECASE) else _unit_of_column(header)
        )
        near = frozenset(_stems(statement, f"{label} {column}"))
        rate = _rate_of(_RATE.search(f"{label} {column}"))
        shown = cell.strip().strip("*").strip()
        found.append(Quantity(statement, kind, unit, rate, number, shown, f"{label} | {column}", "", near))
    return found


def head_of(quantity: Quantity) -> str:
    """The word that the figure belongs to: the last one of substance before it in its clause; empty without one."""
    before = quantity.clause.partition(quantity.shown)[0]
    said = [word for word in _stems(quantity.statement, before) if word in quantity.near and word not in weak_words()]
    return said[-1] if said else ""


def row_labels(row: Statement) -> tuple[tuple[str, ...], int]:
    """The cells that name a table row, and the place of the first cell after them. A number before a name is none."""
    labels: list[str] = []
    for index, cell in enumerate(row.cells):
        figure = _QUANTITY.match(cell.strip("* "))
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
    match = re.fullmatch(rf"[-+]?\s?(?:{_CURRENCY}\s?)?({_DIGITS})\s?(?:{_CURRENCY}|%)?", plain, re.IGNORECASE)
    if match is None:
        return None
    value = _number(match.group(1), language)
    return None if value is None else -value if plain.startswith("-") else value


def dates_of(text: str) -> list[tuple[int, int, int]]:
    """All dates that a text names."""
    found = (_value(match, match.lastgroup or "", "en") for match in _QUANTITY.finditer(text[:_MAX_CHARS]))
    return [value for value, _ in found if isinstance(value, tuple)]


def _of_text(statement: Statement, text: str, label: str = "") -> Iterator[Quantity]:
    text = re.sub(r"https?://[^\s)>\]]+|[\w.+-]+@[\w.-]+", lambda m: "\x00" * len(m.group()), text[:_MAX_CHARS])
    found = list(_QUANTITY.finditer(text))
    masked = text
    for match in found:  # a figure's own marks end no clause
        masked = masked[: match.start()] + "\x00" * len(match.group()) + masked[match.end() :]
    cuts = [0, *(m.end() for m in _CLAUSE_END.finditer(masked))]
    for match in found:
        kind = match.lastgroup or ""
        before, after = text[: match.start()], text[match.end() :]
        value, unit = _value(match, kind, statement.language)
        if value is None or kind == "clock" or _RANGE_BEFORE.search(before[-36:]) or _RANGE_AFTER.match(after):
            continue
        start = max(cut for cut in cuts if cut <= match.start())
        stop = min((m.start() for m in _CLAUSE_END.finditer(masked, match.end())), default=len(text))
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
            named = _NAMING.search(before[-14:]) or _NOT_COUNTED.match(after)
            if not named and re.fullmatch(r"\d{1,9}[.,]\d\d", match.group()):
                kind = "bare"
                if not _RATE.match(after):  # 07.20 may be a time
                    continue
            elif named or year or not noun or re.match(r"\s*[^\w\s]", after):
                continue
        if kind in ("iso", "dotted", "date") and _DATED.search(before[-24:]):
            continue
        rate = _RATE.search(after[:30]) if kind != "count" else _RATE.match(after)
        rate = rate or (_RATE.search(clause) if kind in ("amount", "bare") else None)
        every = re.search(r"\b(?:every|alle)\s*$", before, re.IGNORECASE)
        near = frozenset(_stems(statement, f"{label} {clause}"))
        yield Quantity(
            statement, "date" if kind in ("iso", "dotted") else kind, unit, "every" if every else _rate_of(rate) if kind != "date" else "",
            value, match.group().strip(" ."), f"{label} {text[start:stop]}", text[max(0, match.start() - 24) : match.start()], near, noun,
        )  # fmt: skip


def _stems(statement: Statement, text: str) -> list[str]:
    """Content words, and ids such as W2."""
    ids = [word.lower() for word in re.findall(r"\b[A-Za-z]{1,3}-?\d{1,4}\b", text)]
    return [
        stem(w, statement.language) for w in re.findall(r"[^\W\d_]+(?:['’‑-][^\W\d_]+)*", text) if is_content(w)
    ] + ids


def _rate_of(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    word = (match.group(1) or match.group(2)).lower()
    return _RATES.get(word) or _RATES.get(re.sub(r"e[nrs]?$", "", word)) or word


def _unit_of_column(text: str) -> tuple[str, str]:
    if found := re.search(_CURRENCY, text, re.IGNORECASE):
        return "amount", _unit(found.group())
    if "%" in text or re.search(r"percent|prozent|_pct", text, re.IGNORECASE):
        return "percent", ""
    if found := re.search(rf"(?:[(\[,_]|\bin\s)\s*({_MEASURE})\s*(?:[)\],]|$)", text, re.IGNORECASE):
        return "measure", _unit(found.group(1))
    return "bare", ""


def _unit(word: str) -> str:
    low = re.sub(r"\s+", " ", word.lower())
    return _UNITS.get(low) or _UNITS.get(low.removesuffix("s")) or low


def _value(match: re.Match[str], kind: str, language: str) -> tuple[Value | None, str]:
    low = match.group().lower()
    figures = re.search(_DIGITS, low)
    number = _number(figures.group(), language) if figures else next(
        (float(value) for name, value in _SPELLED.items() if re.match(rf"{name}\b", low)), None)  # fmt: skip
    if kind == "iso":
        year, month, day = map(int, low.split("-"))
        return (year, month, day), ""
    if kind == "dotted":
        day, month, year = (int(part) if part else 0 for part in re.sub(r"\s", "", low).split("."))
        return ((year, month, day) if 0 < month < 13 and 0 < day < 32 else None), ""
    if kind == "date":
        month = next(n for name, n in _MONTHS.items() if re.search(rf"\b{name}", low))
        spelled = re.search(r"\b(?:19|20)\d\d\b", low)
        day_of = re.search(r"\b\d{1,2}(?!\d)", low)
        return (int(spelled.group()) if spelled else 0, month, int(day_of.group()) if day_of else 0), ""
    if kind == "clock":
        hour, minute = [*re.findall(r"\d+", low), "0"][:2]
        return (int(hour) % 12 + 12 if "p" in low else int(hour)) * 60.0 + int(minute), ""
    if kind == "part":
        thirds = re.search("thir|dritt", low)
        several = 2 if re.search("two|zwei", low) else 3 if re.search("three|drei", low) else 1
        return (several / 3 if thirds else several / 4), ""
    if number is None:
        return None, ""
    if kind == "duration":
        total = 0.0
        for figure, unit in re.findall(rf"((?:{_DIGITS})|(?:{_WORDS}))[\s-]?({_TIME})", low):
            name = unit.split()[-1]
            minutes = next(m for key, m in sorted(_MINUTES, key=lambda pair: -len(pair[0])) if name.startswith(key))
            total += (_SPELLED.get(figure) or _number(figure, language) or 0) * minutes
        return total, "working" if re.search("working|business|werkt|arbeitst", low) else ""
    scale = (
        re.search(r"(?:k|million|millionen|mio|thousand|tausend|billion|bn)\.?(?=\W|$)", low)
        if kind == "amount"
        else None
    )
    if scale:
        number *= {"k": 1e3, "t": 1e3, "m": 1e6, "b": 1e9}[scale.group()[0]]
    if kind == "amount":
        currency = re.search(_CURRENCY, low)
        return number, _unit(currency.group()) if currency else ""
    if kind == "measure":
        unit = re.search(rf"{_MEASURE}$", low)
        return number, _unit(unit.group()) if unit else ""
    return number, ""


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
