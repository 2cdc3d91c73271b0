"""Dates and times of day in a text, whatever their spelling. Pure, linear in the text."""

from __future__ import annotations

import re
from calendar import monthrange, weekday
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from council.deliberation.quotations.figure import NONE, Figure
from council.deliberation.quotations.number_words import ENGLISH_NUMBERS, GERMAN_NUMBERS

_NOT_BEFORE = r"(?<![\w.,/#^\\])(?<![^0-9.]-)(?<!^-)(?<![A-Za-z]['’])"
_TO = r"[-–—]|to|through|until|bis(?: zum)?|auf|à|au?|al|hasta|fino al|tot|t/m"  # between the two ends of a range
JOINED = re.compile(rf"(?:\.(?= ?(?:bis|und|[-–—])))?\s*(?:{_TO}|(?P<and>and|und|et|y|e))\s*")
_WEEKDAYS = (  # the short ones only with a capital letter, for others are words: `in the sun. 7 December`
    r"monday|montag|lundi|lunes|lunedì|maandag|(?-i:Mon\.?|Mo\.)",
    r"tuesday|dienstag|mardi|martes|martedì|dinsdag|(?-i:Tues?\.?|Di\.)",
    r"wednesday|mittwoch|mercredi|miércoles|mercoledì|woensdag|(?-i:Wed\.?|Mi\.)",
    r"thursday|donnerstag|jeudi|jueves|giovedì|donderdag|(?-i:Thu(?:rs?)?\.?|Do\.)",
    r"friday|freitag|vendredi|viernes|venerdì|vrijdag|(?-i:Fri\.?|Fr\.)",
    r"saturday|samstag|sonnabend|samedi|sábado|sabato|zaterdag|(?-i:Sat\.?|Sa\.)",
    r"sunday|sonntag|dimanche|domingo|domenica|zondag|(?-i:Sun\.?|So\.)",
)  # fmt: skip
_ARTICLE = "the|den|dem|der|le|el|il|la"
_WEEKDAY = re.compile(  # `Mo., 5.5.2026`, `Mo, 5.5.2026`, and not `So, 5 May is fixed`
    re.sub(r"(Mo|Di|Mi|Do|Fr|Sa)\\\.\)", r"\1(?:\\.|(?=,)))", rf"\b(?:{'|'.join(f'({names})' for names in _WEEKDAYS)})")
    + rf",?\s(?:(?:{_ARTICLE})\s)?\Z",
    re.IGNORECASE,
)
_WEEKDAY_CHARS = 16
_WEEKDAY_NAMED = re.compile(  # of a source: `Mo–Fr`, `Mondays`
    rf"\b(?:{'|'.join(f'({names})' for names in _WEEKDAYS)})s?(?![^\W_])".replace(r"\.)", r"\.?)"), re.IGNORECASE
)
_WEEKDAY_SAID = re.compile(
    r"(?:\b(?:(?:on|by|until|from|since|before|after|every|each|next|last|this|only)(?: an?)?|am|bis|ab|seit|vor|nach"
    r"|jeden|nur|le|chaque|dès|avant|après|el|los|cada|il|la|ogni|op|elke)\s|(?=\b(?-i:[a-z]+(?:tag|woch)s)\b))"
    rf"(?P<day>{_WEEKDAY_NAMED.pattern})(?!,?\s(?:(?:{_ARTICLE})\s)?(?:[0-9]|(?-i:[^\W\d_a-zà-ÿ])))",
    re.IGNORECASE,
)
_WEEKDAY_BEHIND = re.compile(  # `5 May 2025, a Tuesday`, `5 May 2025 (Tuesday)`
    rf"(?:,?\s(?:an?|ein(?:e[mn])?|une?|un|uno|een)\s|\s\(){_WEEKDAY_NAMED.pattern}(?=\s*(?:[.,;:)\[\n]|\Z))",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre|tra|fra|tussen) (?:el |il |le )?\Z", re.IGNORECASE)
