"""The figures of a text: numbers, amounts, dates and times of day, whatever their spelling. Pure, linear in the text.

`21,900`, `21.900`, `21 900`, `21'900`, `21.9k` and `twenty-one thousand nine hundred` are one number. A comma or a point
before three digits leaves two readings of a number, and either may be meant.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

Kind = Literal["number", "date", "time", "label"]
Hedge = Literal["", "about", "over", "under"]
NONE: frozenset[Fraction] = frozenset()
_MAX_COUNTED = 12  # things that a writer counts, instead of reading their number


@dataclass(frozen=True)
class Figure:
    """A figure at `start` to `end`. `values` are its readings, in the `unit` that it is measured in (empty: unknown). `bare`
    are those without it: `two weeks` are 2, and 20,160 minutes. `dates` are `(year, month, day)`, with 0 for what is
    left out. `noun` is the word behind it. `rough` is what the words before it leave open. `worded`: spelled in letters.
    `per`: the time that an amount is for, `year` or `month`. `sign`: empty where the text leaves it open."""

    start: int
    end: int
    text: str
    values: frozenset[Fraction] = frozenset()
    bare: frozenset[Fraction] = frozenset()
    unit: str = ""
    dates: frozenset[tuple[int, int, int]] = frozenset()
    noun: str = ""
    rough: Hedge = ""
    worded: bool = False
    per: str = ""
    sign: Literal["", "+", "-"] = ""
    kind: Kind = "number"

    @cached_property
    def value(self) -> float:
        """The largest reading, in its unit: what is calculated with."""
        return max(map(float, self.values))

    @cached_property
    def bare_value(self) -> float:
        """The same without the unit."""
        return max(map(float, self.bare))

    @property
    def is_count(self) -> bool:
        """True for a small number of things, which a writer may have counted."""
        return (
            self.kind == "number"
            and not self.unit
            and all(value.denominator == 1 and value <= _MAX_COUNTED for value in self.bare)
        )


# ── units: canonical name, how many of it one is, short spellings (case counts), words (case does not) ───────────────

_UNITS: tuple[tuple[str, str, str, str], ...] = (
    ("workday", "1", "", r"(?:working|business)[ -]days?|(?:werk|arbeits)tage?n?"),
    ("point", "1", "", r"percentage points?|prozentpunkte?n?"),
    ("m²", "1", r"m²|m2\b|qm\b", r"sqm|square met(?:re|er)s?|quadratmetern?"),
    ("m³", "1", r"m³|m3\b", r"cubic met(?:re|er)s?|kubikmetern?"),
    ("kWh", "1000", r"MWh\b", r"megawatt[ -]?hours?|megawattstunden?"),
    ("kWh", "1", r"kWh\b", r"kilowatt[ -]?hours?|kilowattstunden?"),
    ("EUR", "1000", "[kKT]€", "[kt]eur"),
    ("EUR", "1000000", "M€", "meur"),
    ("EUR", "1", "€", r"eur|euros?"),
    ("USD", "1000", r"[kT](?:US)?\$", "[kt]usd"),
    ("USD", "1", r"US\$|\$", r"usd|(?:us )?dollars?"),
    ("GBP", "1/100", r"p\b", r"pence|penny"),
    ("GBP", "1", "£", r"gbp|pounds? sterling"),
    ("CHF", "1000", "", "[kt]chf"),
    ("CHF", "1", r"SFr\.", r"chf|franken|swiss francs?"),
    ("JPY", "1", "¥", r"jpy|yen"),
    ("SEK", "1", r"kr\b", r"sek|nok|dkk|kron(?:er|or|a|e)"),  # a `kr` may be any of the three
    ("PLN", "1", r"zł", r"pln|zlot(?:y|ys|ych|e)|złot(?:y|ych|e)"),
    ("CZK", "1", r"Kč", r"czk|koruna?"),
    ("CAD", "1", r"CA?\$", r"cad"),
    ("AUD", "1", r"AU?\$", r"aud"),
    ("INR", "1", "₹", r"inr|rupees?"),
    ("CNY", "1", "", r"cny|rmb|yuan"),
    ("%", "1/10", "‰", r"per mille|pour mille|promille"),
    ("%", "1", r"%|v\. ?H\.", r"percent|per cent|prozent|pour ?cent"),
    ("minute", "1/60", "", r"seconds?|secs?|sekunden?|secondes?"),
    ("minute", "1", "", r"minutes?|mins?|minuten?"),
    ("minute", "60", r"h\b", r"hours?|hrs?|stunden?|std|heures?"),
    ("minute", "1440", "", r"(?:calendar )?days?|tage?[ns]?|jours?"),
    ("minute", "10080", "", r"weeks?|wochen?|semaines?"),
    ("month", "1", "", r"months?|monat(?:e|en|s)?|mois"),
    ("month", "12", "", r"years?|yrs?|jahr(?:e|en|es)?|ans?|années?"),
    ("metre", "1000", r"km\b", r"kilomet(?:re|er)n?s?"),
    ("metre", "1", r"m\b", r"met(?:re|er)n?s?"),
    ("metre", "1/100", r"cm\b", r"centimet(?:re|er)s?|zentimetern?"),
    ("metre", "1/1000", r"mm\b", r"millimet(?:re|er)n?s?"),
    ("kg", "1000", r"t\b", r"tonnes?|tonnen|metric tons?"),
    ("kg", "1", r"kg\b", r"kilograms?|kilos?|kilogramm"),
    ("kg", "1/1000", r"g\b", r"grams?|gramm"),
    ("litre", "1", r"l\b", r"lit(?:re|er)n?s?"),
    ("GB", "1000", r"Ti?B\b", r"terabytes?"),
    ("GB", "1", r"Gi?B\b", r"gigabytes?"),
    ("GB", "1/1000", r"Mi?B\b", r"megabytes?"),
    ("kW", "1000", r"MW\b", r"megawatts?"),
    ("kW", "1", r"kW\b", r"kilowatts?"),
    ("°C", "1", r"°C", r"degrees celsius|grad celsius"),
)
DEGREES = frozenset({"degree", "degrees", "grad"})  # °C where the other figures are, and elsewhere no unit
CURRENCIES = frozenset({"EUR", "USD", "GBP", "CHF", "JPY", "SEK", "PLN", "CZK", "CAD", "AUD", "INR", "CNY"})
_CODES = f"{'|'.join(sorted(CURRENCIES))}|NOK|DKK"
_UNIT = re.compile(
    r"[ \t\u00a0\u202f-]{0,2}\*{0,2}[ \u00a0]?(?:"
    + "|".join(
        f"(?P<u{number}>{short}{'|' if short else ''}(?i:(?:{words})\\b))"
        for number, (_, _, short, words) in enumerate(_UNITS)
    )
    + ")"
)
_CURRENCY_BEFORE = re.compile(
    r"(?:(?P<EUR>(?:\b[kKTM])?€|\b[kKTM]?EUR|\b[Ee]uros?)|(?P<CAD>CA?\$|\bCAD)|(?P<AUD>AU?\$|\bAUD)|(?P<USD>US\$|\$|\b[kT]?USD)|(?P<JPY>¥|\bJPY)"
    r"|(?P<SEK>\b(?:SEK|NOK|DKK|kr\.?))|(?P<PLN>\bPLN)|(?P<CZK>\bCZK)|(?P<INR>₹|\bINR|\bRs\.)|(?P<CNY>\b(?:CNY|RMB))|(?P<GBP>£|\bGBP)|(?P<CHF>\b[kT]?CHF|\bFr\.|\bSFr\.))[\s\u00a0\u202f]?\Z"
)
_LARGE = {"k": 1_000, "K": 1_000, "T": 1_000, "M": 10**6}  # `kEUR 120`, `T€ 45`
_IN_THOUSANDS = re.compile(r"\b(?:[kT](?:€|EUR\b)|Tsd\.? ?(?:€|EUR\b|Euro\b)|thousands? (?:of )?(?:€|EUR\b|euros?\b))")
_MONEY = re.compile(rf"\s?(?:€|\$|£|¥|₹|(?:{_CODES}|kr|euros?|dollars?)\b)")
_CODE = re.compile(rf"\s?(?:{_CODES})\b")
_TIMES = {
    "k": 1_000, "thousand": 1_000, "tausend": 1_000, "tsd": 1_000, "mille": 1_000,
    "m": 10**6, "mn": 10**6, "mio": 10**6, "million": 10**6, "millions": 10**6, "millionen": 10**6,
    "bn": 10**9, "billion": 10**9, "mrd": 10**9, "milliarde": 10**9, "milliarden": 10**9, "milliard": 10**9,
}  # fmt: skip
_MULTIPLIER = re.compile(
    r"[ \u00a0\u202f]?(?P<word>thousand|tausend|tsd|mille|millions?|millionen|mio|mn|bn|billion|mrd|milliarden?|milliards?)\b\.?"
    rf"|(?P<letter>k)(?!\w)|(?P<m>m)(?:(?!\w)|(?=(?:{_CODES})\b))",
    re.IGNORECASE,
)

# ── numbers in digits ────────────────────────────────────────────────────────────────────────────────────────────────

_NOT_BEFORE = r"(?<![\w.,/#^\\])(?<![^0-9.]-)(?<!^-)(?<![A-Za-z]['’])"
_DIGITS = re.compile(
    r"(?<![\w#^\\])(?<![A-Za-z][-/.,_'’])(?<![0-9][.,])(?P<number>"
    r"[0-9]{1,3}(?:[ \u00a0\u202f\u2009'’][0-9]{3}){1,6}(?:[.,][0-9]{1,9})?(?![0-9])"
    r"|[0-9]{1,18}(?:[.,][0-9]{1,9}){0,9}(?![0-9]))"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|ère|e|ème)\b")
_GROUPED = {
    separator: re.compile(
        rf"[1-9][0-9]{{0,2}}(?:{re.escape(separator)}[0-9]{{2}})*(?:{re.escape(separator)}[0-9]{{3}})+"
    )
    for separator in ".,"
}


def readings(spelled: str, *, money: bool = False) -> frozenset[Fraction]:
    """The numbers that digits with separators may mean; none for a label such as `1.2.3`."""
    digits = re.sub(r"[ \u00a0\u202f\u2009'’]", "", spelled)
    marks = [char for char in digits if char in ".,"]
    if len(set(marks)) == 2:
        last = marks[-1]
        whole, _, part = digits.rpartition(last)
        other = "," if last == "." else "."
        if marks.count(last) > 1 or not _GROUPED[other].fullmatch(whole):
            return frozenset()
        return frozenset({Fraction(f"{whole.replace(other, '')}.{part}")})
    if not marks:
        return frozenset({Fraction(digits)})
    separator = marks[0]
    grouped = _GROUPED[separator].fullmatch(digits) is not None
    found = {Fraction(digits.replace(separator, ""))} if grouped else set()
    # With a comma three digits are a group; with a point they may be decimals, but hardly of a larger sum of money.
    if len(marks) == 1 and not (grouped and (separator == "," or (money and digits.index(".") > 1))):
        found.add(Fraction(digits.replace(",", ".")))
    return frozenset(found)


# ── dates and times of day ───────────────────────────────────────────────────────────────────────────────────────────

_MONTH_NAMES = (
    "january|jan|januar|jänner|janvier|janv|enero|gennaio|januari",
    "february|feb|februar|février|févr|febrero|febbraio|februari",
    "march|mar|märz|mrz|mars|marzo|maart",
    "april|apr|avril|abril|aprile",
    "may|mai|mayo|maggio|mei",
    "june|jun|juni|juin|junio|giugno",
    "july|jul|juli|juillet|julio|luglio",
    "august|aug|août|agosto|augustus",
    "september|sep|sept|septembre|septiembre|settembre",
    "october|oct|oktober|okt|octobre|octubre|ottobre",
    "november|nov|novembre|noviembre",
    "december|dec|dezember|dez|décembre|déc|diciembre|dicembre",
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split("|")}
_MONTH = rf"(?i:(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))}))\b\.?"
_YEAR = r"(?P<year>(?:1[89]|20|21)[0-9]{2})(?![0-9])"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th|er|\.)?"
_DATES = tuple(
    re.compile(rf"{_NOT_BEFORE}{pattern}")
    for pattern in (
        rf"{_YEAR}(?P<mark>[-/.])(?P<m>[01]?[0-9])(?P=mark)(?P<day>[0-3]?[0-9])(?![0-9])(?:T(?=[0-9]))?",
        r"(?P<day>[0-3]?[0-9])\.\s?(?P<m>[01]?[0-9])\.(?:\s?(?P<year>(?:1[89]|20|21)?[0-9]{2})(?![0-9]))?(?![0-9])",
        r"(?P<a>[0-3]?[0-9])(?P<mark>[/-])(?P<b>[0-3]?[0-9])(?P=mark)(?P<year>(?:1[89]|20|21)?[0-9]{2})(?![0-9])",
        rf"{_DAY}\s+(?:of\s+|de\s+)?{_MONTH}(?:,?\s+(?:de\s+)?{_YEAR})?",
        rf"{_MONTH}\s+{_YEAR}",
        rf"{_MONTH}\s+{_DAY}(?![0-9.,]*[0-9])(?:,?\s+{_YEAR})?",
    )
)
_MONTH_ALONE = re.compile(rf"{_NOT_BEFORE}{_MONTH}")  # of a source: its heading may say the year
_DAY_AND_MONTH = re.compile(r"([0-9]{1,2}\.[0-9]{1,2})\.")
# `12/2026`, `2026-12`; of a source they may be numbers, too.
_NUMERIC_MONTHS = tuple(
    re.compile(rf"{_NOT_BEFORE}{pattern}(?![-/.]?[0-9])(?!\w)")
    for pattern in (rf"{_YEAR}[-/–](?P<m>0[1-9]|1[0-2])", rf"(?P<m>0?[1-9]|1[0-2])/{_YEAR}")
)
_TIMES_OF_DAY = re.compile(
    rf"(?:(?<=[0-9]T)|(?<=[0-9][ap]m-)|(?<=[0-9] [ap]m-)|(?<=Uhr-)|{_NOT_BEFORE})"
    r"(?:(?P<h>[0-2]?[0-9]):(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9])(?:\.[0-9]+)?Z?)?(?![0-9:])"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?|\s?(?:Uhr|h)\b)?"
    r"|(?P<h2>[0-2]?[0-9])(?:[.](?P<m2>[0-5][0-9]))?\s?(?P<half2>[ap])\.?m\b\.?"
    r"|(?P<h3>[0-2]?[0-9])(?:[.](?P<m3>[0-5][0-9]))?\s?Uhr\b)"
)

# `19h30`: in French, and a length of time as well.
_HOURS_AND_MINUTES = re.compile(rf"{_NOT_BEFORE}(?P<hour>[0-2]?[0-9])\s?h\s?(?P<minute>[0-5][0-9])(?!\w)(?!\sd[e'’])")
_AT = re.compile(r"\b(?:à|dès|vers|avant|après|at|from|until|um|ab)\s\Z")
_NOON = 12
_HOUR = re.compile(r"([0-2]?[0-9])(?:[.:]([0-5][0-9]))?")


def _dated(match: re.Match[str]) -> frozenset[tuple[int, int, int]]:
    """The readings of a date; none for what is none."""
    found = match.groupdict()
    year = int(found.get("year") or 0)
    year += 2000 if 0 < year < 100 else 0
    if found.get("a"):
        a, b = int(found["a"]), int(found["b"])
        pairs = [(b, a), (a, b)]
    else:
        name = found.get("month")
        pairs = [(_MONTHS[name.lower()] if name else int(found["m"]), int(found.get("day") or 0))]
    small_may = (found.get("month") or "") in ("may", "mar", "march", "mars", "mai")  # words of other meanings, too
    if (small_may and match["month"] in ("may", "mar")) or (found.get("day") == "0"):
        return frozenset()
    return frozenset((year, month, day) for month, day in pairs if 1 <= month <= 12 and 0 <= day <= 31)


def _minutes(match: re.Match[str]) -> frozenset[Fraction]:
    """The minutes since midnight; two readings of `3:30`, which may be in the afternoon."""
    spelled = match["h"] or match["h2"] or match["h3"]
    hour = int(spelled)
    minute = int(match["m"] or match["m2"] or match["m3"] or 0) + Fraction(int(match["s"] or 0), 60)
    half = (match["half"] or match["half2"] or "").lower()
    if half:
        return frozenset({Fraction((hour % 12 + (12 if half == "p" else 0)) * 60 + minute)})
    if hour == 24:
        return frozenset({Fraction(0), Fraction(1440)})
    halves = (0, 720) if hour < 13 and spelled[0] != "0" else (0,)
    return frozenset(Fraction((hour * 60 + minute + half) % 1440) for half in halves) if hour < 24 else frozenset()


def _hours_and_minutes(text: str, *, said: bool) -> Iterator[Figure]:
    """`19h30` as a time of day, and in a source also as a length of time. A writer's is one in the afternoon or behind
    an `à`."""
    for match in _HOURS_AND_MINUTES.finditer(text):
        hour, values = int(match["hour"]), frozenset({Fraction(int(match["hour"]) * 60 + int(match["minute"]))})
        if hour < 24 and (not said or hour > _NOON or _AT.search(text, max(0, match.start() - 8), match.start())):
            yield Figure(*match.span(), match[0], values, values, "clock", kind="time")
        if not said:
            yield Figure(*match.span(), match[0], values, values, "minute")


def _hours_of_ranges(text: str, found: Sequence[Figure], *, said: bool) -> dict[int, Figure]:
    """The numbers before a time of day that are such times, by their places in `found`: the 9 of `9–17 Uhr`, and both numbers
    before that of `8–12 und 13–17 Uhr`."""
    times: dict[int, Figure] = {}
    for at in range(len(found) - 2, -1, -1):
        figure = found[at]
        following = times.get(at + 1) or found[at + 1]
        if following.kind != "time" or figure.kind == "time" or figure.unit:
            continue
        spelled = _HOUR.fullmatch(figure.text)
        joined = _JOINED.fullmatch(text[figure.end : following.start])
        # `Room 9 – 17 Uhr`, `the 3 and 17 Uhr`: a writer's number stays one in doubt.
        apart = joined and (joined[0] in (" - ", " – ", " — ") or (joined["and"] and at + 1 not in times))
        if spelled and joined and not (said and apart) and int(spelled[1]) < 24:
            minutes = int(spelled[1]) * 60 + int(spelled[2] or 0)
            halves = {Fraction(minutes), Fraction((minutes + 720) % 1440)} if minutes < 780 else {Fraction(minutes)}
            earlier = {value for value in halves if value < max(following.values)}
            if earlier and following.text.lower().rstrip(".").endswith("m"):
                earlier = {max(earlier)}  # `2–4 pm`, `10–4 pm`
            values = frozenset(earlier or halves)
            times[at] = replace(figure, values=values, bare=values, unit="clock", kind="time", noun="", per="")
    return times


# ── numbers in letters ───────────────────────────────────────────────────────────────────────────────────────────────

_LANGUAGES = {
    "en": "the of and is to in that for it with are was not than",
    "de": "der die das und ist nicht ein eine den dem von mit zu auf für des",
    "fr": "le la les des et est une du que pour dans pas au",
    "es": "el los las y es una del que para por con no",
    "it": "il gli e è una del che per con non di della",
    "nl": "de het een en is van niet voor met op dat",
}
_SMALL_WORDS = {language: frozenset(words.split()) for language, words in _LANGUAGES.items()}
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[^\w\s]")
_LANGUAGE_CHARS = 4_000


@lru_cache(maxsize=64)
def language_of(text: str, otherwise: str = "en") -> str:
    """The language whose small words a text has most of; `otherwise` for a text without any."""
    words = re.findall(r"[^\W\d_]+", text[:_LANGUAGE_CHARS].lower())
    counts = {each: sum(word in small for word in words) for each, small in _SMALL_WORDS.items()}
    best = max(counts, key=lambda each: counts[each])
    return best if counts[best] else otherwise


@dataclass
class _Token:
    """A word as the reader of numbers wants it."""

    start: int
    end: int
    word: str

    def text(self) -> str:
        return self.word

    def nt_separated(self, previous: _Token) -> bool:
        return self.start - previous.end > 1

    def not_a_number_part(self) -> bool:
        return False


def _in_letters(text: str, language: str) -> Iterator[Figure]:
    from text_to_num import find_numbers  # not at the top: only a decision that cites needs it

    tokens = [_Token(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
    for found in find_numbers(tokens, language, 0):
        start, end = tokens[found.start].start, tokens[found.end - 1].end
        if not found.is_ordinal:
            yield Figure(start, end, text[start:end], frozenset({Fraction(str(found.value))}), worded=True)


def _in_other_languages(text: str, language: str) -> Iterator[Figure]:
    """Number words of lines in another language than that of their document."""
    at = 0
    for line in text.split("\n"):
        own = language_of(line, language)
        if own != language:
            for figure in _in_letters(line, own):
                start, end = at + figure.start, at + figure.end
                yield _measured(text, replace(figure, start=start, end=end), said=False)
        at += len(line) + 1


_PARTS = {
    "half": 2,
    "third": 3,
    "drittel": 3,
    "quarter": 4,
    "viertel": 4,
    "fifth": 5,
    "fünftel": 5,
    "tenth": 10,
    "zehntel": 10,
}
_SHARE = re.compile(
    r"\bhalf(?= (?:of|the)\b)|(?<=\bby )half\b|\bdie hälfte\b"
    r"|\b(?P<many>an?|one|two|three|eine?[mn]?|zwei|drei)[ -](?P<part>third|quarter|fifth|tenth)s?\b(?= of (?!an hour\b))"
    r"|(?<=\bby )(?:a|one) (?P<whole>third|quarter|fifth|tenth)\b"
    r"|\b(?P<viele>ein(?:em)?|zwei|drei) (?P<teil>drittel|viertel|fünftel|zehntel)n?\b",
    re.IGNORECASE,
)


def _shares(text: str) -> Iterator[Figure]:
    """`half of`, `two thirds of`: so many in a hundred, exact and as one rounds it."""
    for match in _SHARE.finditer(text):
        many = {"two": 2, "zwei": 2, "three": 3, "drei": 3}.get((match["many"] or match["viele"] or "").lower(), 1)
        part = Fraction(many, _PARTS[(match["part"] or match["whole"] or match["teil"] or "half").lower()])
        values = frozenset(
            {100 * part, *(Fraction(round(10**places * 100 * part), 10**places) for places in (0, 1, 2))}
        )
        yield Figure(*match.span(), match[0], values, frozenset({part}), "%", worded=True)


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────

_HEDGE = re.compile(
    r"(?:(?P<about>\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|some|rund|etwa|ungefähr|environ|nearly|almost"
    r"|close to|knapp|fast)|[~≈])|(?P<over>\b(?:over|more than|above|exceeds|exceeding|at least|über|mehr als|mindestens|plus de)"
    r"|[>≥])|(?P<under>\b(?:under|less than|below|fewer than|at most|unter|weniger als|höchstens|moins de)|[<≤]))"
    rf"\s*(?:€|\$|£|¥|₹|{_CODES})?\s*\Z",
    re.IGNORECASE,
)
_HEDGE_CHARS = 30
# Numbers of the council's own counting, and of places that a citation names.
_LABELLED = re.compile(
    r"\b(?:option|step|point|round|phase|item|question|member|line|lines|page|pages|table|figure|claim|schritt|punkt|zeilen?"
    r"|seiten?|runde|frage|p\.|pp\.|ll?\.|z\.)\s*(?:(?:no|nr)\.\s*)?(?:[0-9]+\s*(?:[-–—,]|and|und|to|bis)\s*)*\Z",
    re.IGNORECASE,
)
_SIGN = re.compile(r"(?:(?<![^\s|;,:(\[\"'“„>*_€$£])(?P<sign>[-+–])|\b(?P<minus>minus|moins) )\Z", re.IGNORECASE)
_RANGE = re.compile(r"[0-9]\s*[^\s:;,|]{0,4}\s[-–]\Z")  # `2 °C –8 °C`
_OPENS, _CLOSES = re.compile(r"(?:[|\t]\s*|[;\"])\(\s*\Z"), re.compile(r"\s*\)\s*?(?:[|\t;\"\n]|\Z)")  # `| (1,200) |`
_SIGN_CHARS = 60
# Beside one of these, degrees without a sign may be meant to be below zero.
_BELOW = re.compile(
    r"minus|loss|lost|losing|negativ|below|low|short|f[ae]ll|declin|decreas|reduc|drop|down|less|under|cold|cool|frost|freez|frozen"
    r"|by\b|differ|between|not?\b|without|verl(?:ust|or|ier)|fehl|unter|niedr|tief|gesunken|s[ai]nk|rückgang|weniger|kalt|kälte"
    r"|kühl|frier|gefror|um\b|zwischen|kein|nicht|ohne|perte|négati|moins|baiss|sous|inférieur|froid|gel|entre|sans|pas\b|aucun",
    re.IGNORECASE,
)
_NOUN = re.compile(r"[\s\u00a0*_-]*([^\W\d_]{2,})")
_LIST_MARK = re.compile(r"(?m)^[ \t>]*(?:#{1,6}[ \t]+)?(?:[-+*][ \t]+)?[0-9]{1,3}(?:\.[0-9]{1,3})*[.)](?=[ \t])")
_PER = re.compile(
    r"\s*(?:(?P<year>(?:a|per|each|every|im|pro|je|par|/)\s*(?:year|jahr|an)\b|annually|yearly|jährlich)"
    r"|(?P<month>(?:a|per|each|every|im|pro|je|par|/)\s*(?:month|monat|mois)\b|monthly|monatlich))",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\s*(?:[-–—]|to|bis|à|(?P<and>and|und|et))\s*")
_ADDED = re.compile(r"\s+(?:(?:and|und|et)\s+)?")


def figures(text: str, language: str = "", *, said: bool = False) -> list[Figure]:
    """The figures of a text, in order. `language` is that of number words; empty: its own. `said`: the text is a writer's
    own, whose numbers of options and steps are no figures, and whose figures may be rough."""
    text = text.replace("−", "-")
    taken: list[tuple[int, int]] = [match.span() for match in _LIST_MARK.finditer(text)]
    found: list[Figure] = []

    def is_free(start: int, end: int) -> bool:
        at = bisect_left(taken, (start, start))
        before = taken[at - 1] if at else (0, 0)
        return before[1] <= start and (at == len(taken) or taken[at][0] >= end)

    def take(figure: Figure) -> None:
        taken.insert(bisect_left(taken, (figure.start, figure.end)), (figure.start, figure.end))
        found.append(figure)

    for pattern in _DATES:
        for match in pattern.finditer(text):
            dates = _dated(match)
            if dates and is_free(*match.span()):
                short = _DAY_AND_MONTH.fullmatch(match[0])  # `12.5.` at the end of a sentence may be a number
                values = readings(short[1]) if short else frozenset()
                take(Figure(*match.span(), match[0], values, values, dates=dates, kind="date"))
    for pattern in _NUMERIC_MONTHS if said else ():
        for match in pattern.finditer(text):
            if is_free(*match.span()):
                take(Figure(*match.span(), match[0], dates=_dated(match), kind="date"))
    for hour in _hours_and_minutes(text, said=True) if said else ():
        take(hour)
    for match in _TIMES_OF_DAY.finditer(text):
        if (minutes := _minutes(match)) and is_free(*match.span()):
            take(Figure(*match.span(), match[0], minutes, minutes, "clock", kind="time"))
    for match in _DIGITS.finditer(text):
        if said and _LABELLED.search(text, max(0, match.start() - 40), match.start()):
            continue
        if is_free(*match.span()) and (figure := _number(text, match, said=said)) is not None:
            take(figure)
    for figure in _shares(text):
        if is_free(figure.start, figure.end):
            take(figure)
    for figure in _in_letters(text, language or language_of(text)):
        if is_free(figure.start, figure.end):
            take(_measured(text, figure, said=said))
    for match in () if said else _MONTH_ALONE.finditer(text):
        if is_free(*match.span()) and (dates := _dated(match)):
            take(Figure(*match.span(), match[0], dates=dates, kind="date"))
    found.sort(key=lambda figure: figure.start)
    hours = _hours_of_ranges(text, found, said=said)
    if said:
        found = [hours.get(at, figure) for at, figure in enumerate(found)]
    for at, (figure, following) in enumerate(pairwise(found)):
        if _JOINED.fullmatch(text[figure.end : following.start]):
            found[at] = _begun_range(figure, following)
    lengths = list(_lengths(text, found))
    if said:
        parts = {part.start for _, *both in lengths for part in both}
        found = [figure for figure in found if figure.start not in parts]
        return sorted([*found, *(length for length, *_ in lengths)], key=lambda figure: figure.start)
    months = (match for pattern in _NUMERIC_MONTHS for match in pattern.finditer(text))
    found += [Figure(*match.span(), match[0], dates=_dated(match), kind="date") for match in months]
    found += _in_other_languages(text, language or language_of(text))
    return [*found, *hours.values(), *_hours_and_minutes(text, said=False), *(length for length, *_ in lengths)]


def _lengths(text: str, found: Sequence[Figure]) -> Iterator[tuple[Figure, Figure, Figure]]:
    """`9 hours and 45 minutes` as one length of time, and its two parts. The second is in a smaller unit."""
    for one, other in pairwise(found):
        if not (one.kind == other.kind == "number" and one.unit == other.unit and one.unit in ("minute", "month")):
            continue
        smaller = max(one.values) * max(other.bare) > max(other.values) * max(one.bare)
        if smaller and _ADDED.fullmatch(text, one.end, other.start):
            whole = frozenset({max(one.values) + max(other.values)})
            written = text[one.start : other.end]
            yield replace(one, end=other.end, text=written, values=whole, bare=whole, noun=other.noun), one, other


def _begun_range(figure: Figure, following: Figure) -> Figure:
    """The first figure of a range, with what only the second one says: `10 to 14 May`, `2–3 million`, `10–14 days`."""
    days = [int(day) for day in figure.values if day <= 31 and day.denominator == 1]
    if figure.kind == "number" and not figure.unit and days and following.dates:
        dates = frozenset((year, month, day) for year, month, last in following.dates for day in days if last)
        return replace(figure, values=NONE, bare=NONE, dates=dates, kind="date") if dates else figure
    if figure.unit or not following.unit or figure.kind != following.kind:
        return figure
    values = figure.values
    bare = next((readings(each[0]) for each in _DIGITS.finditer(following.text)), frozenset())
    if bare and following.values:
        factor = max(following.values) / max(max(bare), Fraction(1, 10**9))
        values |= {value * factor for value in values}
    return replace(figure, unit=following.unit, values=values)


def in_thousands(head: str, rows: str, language: str) -> Iterator[Figure]:
    """The figures of rows that have no unit as thousands of euros, where the head of their table says that."""
    if _IN_THOUSANDS.search(head):
        for figure in figures(rows, language):
            if figure.kind == "number" and not figure.unit and not figure.worded:
                values = frozenset(1_000 * value for value in figure.values)
                yield replace(figure, values=values, bare=values, unit="EUR")


def _number(text: str, match: re.Match[str], *, said: bool) -> Figure | None:
    """A number in digits; None for a part of a name."""
    start, end = match.span()
    spelled = match[0]
    money = _CURRENCY_BEFORE.search(text, max(0, start - 8), start) is not None
    figure = _measured(text, Figure(start, end, spelled, readings(spelled, money=money)), said=said)
    if not money and figure.unit in CURRENCIES:
        largest = max(readings(spelled), default=Fraction(0))
        factor = max(figure.values) / largest if largest else Fraction(1)
        # Without the readings that money does not have.
        values = frozenset(value * factor for value in readings(spelled, money=True)) or figure.values
        figure = replace(figure, values=values, bare=values if figure.bare == figure.values else values | figure.bare)
    if not figure.values:
        return replace(figure, kind="label")
    following = text[figure.end : figure.end + 1]
    if figure.end == end and (following.isalnum() or following == "_"):
        ordinal = _ORDINAL.match(text, end)
        return replace(figure, end=ordinal.end(), text=text[start : ordinal.end()]) if ordinal else None
    return figure


def _measured(text: str, figure: Figure, *, said: bool) -> Figure:
    """The figure with its multiplier, unit, noun and what is left open about it."""
    start, end, values, unit, large = figure.start, figure.end, figure.values, "", 1
    before = _CURRENCY_BEFORE.search(text, max(0, start - 8), start)
    if before is not None:
        unit = before.lastgroup or ""
        start = before.start()
        large = _LARGE.get(before[0][0], 1) if unit in ("EUR", "USD", "CHF") else 1
        values = frozenset(value * large for value in values)
    multiplier = _MULTIPLIER.match(text, end)
    word = multiplier and (
        multiplier["word"]
        or multiplier["letter"]
        or (multiplier["m"] if unit or _MONEY.match(text, multiplier.end()) else "")
    )
    if multiplier is not None and word:
        values, end = frozenset(value * _TIMES[word.lower()] for value in values), multiplier.end()
    bare = values if large == 1 else values | figure.values
    measured = _UNIT.match(text, end)
    # `5 t-shirts` has none: a hyphen joins the letter to a word.
    joins = measured is not None and measured[0].strip().isalpha() and text[measured.end() : measured.end() + 1] == "-"
    if not unit and measured is not None and not joins:
        unit, each, *_ = _UNITS[int((measured.lastgroup or "u0")[1:])]
        values, end = frozenset(value * Fraction(each) for value in values), measured.end()
    elif unit and (again := _CODE.match(text, end)):
        end = again.end()
    noun, per = _NOUN.match(text, end), _PER.match(text, end)
    name = noun[1].casefold() if noun else ""
    sign: Literal["", "+", "-"] = ""
    if signed := _SIGN.search(text, max(0, start - 8), start):
        sign = "+" if signed["sign"] == "+" else "" if _RANGE.search(text, max(0, start - 16), start) else "-"
    elif not said and _OPENS.search(text, max(0, start - 8), start) and _CLOSES.match(text, end):
        sign = "-"  # as books of account write it
    elif unit == "°C" or name in DEGREES:
        sign = "" if _BELOW.search(text, max(0, start - _SIGN_CHARS), end + _SIGN_CHARS) else "+"
    hedge = _HEDGE.search(text, max(0, start - _HEDGE_CHARS), start) if said else None
    rough: Hedge = "" if hedge is None else "about" if hedge["about"] else "over" if hedge["over"] else "under"
    return replace(
        figure, start=start, end=end, text=text[start:end], values=values, bare=bare, unit=unit, rough=rough,
        noun=name, per=(per.lastgroup or "") if per else "", sign=sign,
    )  # fmt: skip


def dates_as_numbers(figure: Figure) -> Iterator[int]:
    """The year and the day of a date, for text that names one alone."""
    yield from (part for date in figure.dates for part in (date[0], date[2]) if part)


def same_date(one: Sequence[int], other: Sequence[int]) -> bool:
    """True when `other` says all that `one` does, a year that it leaves out aside."""
    return one[1] == other[1] and (not one[2] or one[2] == other[2]) and (not one[0] or one[0] == (other[0] or one[0]))
