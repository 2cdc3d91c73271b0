"""Figures as a text writes them: their pattern, and the value and unit of each."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache

from council.llm.offline.vocabulary import named, pattern, spellings

_METRIC = {
    "km": ("m", 1000.0), "cm": ("m", 0.01), "mm": ("m", 0.001), "ha": ("m²", 10_000.0), "ml": ("l", 0.001),
    "t": ("kg", 1000.0), "g": ("kg", 0.001), "mg": ("kg", 0.000_001), "mwh": ("kwh", 1000.0),
    "hpa": ("bar", 0.001), "ppb": ("ppm", 0.001),
}  # fmt: skip

Day = tuple[int, int, int]  # year, month, day; 0 for what is not said

# Repetitions are bounded, so that a page of digits and commas costs linear time.
_DIGITS = r"\d{1,3}(?:[ '’\u00a0\u202f]\d{3}){1,4}(?:[.,]\d{1,4})?(?!\d)|\d{1,12}(?:[.,]\d{1,6}){0,4}"
MAX_CHARS = 2_000  # no sentence is longer; what is, is not prose
_CAPITAL = re.compile(r"\s[A-ZÄÖÜ]")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@cache
def figures() -> re.Pattern[str]:
    digits, year = _DIGITS, r"(?:,?\s+(?:19|20)\d\d)?"
    month, scale, currency = map(spellings, ("months", "scales", "currencies"))
    numerals = _spelled_numbers()
    measure = rf"(?:{spellings('times')}|{spellings('measures')})"
    number = rf"(?:{digits}|\b{numerals}(?=[\s-]))"  # a tent is not ten t
    kinds = {
        "iso": r"\b(?:19|20)\d\d-\d\d-\d\d\b",
        "dotted": r"\b\d{1,2}(?:\.\s?\d{1,2}\.(?:\s?(?:19|20)\d\d\b|(?!\d))|/\d{1,2}/(?:19|20)\d\d\b)",
        "date": rf"\b(?:\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{month}\b\.?{year}"
        rf"|{month}\s+(?:\d{{1,2}}(?:st|nd|rd|th)?\b(?!\s?[%€£$]|[.,:]\d){year}|(?:19|20)\d\d\b))",
        "clock": r"(?:\b|(?<=\dT))\d{1,2}(?:[.:]?(?:\d\d)?\s?(?:uhr\b|[ap]\.?m\b)|(?::\d{1,4}){1,2}(?!\d))",
        "amount": rf"(?<!\w){currency}\s{{0,3}}(?:{digits})(?:\s?{scale}\b)?"
        rf"|\b{number}(?:\s?{scale}\b)?(?:\s?,-)?\s?{currency}(?!\w)",
        "percent": rf"\b{number}\s?(?:%|per\s?cent\b|prozent\b)",
        "measure": rf"(?<![\w.,]){number}[\s-]?{measure}(?![\w/])(?:\s(?:and\s|und\s)?\d+\s?{measure}\b)*",
        "count": rf"(?<![\w.,/§-])(?:(?:{digits})(?:\s?{scale}\b|(?!\w))|{numerals}\b)",
    }
    return re.compile("|".join(f"(?P<{kind}>{kinds[kind]})" for kind in kinds), re.IGNORECASE)


@cache
def _spelled_numbers() -> str:
    """Words for the numbers from 2 to 999, and for dozens."""
    one, eins = (
        "one|two|three|four|five|six|seven|eight|nine",
        "ein|zwei|drei|vier|fünf|fuenf|sechs|sieben|acht|neun",
    )
    ten, zehn = (
        "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety",
        "zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|sechzig|siebzig|achtzig|neunzig",
    )
    low = rf"(?:(?:{ten})(?:[\s-](?:{one}))?|(?:(?:{eins})und)?(?:{zehn})|{spellings('numerals')})"
    dozens = rf"(?:(?:{spellings('numerals')}|(?:half )?an?|ein(?:em)?(?: halbe[sn])?)\s)?(?:dozen|dutzend)"
    hundreds = rf"(?:(?:{one}|an?)\s)?hundred(?:(?:\sand)?\s{low})?|(?:{eins})?hundert(?:und)?{low}?"
    return rf"(?:{dozens}|{hundreds}|{low})(?![^\W\d_])"


@cache
def clause_end() -> re.Pattern[str]:
    return re.compile(rf"[;()|]|,(?!\d)|\s[–—-]\s|[.:!?]\s|\s{pattern('patterns', 'clause').pattern}\s", re.IGNORECASE)


@cache
def figure_pattern() -> str:
    return rf"(?:{spellings('currencies')}\s{{0,3}})?(?:{_DIGITS})\s?(?:{spellings('currencies')}(?!\w)|%)?"


def parse_number(text: str, language: str = "en") -> float | None:
    """The value of a figure that stands alone; None for anything else. `language` decides what 1.234 means."""
    plain = text.strip().strip("*").replace("−", "-").replace("–", "-").strip()
    if not re.fullmatch(rf"[-+]?\s?{figure_pattern()}", plain, re.IGNORECASE):
        return None
    digits = re.search(_DIGITS, plain)
    value = _number(digits.group(), language) if digits else None
    return None if value is None else -value if plain.startswith("-") else value


def written_like(shown: str, told: float, value: float, language: str) -> str:
    """Another value, in the unit in which `shown` writes `told`: 33 EUR beside 35.00 EUR. The marks are those of its cents, or
    else of the language."""
    digits = re.findall(_DIGITS, shown)
    number = _number(digits[0], language) if len(digits) == 1 and told else None
    text = f"{value if number is None else value * number / told:,.2f}".removesuffix(".00")
    cents = re.search(r"[.,](?=\d\d?$)", digits[0]) if digits else None
    is_german = cents[0] == "," if cents else language == "de"
    text = text.translate(str.maketrans(",.", ".,")) if is_german else text
    return text if number is None else shown.replace(digits[0], text)


def exchanged_digits(a: float, b: float) -> int:
    """The digits of two figures, three or more, of which two neighbours have changed places: 4,512 and 4,152; else 0."""
    one, other = (f"{abs(value):.4f}".rstrip("0").rstrip(".") for value in (a, b))
    if len(one) != len(other) or one.find(".") != other.find("."):
        return 0
    digits = one.replace(".", ""), other.replace(".", "")
    differ = [i for i, (x, y) in enumerate(zip(*digits, strict=True)) if x != y]
    turned = len(differ) == 2 and differ[1] - differ[0] == 1 and sorted(digits[0]) == sorted(digits[1])
    return len(digits[0]) if turned and len(digits[0]) > 2 else 0


def misprinted(a: float, b: float) -> bool:
    """Recognises two figures of which one digit of four differs, or two neighbours have changed places."""
    one, other = (f"{abs(value):.2f}".removesuffix(".00") for value in (a, b))
    differ = sum(x != y for x, y in zip(one, other, strict=False))
    is_exact = max(len(one.rstrip("0")), len(other.rstrip("0"))) > 2  # 8,000 and 9,000 are no misprints of each other
    return bool(exchanged_digits(a, b)) or (len(one) == len(other) > 3 and differ == 1 and is_exact)


def figures_of(text: str, language: str) -> frozenset[float | Day]:
    """The values of all figures of a text, whether or not it says what they are of. § 3 has none."""
    text = pattern("patterns", "naming", end=r"\.?\s*\d+").sub(" ", text[:MAX_CHARS])
    found = (value_of(match, match.lastgroup or "", language) for match in figures().finditer(text))
    return frozenset(in_base_unit(value, unit)[1] for value, unit in found if value is not None)


def periods_of(text: str, language: str, *, of_days: bool) -> frozenset[str]:
    """The months and quarters that a text names: of September, March 2027, Q3 and, where `of_days`, of 30 September."""
    found: set[str] = set()

    def taken(match: re.Match[str]) -> str:
        value, _ = value_of(match, match.lastgroup or "", language)
        if not isinstance(value, tuple):
            return match.group()
        if of_days or not value[2]:
            found.add(str(value[1]))
        return " "

    rest = figures().sub(taken, text[:MAX_CHARS])
    alone = re.findall(rf"(?<!\w)(?:{spellings('months')}|{spellings('quarters')})(?!\w)", rest, re.IGNORECASE)
    alone = [word for word in alone if word not in ("march", "may")]  # the months have a capital
    return frozenset(found.union(named("months", word) or f"q{named('quarters', word)}" for word in alone))


def rate_of(text: str, *, at_once: bool = False) -> str:
    """The unit that a figure is per: `month` of "a month", "/month", "monthly". `at_once`: only at the text's beginning."""
    each = rf"(?:/|{pattern('patterns', 'per').pattern})\s*({spellings('rates')})(?!\w)"
    per = rf"{each}|(?<!\w)(\w+(?:ly|lich|liche[nrs]?|annual))(?!\w)"
    for found in re.finditer(per, text, re.IGNORECASE):
        rate = named("rates", found.group(1) or found.group(2))
        if rate and (not at_once or not text[: found.start()].strip()):
            return rate
    return ""