_DAY_RANGE = re.compile(rf"{JOINED.pattern}(?:(?:{_ARTICLE})\s)?")
_ANY_DAY = re.compile(
    r"\b(?:daily|every day|week(?:day|end)|täglich|jeden tag|werktag|wochen(?:ende|tag)|tous les jours|chaque jour|todos los días"
    r"|diario|laborable|fin de semana|tutti i giorni|ogni giorno|feriali|fine settimana|dagelijks|werkdag|elke dag"
    r"|except|closed|außer|geschlossen|ruhetag|sauf|fermé|excepto|salvo|cerrado|tranne|eccetto|chius[oa]|behalve|gesloten)",
    re.IGNORECASE,
)
_FULL_NAME = 5  # letters of a weekday; of a shorter one, such as `Do`, it is not certain that it is one
_MAX_MONTHS = 240  # of a range
_LISTED = re.compile(
    rf"[^\S\n]{{0,8}},?[^\S\n]{{0,8}}(?:(?:(?P<range>{_TO})|and|or|und|oder|et)[^\S\n]{{0,8}})?(?:(?:on|am|le)[^\S\n]{{1,8}})?"
)
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
_ENGLISH_DAYS = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth"
    "|seventeenth|eighteenth|nineteenth|twentieth|twenty-first|twenty-second|twenty-third|twenty-fourth|twenty-fifth"
    "|twenty-sixth|twenty-seventh|twenty-eighth|twenty-ninth|thirtieth|thirty-first"
)
_GERMAN_DAYS = (
    "erste|zweite|dritte|vierte|fünfte|sechste|siebte|achte|neunte|zehnte|elfte|zwölfte|dreizehnte|vierzehnte|fünfzehnte"
    "|sechzehnte|siebzehnte|achtzehnte|neunzehnte|zwanzigste|einundzwanzigste|zweiundzwanzigste|dreiundzwanzigste"
    "|vierundzwanzigste|fünfundzwanzigste|sechsundzwanzigste|siebenundzwanzigste|achtundzwanzigste|neunundzwanzigste"
    "|dreißigste|einunddreißigste"
)
_DAY_WORDS = {
    word: day
    for words in (_ENGLISH_DAYS, _GERMAN_DAYS, "premier", "primo", "primero")
    for day, word in enumerate(words.split("|"), 1)
}
_DAY_IN_WORDS = (  # `the second May meeting` is no date, and `the first of May's meetings` neither
    rf"(?i:(?P<nth>{_ENGLISH_DAYS.replace('-', '[- ]')})\s+of|(?P<nte>{_GERMAN_DAYS})[nr]?"
    r"|(?P<premier>premier|primo|primero)(?:\s+de)?)"
)
_DATES = (
    re.compile(  # no space parts it from other words
        rf"(?<![0-9])(?:{_YEAR}\s?[年년]\s?)?(?P<m>[01]?[0-9])\s?[月월](?:\s?(?P<day>[0-3]?[0-9])\s?[日일])?(?![間간])"
    ),
    *(
        re.compile(rf"{_NOT_BEFORE}{pattern}")
        for pattern in (
            rf"{_YEAR}(?P<mark>[-/.])(?P<m>[01]?[0-9])(?P=mark)(?P<day>[0-3]?[0-9])(?![0-9])(?:T(?=[0-9]))?",
            r"(?P<day>[0-3]?[0-9])\.\s?(?P<m>[01]?[0-9])\.(?:\s?(?P<year>(?:1[89]|20|21)?[0-9]{2})(?![0-9]))?(?![0-9])",
            r"(?P<a>[0-3]?[0-9])(?P<mark>[/-])(?P<b>[0-3]?[0-9])(?P=mark)(?P<year>(?:1[89]|20|21)?[0-9]{2})(?![0-9])",
            r"(?:(?<=on )|(?<=am )|(?<=by )|(?<=to )|(?<=from )|(?<=until )|(?<=bis )|(?<=vom )|(?<=zum )|(?<=le )|(?<=before )"
            r"|(?<=after ))(?P<day>[0-3]?[0-9])/(?P<m>0[1-9]|1[0-2])(?![0-9/]|[.,][0-9])",
            rf"{_DAY}\s+(?:of\s+|de\s+)?{_MONTH}(?:,?\s+(?:de\s+)?{_YEAR})?",
            rf"{_DAY_IN_WORDS}\s+{_MONTH}(?!['’]s|-\w)(?:,?\s+(?:de\s+)?{_YEAR})?",
            rf"{_MONTH}\s+{_YEAR}",
            rf"{_MONTH}\s+(?P<first>[0-3]?[0-9])(?:st|nd|rd|th)?\s?(?:[-–—]|to|through|until)\s?{_DAY}"  # `April 6 to 17`
            rf"(?![0-9.,:]*[0-9])(?!\s?(?:h|Uhr|[ap]\.?m)\b)(?:,?\s+{_YEAR})?",
            rf"{_MONTH}\s+{_DAY}(?![0-9.,]*[0-9])(?:,?\s+{_YEAR})?",
        )
    ),
)
_MONTH_ALONE = re.compile(rf"(?<![\w/#^\\]){_MONTH}")  # its heading may say the year
_MONTH_IN_WORD = re.compile(  # `Septemberrechnung`
    rf"{_NOT_BEFORE}(?i:(?P<month>{'|'.join(name for name in _MONTHS if len(name) > 3)}))(?=[^\W\d_]{{4}})"
)
# A writer's month alone stands behind one of these. Elsewhere `may`, `March` and `June` may be a verb, a walk and a name.
_MONTH_CUE = re.compile(
    r"(?:\b(?:(?P<german>im|ab|bis|seit|vom|zum|anfang|mitte|ende)|in|by|from|since|until|till|to|through|during|before|after|of|for"
    r"|between|next|last|every|each|this|early|late|mid|the|our|its|vor|nach|der|die|en|de|dès|depuis|avant|après|fin|début|mi|à"
    r"|a|da|per|desde|hasta|entre|tra|fine|inizio|vanaf|tot|eind|begin)[ \u00a0-]|\bd['’])\Z",
    re.IGNORECASE,
)
_MONTH_CUE_CHARS = 10
_NO_MONTHS = {
    "Mars", "march", "august", "sept", "jan", "feb", "apr", "jun", "jul", "aug", "sep", "oct", "okt", "nov", "dec", "dez", "mrz",
}  # fmt: skip
_CAPITAL = re.compile(r"\s+[^\W\d_a-zà-ÿ]")
_END = re.compile(r"\b(?:end of|ende|fin|eind|fine)\s\Z", re.IGNORECASE)  # of a month: its last day
_END_CHARS = 8
_DAY_AND_MONTH = re.compile(r"([0-9]{1,2}\.[0-9]{1,2})\.")
# `12/2026`, `2026-12`; of a source they may be numbers, too.
_NUMERIC_MONTHS = tuple(
    re.compile(rf"{_NOT_BEFORE}{pattern}(?![-/.]?[0-9])(?!\w)")
    for pattern in (rf"{_YEAR}[-/–](?P<m>0[1-9]|1[0-2])", rf"(?P<m>0?[1-9]|1[0-2])/{_YEAR}")
)
_QUARTERS = (
    "first|1st|erste[nrs]?|premier|1er|primer|primo|eerste", "second|2nd|zweite[nrs]?|deuxième|2e|segundo|secondo|tweede",
    "third|3rd|dritte[nrs]?|troisième|3e|tercer|terzo|derde", "fourth|4th|vierte[nrs]?|quatrième|4e|cuarto|quarto|vierde",
)  # fmt: skip
_QUARTER = re.compile(
    r"\b(?:(?P<before>(?:19|20)[0-9]{2})[ /-]?)?(?:"
    + "|".join(
        rf"(?P<q{number}>(?:{words}|{number}\.)[ -](?:quarter|quartal|trimestre|kwartaal)s?|(?:quarter |quartal |Q){number})"
        for number, words in enumerate(_QUARTERS, 1)
    )
    + rf")(?![^\W_])(?:(?:,? |[/_-])(?:of |de |del |du |des Jahres )?{_YEAR})?",
    re.IGNORECASE,
)
_SEASON = re.compile(rf"{_NOT_BEFORE}((?:19|20)[0-9]{{2}})[/–-](?:19|20)?([0-9]{{2}})(?![\w/-]|[.,][0-9])")
_TIMES_OF_DAY = re.compile(
    rf"(?:(?<=[0-9]T)|(?<=[0-9][ap]m-)|(?<=[0-9] [ap]m-)|(?<=Uhr-)|{_NOT_BEFORE})"
    r"(?:(?P<h>[0-2]?[0-9]):(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9])(?:\.[0-9]+)?Z?)?(?![0-9:])(?!\s(?i:stimmen|votes|voix|votos|voti)\b)"
    r"(?:\s?(?P<half>[ap])(?:m\b|\.m\b\.?)|\s?(?:Uhr|h)\b)?"
    r"|(?P<h2>[0-2]?[0-9])(?:[.](?P<m2>[0-5][0-9]))?\s?(?P<half2>[ap])(?:m\b|\.m\b\.?)"
    r"|(?P<hour>[01]?[0-9])\s?o['’]clock\b"
    r"|(?P<h3>[0-2]?[0-9])(?:[.](?P<m3>[0-5][0-9]))?\s?Uhr\b(?:\s(?P<m4>[0-5][0-9])\b(?![.,:]?[0-9]|\s(?!(?:bis|und|ab|in|an)\b)[^\W\d_]))?)"
)
_CLOCK_PARTS = {
    word: minutes
    for words, minutes in (
        ("quarter viertel", 15), ("half halb", 30), ("five fünf", 5), ("ten zehn", 10), ("twenty zwanzig", 20),
        ("twenty-five", 25), ("o'clock", 0),
    )
    for word in words.split()
}  # fmt: skip
_CLOCK_HOURS = {
    word: number
    for words in (ENGLISH_NUMBERS, GERMAN_NUMBERS.replace("ein|", "eins|", 1), "1|2|3|4|5|6|7|8|9|10|11|12")
    for number, word in enumerate(words.split("|")[:12], 1)
}
_HOUR_WORDS = "|".join(sorted(_CLOCK_HOURS, key=len, reverse=True))
_TIMES_IN_WORDS = re.compile(  # `a quarter to three members voted` is none
    r"(?:(?P<cue>\b(?:at|by|from|until|till|to|um|ab|bis|gegen|,) (?:a )?)|\b)"
    r"(?:(?P<part>half|quarter|five|ten|twenty(?:-five)?)(?: minutes)? (?:past|(?<=quarter )(?P<before>to)) "
    rf"(?P<hour>{_HOUR_WORDS})|(?P<teil>viertel|fünf|zehn|zwanzig)(?: minuten)? (?:nach|(?P<vor>vor)) (?P<stunde>{_HOUR_WORDS})"
    rf"|halb (?P<halb>{_HOUR_WORDS}))\b(?! (?:jahr|monat|woche|tag|stunde|minute|prozent|percent))"
    r"(?(cue)|(?=\s*(?:[.,;:)\[]|\Z)|,? (?:in the|at night|am|pm|uhr|and|und|on|o['’]clock|ab)\b))"
    rf"|\b(?P<whole>{_HOUR_WORDS}) o['’]clock\b",
    re.IGNORECASE,
)
_BARE_HOUR = re.compile(  # of a source: `we meet at 3`
    rf"\b(?:at|until|till|um|ab|bis|gegen|à) (?P<hour>[0-9]|1[0-9]|2[0-3]|{_HOUR_WORDS})(?=\s*(?:[.,;)]|\Z))"
)
# `22.58` is a time of day in a line that speaks of one.
_DOTTED = re.compile(r"(?<![\w.,])(?:2[0-3]|[01]?[0-9])\.[0-5][0-9](?![\w.,]*[0-9])(?!\s?(?:€|EUR|%|[hmk]))")
_OF_TIMES = re.compile(
    r"\b(?:trains?|tram|bus(?:es)?|ferry|departs?|departures?|arriv(?:es?|als?)|zug|züge|abfahrt|ankunft|fährt|départs?|arrivées?"
    r"|salidas?|llegadas?|partenz[ae]|arriv[oi])\b(?!.*\b(?:tickets?|fares?|fahrkarte|costs?|kostet|version|section)\b)",
    re.IGNORECASE,
)

# `19h30`, `19.30 h`, `19 h`: a time of day, and a length of time as well; `1 Std. 30` is only that.
_HOURS = re.compile(
    rf"{_NOT_BEFORE}(?P<hour>[0-2]?[0-9])(?:\s?(?:h|(?P<long>(?i:std\.?|stunden?|hours?|hrs?\.?)|heures?))\s?(?P<minute>[0-5][0-9])"
    r"(?(long)(?=\s*(?:[.,;:)\[|\n]|\Z)|\s(?:für|f?or|an?[dm]?|auf|bei|mit|with|at|in|im|on|und|to|zu[mr]|pour|sur|et|each|je)\b)|)|\.(?P<part>[0-5][0-9])\s?h|\s?h)(?!\w)(?!\s(?:de\b|d['’]|min))"
)
_AT = re.compile(r"\b(?:à|dès|vers|avant|après|at|from|until|um|ab|gegen)\s\Z")
_NOON = 12
_HALF_NAMED = re.compile(r"abend|nachmittag|nacht", re.IGNORECASE)  # elsewhere `8 Uhr` is in the morning
_HALF_CHARS = 24
_HOUR = re.compile(r"([0-2]?[0-9])(?:[.:]([0-5][0-9]))?")


def dates(text: str, *, said: bool) -> Iterator[Figure]:
    """Dates, among them those without a year or a day. A writer's weekday of a date is a figure of its own: it may be wrong
    where the date is right."""
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if found := _dated(match):
                short = _DAY_AND_MONTH.fullmatch(match[0])  # `12.5.` at the end of a sentence may be a number
                values = frozenset({Fraction(short[1])}) if short else NONE
                start, end = match.span()
                named = _WEEKDAY.search(text, max(0, start - _WEEKDAY_CHARS), start) or _WEEKDAY_BEHIND.match(text, end)
                falls_on = (named.lastindex or 1) - 1 if named else None
                if said and named:
                    name = named.span(named.lastindex or 0)
                    yield Figure(*name, text[slice(*name)], dates=found, kind="weekday", weekday=falls_on)
                    falls_on = None
                if first := match.groupdict().get("first"):
                    begun = frozenset((year, month, int(first)) for year, month, _ in found if 0 < int(first) <= 31)
                    end_of_first = match.end("first")
                    yield Figure(
                        start, end_of_first, text[start:end_of_first], dates=begun, kind="date", weekday=falls_on
                    )
                    start, falls_on = match.start("day"), None
                yield Figure(start, end, text[start:end], values, values, dates=found, kind="date", weekday=falls_on)