def unit_of_column(text: str) -> tuple[str, str, float]:
    """The kind and unit that a cell, its column or its row names, and what one of it is in minutes."""
    if found := re.search(
        rf"(?<![^\W\d_]){spellings('currencies')}(?![^\W\d_])", text.replace("_", " "), re.IGNORECASE
    ):
        return "amount", named("currencies", found.group()), 1.0
    if "%" in text or re.search(r"percent|prozent|_pct", text, re.IGNORECASE):
        return "percent", "", 1.0
    if found := re.search(
        rf"(?:^(?=\w\w)|[(\[,_]|\bin\s)\s*({spellings('measures')})\s*(?:[)\],]|$)", text, re.IGNORECASE
    ):
        return "measure", named("measures", found.group(1)), 1.0
    if found := re.search(rf"(?:^|[(\[,_]|\bin\s)\s*({spellings('times')})\s*(?:[)\],]|$)", text, re.IGNORECASE):
        working = re.search("working|business|werkt|arbeitst", text, re.IGNORECASE)
        return "measure", "working" if working else "time", float(named("times", found.group(1)))
    return "bare", "", 1.0


def in_base_unit(value: float | Day, unit: str) -> tuple[str, float | Day]:
    """1.8 ha is 18,000 m²; what has no metric unit stays as it is."""
    base, factor = _METRIC.get(unit, (unit, 1.0))
    return base, value if isinstance(value, tuple) else round(value * factor, 9)