def share_years(text: str, found: list[Figure]) -> None:
    """Gives the days of a list or a range the year behind its last one: `1 March, 1 June and 1 September 2027`. A day that is
    later in the year than the next one lies in the year before; in a list, it may."""
    for at in range(len(found) - 2, -1, -1):
        figure, following = found[at], found[at + 1]
        listed = _LISTED.fullmatch(text, figure.end, following.start)
        if figure.dates and following.dates and listed:
            (year, month, day), (end, *last) = min(figure.dates), max(following.dates)
            if end and not year:
                before = [month, day] > last
                years = {end - before} if listed["range"] else {end, end - before}
                found[at] = replace(figure, dates=frozenset((each, month, day) for each in years))


def weekdays_alone(text: str) -> Iterator[Figure]:
    """A writer's weekdays without a date."""
    for match in _WEEKDAY_SAID.finditer(text):
        if len(match["day"]) >= _FULL_NAME:
            falls_on = next(number for number, name in enumerate(match.groups()[1:]) if name)
            yield Figure(*match.span("day"), match["day"], kind="weekday", weekday=falls_on)


def weekdays_named(text: str, found: Iterable[Figure]) -> set[int]:
    """The weekdays that a text with these figures may mean; none for a text that surely names none."""
    names = list(_WEEKDAY_NAMED.finditer(text))
    if all(len(name[0].rstrip(".")) < _FULL_NAME for name in names):
        return set()
    days = {(name.lastindex or 1) - 1 for name in names}
    for one, other in pairwise(names):
        joined = _DAY_RANGE.fullmatch(text, one.end(), other.start())
        before = max(0, one.start() - _WEEKDAY_CHARS)
        if joined and (not joined["and"] or _BETWEEN.search(text, before, one.start())):
            first, last = (one.lastindex or 1), (other.lastindex or 1)
            days |= {(first - 1 + each) % 7 for each in range((last - first) % 7)}
    falling = [weekdays(figure) for figure in found if any(day for _, _, day in figure.dates)]
    return set(range(7)) if _ANY_DAY.search(text) or not all(falling) else days.union(*falling)


def numeric_months(text: str) -> Iterator[Figure]:
    for pattern in _NUMERIC_MONTHS:
        for match in pattern.finditer(text):
            yield Figure(*match.span(), match[0], dates=_dated(match), kind="date")


def months_alone(text: str, *, said: bool) -> Iterator[Figure]:
    """Months without a day and a year. A writer's stands behind a preposition or another month, and is no first name."""
    last = -1
    for match in _MONTH_ALONE.finditer(text):
        start, end = match.start(), match.end("month") if said else match.end()
        if said:
            cue = _MONTH_CUE.search(text, max(0, start - _MONTH_CUE_CHARS), start)
            listed = last >= 0 and _LISTED.fullmatch(text, last, start) is not None
            named = cue and not cue["german"] and _CAPITAL.match(text, end)
            if not (cue or listed) or named or match["month"] in _NO_MONTHS:
                continue
            last = end
        if found := _dated(match):
            yield Figure(start, end, text[start:end], dates=found, kind="date")
    for match in () if said else _MONTH_IN_WORD.finditer(text):
        yield Figure(*match.span(), match[0], dates=_dated(match), kind="date")


def months_between(text: str, found: Sequence[Figure]) -> Iterator[Figure]:
    """The months of a range of dates: `from 1 August to 31 October` names September, too."""
    for one, other in pairwise(found):
        joined = _LISTED.fullmatch(text, one.end, other.start) if one.dates and other.dates else None
        if joined and joined["range"]:
            (year, month, _), (end, last, _) = min(one.dates), max(other.dates)
            many = (12 * (end - year) if year and end else 12 * (last < month)) + last - month
            months = [divmod(12 * year + month - 1 + each, 12) for each in range(min(many, _MAX_MONTHS) + 1)]
            dates = frozenset((at if year else 0, each + 1, 0) for at, each in months)
            yield Figure(one.start, other.end, text[one.start : other.end], dates=dates, kind="date")