def value_of(match: re.Match[str], kind: str, language: str) -> tuple[float | Day | None, str]:
    low = match.group().lower()
    if kind == "iso":
        year, month, day = map(int, low.split("-"))
        return (year, month, day), ""
    if kind == "dotted":
        day, month, year = (int(part) if part else 0 for part in re.split(r"[./]", re.sub(r"\s", "", low)))
        stated = 0 < month < 13 and 0 < day < 32 and (year or language == "de")  # in English, 4.1. is a version
        return ((year, month, day) if stated else None), ""
    if kind == "date":
        said = re.search(rf"\b{spellings('months')}\b", low)
        year_of, day_of = YEAR.search(low), re.search(r"\b\d{1,2}(?!\d)", low)
        month = int(named("months", said.group())) if said else 0
        return (int(year_of.group()) if year_of else 0, month, int(day_of.group()) if day_of else 0), ""
    if kind == "clock":
        return _minutes(match, low, language), ""
    if kind == "measure":
        parts = re.findall(rf"({_DIGITS}|{_spelled_numbers()})[\s-]?({spellings('times')})(?!\w)", low)
        if parts:
            minutes = sum((_spelled(figure, language) or 0) * float(named("times", unit)) for figure, unit in parts)
            return minutes, "working" if re.search("working|business|werkt|arbeitst", low) else "time"
        unit = re.search(rf"(?:[\d\s-])({spellings('measures')})$", low)
        return _spelled(low, language), named("measures", unit.group(1)) if unit else ""
    number = _spelled(low, language)
    scale = re.search(rf"(?<![^\W\d])({spellings('scales')})(?!\w)", low)
    if kind == "count" and number is not None and scale:
        return number * float(named("scales", scale.group(1))), ""
    if kind == "amount" and number is not None:
        currency = re.search(spellings("currencies") + r"(?![^\W\d])", low)
        return number * float(named("scales", scale.group(1)) if scale else 1), named(
            "currencies", currency.group()
        ) if currency else ""
    return number, ""


def _minutes(match: re.Match[str], low: str, language: str) -> float | None:
    """Minutes since midnight. None for a ratio, for one with seconds, which stands in a log, and for the German `am` of
    "Haus 5 am Markt"."""
    if low.endswith("am") and (language == "de" or _CAPITAL.match(match.string, match.end())):
        return None
    if re.search(r":\d(?:\d\d|$)", low):
        return None
    hour, *rest = map(int, re.findall(r"\d\d?", low))
    if low.endswith("m"):
        hour = hour % 12 + 12 * ("p" in low)
    return 60.0 * hour + sum(rest) if len(rest) < 2 and hour <= 24 and sum(rest) < 60 else None


def _spelled(text: str, language: str) -> float | None:
    if figures := re.search(_DIGITS, text):
        return _number(figures.group(), language)
    word = re.match(_spelled_numbers(), text, re.IGNORECASE)
    if word is None:
        return None
    from text_to_num import text2num  # not at the top: few texts spell a number of two words

    said = re.sub(r"^an?\s|\s+and\b", " ", word.group().lower()).strip().replace("oe", "ö").replace("ue", "ü")
    if dozens := re.fullmatch(r"(.*?)\s?(?:dozen|dutzend)", said):
        return 6.0 if "hal" in dozens[1] else 12.0 * (_spelled(dozens[1], language) or 1)
    for spoken in ("en", "de"):
        with suppress(ValueError):
            return float(text2num(said, spoken))
    return None


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