def seasons(text: str, *, said: bool) -> Iterator[Figure]:
    """`2026/27` and `2026/2027` as one label, of a source also the second year."""
    for match in _SEASON.finditer(text):
        if (int(match[1]) + 1) % 100 == int(match[2]):
            yield Figure(*match.span(), f"{match[1]}/{match[2]}", kind="label")
            if not said:
                year = frozenset({Fraction(int(match[1]) + 1)})
                yield Figure(*match.span(2), str(int(match[1]) + 1), year, year)


def quarters(text: str, *, said: bool) -> Iterator[Figure]:
    """The months of a quarter of a year, of a source also its first day and its last. A writer's has a year."""
    for match in _QUARTER.finditer(text):
        year = int(match["year"] or match["before"] or 0)
        if said and not year:
            continue
        last = 3 * next(number for number in range(1, 5) if match[f"q{number}"])
        days = (year, last - 2, 1), (year, last, monthrange(2001, last)[1])
        dates = frozenset((*((year, last - each, 0) for each in range(3)), *(() if said else days)))
        yield Figure(*match.span(), match[0], dates=dates, kind="date")


def times_of_day(text: str) -> Iterator[Figure]:
    """Times in digits and in words: `7.15 pm`, `quarter past seven`, `halb neun`."""
    for match in _TIMES_OF_DAY.finditer(text):
        if minutes := _minutes(match):
            yield Figure(*match.span(), match[0], minutes, minutes, "clock", kind="time")
    for match in _TIMES_IN_WORDS.finditer(text):
        part = (match["part"] or match["teil"] or ("o'clock" if match["whole"] else "half")).lower()
        many = _CLOCK_PARTS[part] * (-1 if match["before"] or match["vor"] or match["halb"] else 1)
        hour = _CLOCK_HOURS[(match["hour"] or match["stunde"] or match["halb"] or match["whole"]).lower()]
        minutes = frozenset(Fraction((hour * 60 + many + half) % 1440) for half in (0, 720))
        yield Figure(*match.span(), match[0], minutes, minutes, "clock", kind="time")


def dotted_times(text: str) -> Iterator[Figure]:
    """`22.58` in the lines of a source that speak of trains or doors; it may be a number, too."""
    for line in re.finditer(r"[^\n]+", text):
        for match in _DOTTED.finditer(text, *line.span()) if _OF_TIMES.search(line[0]) else ():
            hour, minute = match[0].split(".")
            values = frozenset({Fraction(int(hour) * 60 + int(minute))})
            yield Figure(*match.span(), match[0], values, values, "clock", kind="time")


def bare_hours(text: str) -> Iterator[Figure]:
    """`at 3`, which may be a time of day, of the morning or the afternoon."""
    for match in _BARE_HOUR.finditer(text):
        hour = _CLOCK_HOURS.get(match["hour"]) or int(match["hour"])
        values = frozenset(map(Fraction, (hour % 24 * 60, (hour + 12) % 24 * 60)))
        yield Figure(*match.span("hour"), match["hour"], values, values, "clock", kind="time")


def _dated(match: re.Match[str]) -> frozenset[tuple[int, int, int]]:
    """The readings of a date; none for what is none."""
    found = match.groupdict()
    year = int(found.get("year") or 0)
    year += 2000 if 0 < year < 100 else 0
    name = found.get("month")
    if found.get("a"):
        a, b = int(found["a"]), int(found["b"])
        pairs = [(b, a), (a, b)]
    else:
        word = found.get("nth") or found.get("nte") or found.get("premier")
        day = _DAY_WORDS[word.lower().replace(" ", "-")] if word else int(found.get("day") or 0)
        pairs = [(_MONTHS[name.lower()] if name else int(found["m"]), day)]
    month, day = pairs[0]
    ends = name and _END.search(match.string, max(0, match.start() - _END_CHARS), match.start())
    if ends and not day and (year or month != 2):
        pairs.append((month, monthrange(year or 2001, month)[1]))
    small_may = (found.get("month") or "") in ("may", "mar", "march", "mars", "mai")  # words of other meanings, too
    if (small_may and match["month"] in ("may", "mar")) or found.get("day") in ("0", "00"):
        return frozenset()
    return frozenset((year, month, day) for month, day in pairs if 1 <= month <= 12 and 0 <= day <= 31)


def _minutes(match: re.Match[str]) -> frozenset[Fraction]:
    """The minutes since midnight; two readings of `3:30`, which may be in the afternoon."""
    spelled = match["h"] or match["h2"] or match["h3"] or match["hour"]
    hour = int(spelled)
    minute = int(match["m"] or match["m2"] or match["m3"] or match["m4"] or 0) + Fraction(int(match["s"] or 0), 60)
    half = (match["half"] or match["half2"] or "").lower()
    if half:
        return frozenset({Fraction((hour % 12 + (12 if half == "p" else 0)) * 60 + minute)})
    if hour == 24:
        return frozenset({Fraction(0), Fraction(1440)})
    spoken = match.string[max(0, match.start() - _HALF_CHARS) : match.end() + _HALF_CHARS]
    is_whole = "Uhr" in match[0] and not _HALF_NAMED.search(spoken)
    halves = (0,) if is_whole or hour > 12 or spelled[0] == "0" else (0, 720)
    return frozenset(Fraction((hour * 60 + minute + half) % 1440) for half in halves) if hour < 24 else frozenset()


def hours_and_minutes(text: str, *, said: bool) -> Iterator[Figure]:
    """`19h30` as a time of day, and in a source also as a length of time. A writer's is a time in the afternoon or behind
    an `à`, and else a length; `19 h` is a time only there."""
    for match in _HOURS.finditer(text):
        hour, part = int(match["hour"]), match["minute"] or match["part"]
        values = frozenset({Fraction(hour * 60 + int(part or 0))})
        is_time = (part and hour > _NOON) or _AT.search(text, max(0, match.start() - 8), match.start())
        is_clock = hour < 24 and not match["long"] and (not said or is_time)
        if is_clock:
            yield Figure(*match.span(), match[0], values, values, "clock", kind="time")
        is_length = (match["minute"] and not is_clock) if said else part  # a writer's `7.50 h` may be seven and a half
        if is_length:
            yield Figure(*match.span(), match[0], values, values, "minute")


def hours_of_ranges(text: str, found: Sequence[Figure], *, said: bool) -> dict[int, Figure]:
    """The numbers before a time of day that are such times, by their places in `found`: the 9 of `9–17 Uhr`, and both numbers
    before that of `8–12 und 13–17 Uhr`."""
    times: dict[int, Figure] = {}
    for at in range(len(found) - 2, -1, -1):
        figure = found[at]
        following = times.get(at + 1) or found[at + 1]
        ends = following.kind == "time" or (not said and following.unit == "minute" and following.text.endswith("h"))
        if not ends or figure.kind == "time" or figure.unit:
            continue
        spelled = _HOUR.fullmatch(figure.text)
        joined = JOINED.fullmatch(text[figure.end : following.start])
        # `Room 9 – 17 Uhr`, `the 3 and 17 Uhr`: a writer's number stays one in doubt.
        apart = joined and (joined[0] in (" - ", " – ", " — ") or (joined["and"] and at + 1 not in times))
        if spelled and joined and not (said and apart) and int(spelled[1]) < 24:
            minutes = int(spelled[1]) * 60 + int(spelled[2] or 0)
            by_halves = following.text.lower().rstrip(".").endswith("m")  # of a day: `4 pm`
            halves = {Fraction(minutes), Fraction((minutes + 720) % 1440)} if minutes < 780 else {Fraction(minutes)}
            if not by_halves and min(following.values) >= 780:  # `8–21 Uhr`
                halves = {Fraction(minutes)}
            earlier = {value for value in halves if value < max(following.values)}
            if earlier and by_halves:
                earlier = {max(earlier)}  # `2–4 pm`, `10–4 pm`
            values = frozenset(earlier or halves)
            times[at] = replace(figure, values=values, bare=values, unit="clock", kind="time", noun="", per=Fraction(0))
    return times


def weekdays(figure: Figure) -> set[int]:
    """The weekday of a date: the one that its text names, else that of the calendar; none where the year is open."""
    if figure.weekday is not None:
        return {figure.weekday}
    return {weekday(*day) for day in figure.dates if all(day) and day[2] <= monthrange(*day[:2])[1]}


def dates_as_numbers(figure: Figure, *, with_day: bool = True) -> Iterator[int]:
    """The year and the day of a date, for text that names one alone."""
    yield from (part for date in figure.dates for part in (date[0], date[2] * with_day) if part)


def same_date(one: Sequence[int], other: Sequence[int]) -> bool:
    """True when `other` says all that `one` does, a year that it leaves out aside."""
    return one[1] == other[1] and (not one[2] or one[2] == other[2]) and (not one[0] or one[0] == (other[0] or one[0]))
