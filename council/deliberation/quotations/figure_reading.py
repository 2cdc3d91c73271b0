"""The figures of a text: numbers, amounts, dates and times of day, whatever their spelling. Pure, linear in the text.

`21,900`, `21.900`, `21 900`, `21'900`, `21.9k` and `twenty-one thousand nine hundred` are one number. A point
before three digits leaves two readings of a number, where its language does not settle it, and either may be meant.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal
from unicodedata import decimal

from council.deliberation.quotations.ballots import with_ballots
from council.deliberation.quotations.days_and_hours import (
    JOINED,
    bare_hours,
    dates,
    dotted_times,
    hours_and_minutes,
    hours_of_ranges,
    months_alone,
    months_between,
    numeric_months,
    quarters,
    seasons,
    share_years,
    times_of_day,
    weekdays_alone,
)
from council.deliberation.quotations.figure import NONE, Figure, Hedge
from council.deliberation.quotations.normalization import EMPHASIS, UNSPACED
from council.deliberation.quotations.number_words import (
    FRACTIONS,
    language_of,
    multiples,
    number_words,
    odd_words,
    ones_in_many,
    shares,
)
from council.markup import CLAUSE_END

# ── units: canonical name, how many of it one is, short spellings (case counts), words (case does not) ───────────────

_UNITS: tuple[tuple[str, str, str, str], ...] = (
    ("workday", "1", "", r"(?:working|business)[ -]days?|(?:werk|arbeits)tage?n?"),
    (
        "point",
        "1",
        "",
        r"percentage points?|prozentpunkte?n?|points?(?= (?:fewer|less|more|higher|lower|above|below)\b)",
    ),
    ("m²", "1000000", r"km²|km2\b", r"sqkm|square kilomet(?:re|er)s?|quadratkilometern?"),
    ("m²", "1/10000", r"cm²|cm2\b", r"square centimet(?:re|er)s?|quadratzentimetern?"),
    ("m²", "1", r"m²|m2\b|qm\b", r"sqm|square met(?:re|er)s?|quadratmetern?"),
    ("m²", "10000", r"ha\b", r"hectares?|hektar"),
    ("m²", "4046.86", "", "acres?"),
    ("litre", "1000", r"m³|m3\b", r"cubic met(?:re|er)s?|kubikmetern?"),
    ("kWh", "1000000", r"GWh\b", r"gigawatt[ -]?hours?|gigawattstunden?"),
    ("kWh", "1000", r"MWh\b", r"megawatt[ -]?hours?|megawattstunden?"),
    ("kWh", "1", r"kWh\b", r"kilowatt[ -]?hours?|kilowattstunden?"),
    ("kWh", "1/1000", r"Wh\b", r"watt[ -]?hours?|wattstunden?"),
    ("EUR", "1000", "[kKT]€", "[kt]eur"),
    ("EUR", "1000000", "M€", "meur"),
    ("EUR", "1", "€", r"eur|euros?"),
    ("EUR", "1/100", r"ct\b", r"(?:euro ?)?cents?"),
    ("USD", "1000", r"[kT](?:US)?\$", "[kt]usd"),
    ("USD", "1", r"US\$|\$", r"usd|(?:us )?dollars?"),
    ("GBP", "1/100", r"p\b", r"pence|penny"),
    ("GBP", "1", "£", r"gbp|pounds?(?: sterling)?"),
    ("CHF", "1000", "", "[kt]chf"),
    ("CHF", "1", r"SFr\.", r"chf|franken|(?:swiss )?francs?"),
    ("JPY", "1", "¥", r"jpy|yen"),
    ("SEK", "1", "", "sek"),
    ("NOK", "1", "", "nok"),
    ("DKK", "1", "", "dkk"),
    ("kr", "1", r"kr\b", "kron(?:er|or|a|e)"),
    ("PLN", "1", r"zł", r"pln|zlot(?:y|ys|ych|e)|złot(?:y|ych|e)"),
    ("CZK", "1", r"Kč", r"czk|koruna?"),
    ("CAD", "1", r"CA?\$", r"cad"),
    ("AUD", "1", r"AU?\$", r"aud"),
    ("INR", "1", "₹", r"inr|rupees?"),
    ("CNY", "1", "", r"cny|rmb|yuan"),
    ("%", "1/10", "‰", r"per mille|pour mille|promille"),
    ("%", "1", r"%|v\. ?H\.", r"percent|per cento?|prozent|procent|pour ?cent|por ?ciento"),
    ("minute", "1/60", r"(?<=\s)s\b", r"seconds?|secs?|sekunden?|secondes?"),
    ("minute", "1/60000", r"ms\b", r"milliseconds?|millisekunden?"),
    ("minute", "1", "", r"minutes?|mins?|minuten?|minut[oi]s?"),
    ("minute", "60", r"h\b", r"hours?|hrs?|stunden?|std|heures?|horas?|or[ae]|uren"),
    ("minute", "1440", "", r"(?:calendar )?days?|tage?[ns]?|jours?|días?|giorn[oi]|dagen"),
    ("minute", "10080", "", r"weeks?|wochen?|semaines?|semanas?|settiman[ae]|weken"),
    ("month", "1", "", r"months?|monat(?:e|en|s)?|mois|mes(?:es)?|mes[ei]|maanden"),
    ("month", "12", "", r"years?|yrs?|jahr(?:e|en|es)?|ans?|années?|años?|ann[oi]|jaar"),
    ("month", "120", "", r"decades?|jahrzehnte?n?|décennies?|décadas?|decenni|decennia"),
    ("km/h", "1", r"km/h\b", r"kph|kilomet(?:re|er)s (?:per|an) hour|stundenkilometern?"),
    ("km/h", "1.609344", "", "mph|miles (?:per|an) hour"),
    ("metre", "1000", r"km\b", r"kilomet(?:re|er)n?s?"),
    ("metre", "1", r"m\b", r"met(?:re|er)n?s?"),
    ("metre", "1/100", r"cm\b", r"centimet(?:re|er)s?|zentimetern?"),
    ("metre", "0.3048", r"ft\b", r"feet|foot"),
    ("metre", "0.0254", "", r"inch(?:es)?|zoll"),
    ("metre", "0.9144", "", "yards?"),
    ("metre", "1609.344", r"mi\b", r"miles?|meilen?"),
    ("metre", "1/1000", r"mm\b", r"millimet(?:re|er)n?s?"),
    ("kg", "1000", r"t\b", r"tonnes?|tonnen|(?:metric )?tons?"),
    ("kg", "1", r"kg\b", r"kilograms?|kilos?|kilogramm"),
    ("kg", "1/1000", r"g\b", r"grams?|gramm"),
    ("kg", "1/1000000", r"mg\b", r"milligrams?|milligramm"),
    ("kg", "1/1000000000", r"[µμ]g\b|mcg\b", r"micrograms?|mikrogramm"),
    ("lb", "1", "", "lbs?"),
    ("ounce", "1", "", "oz|ounces?"),
    ("gallon", "1", "", "gallons?"),
    ("litre", "1", r"l\b", r"lit(?:re|er)n?s?"),
    ("litre", "100", r"hl\b", r"hectolit(?:re|er)s?|hektolitern?"),
    ("litre", "1/10", r"dl\b", r"decilit(?:re|er)s?|dezilitern?"),
    ("litre", "1/100", r"cl\b", r"centilit(?:re|er)s?|zentilitern?"),
    ("litre", "1/1000", r"ml\b", r"millilit(?:re|er)n?s?"),
    ("Mbit/s", "1000", r"Gbit/s|Gb/s|Gbps\b", r"gigabits? per second"),
    ("Mbit/s", "1", r"Mbit/s|Mb/s|Mbps\b", r"megabits? per second"),
    ("Mbit/s", "1/1000", r"kbit/s|kb/s|kbps\b", r"kilobits? per second"),
    ("GB", "1000", r"Ti?B\b", r"terabytes?"),
    ("GB", "1", r"Gi?B\b", r"gigabytes?"),
    ("GB", "1/1000", r"Mi?B\b", r"megabytes?"),
    ("GB", "1/1000000", r"[kK]i?B\b", r"kilobytes?"),
    ("kW", "1000000", r"GW\b", r"gigawatts?"),
    ("kW", "1000", r"MW\b", r"megawatts?"),
    ("kW", "1", r"kW\b", r"kilowatts?"),
    ("kW", "1/1000", r"W\b", r"watts?"),
    ("volt", "1000", r"kV\b", r"kilovolts?"),
    ("volt", "1", r"V\b", r"volts?"),
    ("ampere", "1", r"(?<=\s)A\b", r"amp(?:ere|ère)?s?"),  # `room 12A`
    ("ampere", "1/1000", r"mA\b", r"milliamp(?:ere)?s?"),
    ("°C", "1", r"°C", r"degrees celsius|grad celsius"),
    ("°F", "1", r"°F", "degrees fahrenheit|grad fahrenheit"),
)
THING = 4  # letters of a noun: in, of and per are shorter
DEGREES = frozenset({"degree", "degrees", "grad"})  # °C where the other figures are, and elsewhere no unit
CROWNS = frozenset({"SEK", "NOK", "DKK", "kr"})  # a `kr` may be any of the three
CURRENCIES = frozenset({"EUR", "USD", "GBP", "CHF", "JPY", "PLN", "CZK", "CAD", "AUD", "INR", "CNY", *CROWNS})
_CODES = "|".join(sorted(CURRENCIES))
_UNIT = re.compile(
    r"[ \t\u00a0\u202f-]{0,2}\*{0,2}[ \u00a0]?"
    r"(?:(?i:more|further|additional|extra|fewer|less|full|whole|mehr|weniger|(?:weiter|zusätzlich|voll|ganz)e[nrs]?) )?(?:"
    + "|".join(
        f"(?P<u{number}>{short}{'|' if short else ''}(?i:(?:{words})\\b))"
        for number, (_, _, short, words) in enumerate(_UNITS)
    )
    + ")"
)
_CURRENCY_BEFORE = re.compile(
    r"(?:(?P<EUR>(?:\b[kKTM])?€|\b[kKTM]?EUR|\b[Ee]uros?)|(?P<CAD>CA?\$|\bCAD)|(?P<AUD>AU?\$|\bAUD)|(?P<USD>US\$|\$|\b[kT]?USD)|(?P<JPY>¥|\bJPY)"
    r"|(?P<SEK>\bSEK)|(?P<NOK>\bNOK)|(?P<DKK>\bDKK)|(?P<kr>\bkr\.?)|(?P<PLN>\bPLN)|(?P<CZK>\bCZK)|(?P<INR>₹|\bINR|\bRs\.)|(?P<CNY>\b(?:CNY|RMB))|(?P<GBP>£|\bGBP)|(?P<CHF>\b[kT]?CHF|\bFr\.|\bSFr\.))[^\S\n]?\Z"
)
_LARGE = {"k": 1_000, "K": 1_000, "T": 1_000, "M": 10**6}  # `kEUR 120`, `T€ 45`
_MONEY = re.compile(rf"\s?(?:€|\$|£|¥|₹|(?:{_CODES}|euros?|dollars?)\b)")
_CODE = re.compile(rf"\s?(?:{_CODES})\b")
_TIMES = {
    "k": 1_000, "thousand": 1_000, "tausend": 1_000, "tsd": 1_000, "mille": 1_000,
    "m": 10**6, "mn": 10**6, "mio": 10**6, "million": 10**6, "millions": 10**6, "millionen": 10**6,
    "dozen": 12, "dutzend": 12, "douzaine": 12, "douzaines": 12,
    "bn": 10**9, "billion": 10**9, "mrd": 10**9, "milliarde": 10**9, "milliarden": 10**9, "milliard": 10**9,
}  # fmt: skip
_MULTIPLIER = re.compile(
    r"[ \u00a0\u202f]?(?:(?P<word>dozen|dutzend|douzaines?"
    r"|thousand|tausend|tsd|mille|millions?|millionen|mio|mn|bn|billion|mrd|milliarden?|milliards?)\b\.?"
    rf"|(?P<letter>k)(?!\w)|(?P<m>m)(?:(?!\w)|(?=(?:{_CODES})\b)))",
    re.IGNORECASE,
)

# ── characters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_ASCII = str.maketrans("−－＋．：／％￥円＄`", "--+.:/%¥¥$*")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_WIDE_COMMA = re.compile(r"(?<=[0-9])，(?=[0-9]{3}(?![0-9]))")
# Letters that stand beside digits without a space, and are no part of them; but not those that multiply or measure time.
_BESIDE_DIGITS = re.compile(
    rf"(?![十百千万萬億亿兆割倍半時时点點分秒日週周月年号號백천만억조배시분초일주월년])[{UNSPACED}\uac00-\ud7a3]"
)

# ── numbers in digits ────────────────────────────────────────────────────────────────────────────────────────────────

_DIGITS = re.compile(
    r"(?:(?<![\w#^\\])|(?<=\b[vV])(?=[0-9]+\.[0-9]))(?<![A-Za-z][-/.,_'’])(?<![0-9][.,])(?P<number>"
    r"(?:[0-9]+(?:-[0-9]+){2,}|[0-9]+-0[0-9]{2,})(?!\w)|"  # no range, but the number of a telephone, a book, an order
    r"[0-9]{1,3}(?:[ \u00a0\u202f\u2009'’][0-9]{3}){1,6}(?:[.,][0-9]{1,9})?(?![0-9])"
    rf"|(?:[0-9]{{1,4}}[ \u00a0]?)?[{''.join(FRACTIONS)}]|[0-9]{{1,4}} [1-9]/(?:[2-9]|16)(?![\w/.,])"
    r"|[0-9]{1,18}(?:[.,][0-9]{1,30}){0,9}(?![0-9]))"
)
# Before the number of a section, as statutes and agendas write it: a label, which proves no amount.
SECTION = r"(?:§+|\bTOP\b|(?i:\b(?:art(?:\.|icle\b|ikel\b)|section\b)))\s*"
_SECTION_BEFORE = re.compile(rf"{SECTION}\Z")
_SECTION_CHARS = 12
# Before the number of a line, a paragraph or an item of a source, and behind it: no operand either.
_NUMBERS_LINE = re.compile(
    r"(?:^|\n)[ \t>*_#-]*(?:(?:(?:§+ ?|Art(?:\.|ikel|icle) ?)[0-9]+[a-z]?,? ?)?(?P<opens>\()|(?P<bare>))\Z"
    r"|\b(?i:pos\.|position|posten|n[ro]\.|n[°º]|item|question|frage|abs\.|absatz|paragraph)\s?\Z"
)
_BEHIND_NUMBER = {"opens": re.compile(r"\)"), "bare": re.compile(r":\s")}
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|ère|e|ème)\b|\.(?= (?:(?:Kalender|Werk|Arbeits)?[Tt]ag|Woche|Monat|Jahr))")
_OF_EACH_MONTH = re.compile(r" (?:of (?:each|every|the|a) month|(?:jedes|eines|des) Monats)\b")  # the fifteenth
_GERMAN_ORDINAL = re.compile(r"\.(?= [^\W\d_]{2})")  # behind an article: `im 3. Obergeschoss`
_GERMAN_ARTICLE = re.compile(r"\b(?:[iau]m|vom|zu[mr]|beim|d(?:er|ie|as|en|em|es))\s\Z", re.IGNORECASE)
_GROUPED = {
    separator: re.compile(
        rf"[1-9][0-9]{{0,2}}(?:{re.escape(separator)}[0-9]{{2}})*(?:{re.escape(separator)}[0-9]{{3}})+"
    )
    for separator in ".,"
}
_GROUPS_BY_POINT = ("de", "es", "it", "nl")


def readings(spelled: str, *, money: bool = False, language: str = "") -> frozenset[Fraction]:
    """The numbers that digits with separators may mean; none for a label such as `1.2.3` or `555-0172`."""
    if "/" in spelled:  # `2 1/2`
        return frozenset({sum(map(Fraction, spelled.split()), Fraction(0))})
    digits = re.sub(r"[ \u00a0\u202f\u2009'’]", "", spelled)
    if digits[-1] in FRACTIONS:
        return frozenset({int(digits[:-1] or 0) + FRACTIONS[digits[-1]]})
    marks = [char for char in digits if char in ".,"]
    if "-" in digits:
        return frozenset()
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
    is_group = separator == "," or language in _GROUPS_BY_POINT or (money and digits.index(".") > 1)
    if len(marks) == 1 and not (grouped and is_group):
        found.add(Fraction(digits.replace(",", ".")))
    return frozenset(found)


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────

_HEDGE = re.compile(
    r"(?:(?P<about>\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|some|rund|etwa|ungefähr|environ|nearly|almost"
    r"|close to|just shy of|knapp|fast|près d(?:e|(?=['’]))|presque|quasi|casi|cerca de|unos|unas|ongeveer|bijna)|[~≈])"
    r"|(?P<least>\b(?:at (?:the )?least|a minimum of|no fewer than|mindestens|wenigstens|minimal|au moins|au minimum|al menos"
    r"|como mínimo|almeno|come minimo|minstens|ten minste))"
    r"|(?P<most>\b(?:at (?:the )?most|a maximum of|up to|höchstens|maximal|bis zu|au (?:plus|maximum)|como (?:máximo|mucho)"
    r"|al massimo|hoogstens|ten hoogste))"
    r"|(?P<over>\b(?:over|more than|above|beyond|exceed(?:s|ed|ing)?|surpass(?:es|ed)?|über|mehr als|oberhalb von"
    r"|(?:über(?:schreit|steig|stieg|schritt)|übertr[ai]ff?)(?:e?[nt]|et)?|gut|reichlich|plus d(?:e|(?=['’]))|au-delà de"
    r"|supérieure?s? à|(?:dé|sur)pass(?:e|ent|er|ait)|excèd(?:e|ent)|más de|por encima de|superior(?:es)? a"
    r"|(?:super|exced)(?:ano?|en?|a[nr]?|er)|più d(?:i|el|ella)|oltre|superior[ei] ai?|ecced(?:e|ono)|meer dan)|[>≥])"
    r"|(?P<under>\b(?:under|less than|below|fewer than|unter|weniger als|keine|unterhalb von"
    r"|(?:stay|remain|keep|lie)(?:s|ed)? within|f(?:all|alls|ell|alling) short of|unterschr(?:eite[nt]|itt(?:en)?)"
    r"|moins d(?:e|(?=['’]))|en dessous de|inférieure?s? à|menos de|por debajo de|inferior(?:es)? a|meno d(?:i|el|ella)"
    r"|sotto i|inferior[ei] ai?|minder dan)|[<≤]))"
    r"(?P<denied>\s+(?:pas|jamais|nicht|nie|niet)\b)?"
    rf"(?:\s+(?:the|den|die|das|dem|les?|los?|las?|de|il|gli|i)|['’])?\s*\*{{0,3}}(?:€|\$|£|¥|₹|{_CODES})?\s*\*{{0,3}}\Z",
    re.IGNORECASE,
)
# Before such words, in the same clause, it says the opposite; behind the figure it does so of a German verb.
_NOT = re.compile(
    r"\b(?:no|not(?! only)|\w+n['’]t|cannot|none|neither|never|pas|kein(?:er|e[nrs]?)?|nicht|weder|nie"
    r"|ne|aucun|aucune|jamais|ningun[ao]?|ningún|nunca|non(?!-)|nessun[oa]?|nemmeno|geen|niet)"
    r"\b[^,.:;!?\[\n]*\Z",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"(?:\s+[^\W\d_]+)??\s+(?:(?P<over>or more|at (?:the )?least|oder mehr|mindestens|ou plus|au moins|o más|al menos|o più"
    r"|almeno)|(?:or (?:less|fewer)|at (?:the )?most|oder weniger|höchstens|ou moins|au (?:plus|maximum)|o menos|como máximo"
    r"|o meno|al massimo))\b",
    re.IGNORECASE,
)
_MORE_OR_LESS = re.compile(
    r"\s(?:in (?:meno|più)|less|more|weniger|mehr|de (?:moins|plus)|menos|más|minder|meer)"
    r"(?=\s(?:than|als|que|di|che|dan)\b|\s*(?:[.,;:)\[]|\Z))",
    re.IGNORECASE,
)
_STATED = re.compile(  # `it is at most 500 EUR`, and neither `orders over 500 EUR` nor `who is over 18`
    r"(?<!\bwho )(?<!\bwhich )(?<!\bqui )(?<!\bche )\b(?:is|are|was|were|be|costs?|takes?|lasts?|weighs?|totals?|requires?|needs?"
    r"|(?:amounts?|comes?|came) to|ist|sind|war|waren|kostet|kosten|beträgt|betragen|dauert|dauern|wiegt|est|sont|coûte|dure"
    rf"|es|son|cuesta|dura|è|sono|costa|kost|bedraagt|duurt)\s{_HEDGE.pattern}",
    re.IGNORECASE,
)
_LIMIT = re.compile(  # `Maximum load: 350 kg`, `ist auf 500 EUR begrenzt`, `tickets cost from 15 EUR`
    r"(?<!\bno )(?<!\bkein )(?<!\bkeine )\b(?:(?P<least>min\.|minim(?:um|ale?[nrs]?|o|a)|mínim[oa]|mindest\w+"
    r"|(?:costs?|starts?|kost(?:et|en)|beginn(?:t|en)|coûtent|cuestan?|costan?) (?:from|ab|à partir de|desde|a partire da|vanaf))"
    r"|max\.|maxim(?:um|ale?[nrs]?)|máxim[oa]|massim[oa]|höchst(?:ens|betrag|alter|zahl|preis|last|miete|dauer|menge|satz)"
    r"|limit(?:ed)?|cap(?:ped)?|ceiling|obergrenze|plafond)(?: [^\W\d_]+){0,2}:? \*{0,3}"
    rf"(?:€|\$|£|¥|₹|{_CODES})? ?\*{{0,3}}\Z",
    re.IGNORECASE,
)
_KEPT = re.compile(
    r" nicht (?:über(?:steig|schreit)|(?P<least>unterschreit))|(?: [^\W\d_]+)? (?:begrenzt|gedeckelt)\b", re.IGNORECASE
)
_IF = re.compile(
    r"\b(?:if|when|where|once|unless|whoever|wenn|falls|sofern|wer|si|quand|cuando|se|chi|als|wie)\b", re.IGNORECASE
)
# `Up to 60 days before` is at least so long before.
_AHEAD = frozenset({"before", "prior", "earlier", "ahead", "vor", "vorher", "zuvor", "avant", "antes", "prima", "voor"})
_GERMAN_VERB = re.compile(r"(?:über|unter)(?:sch|st|tr)", re.IGNORECASE)
_NOT_BEHIND = re.compile(r"[^,.:;!?\[\n]{0,60}?\b(?:nicht|nie)\b", re.IGNORECASE)
_HEDGE_CHARS = 30
_LIMIT_CHARS = 40
_NOT_CHARS = 60
# Numbers of the council's own counting, and of places that a citation names.
_LABELLED = re.compile(
    r"\b(?:option|step|point|round|phase|item|question|member|line|lines|page|pages|table|figure|claim|schritt|punkt|zeilen?"
    r"|seiten?|runde|frage|p\.|pp\.|ll?\.|z\.)\s*(?:(?:no|nr)\.\s*)?(?:[0-9]+\s*(?:[-–—,]|and|und|to|bis)\s*)*\Z",
    re.IGNORECASE,
)
_SIGN = re.compile(
    r"(?:(?<![^\s|;,:(\[\"'“„>*_€$£])(?P<sign>[-+–])|\b(?P<minus>minus|moins) |\|\s{0,3}[-–]\s)\Z", re.IGNORECASE
)
_RANGE = re.compile(r"[0-9]\s*[^\s:;,|]{0,4}\s[-–]\Z")  # `2 °C –8 °C`
_OPENS, _CLOSES = re.compile(r"(?:[|\t]\s*|[;\"])\(\s*\Z"), re.compile(r"\s*\)\s*?(?:[|\t;\"\n]|\Z)")  # `| (1,200) |`
_SIGN_CHARS = 60
# Beside one of these, in the same clause, degrees without a sign may be meant to be below zero.
_BELOW = re.compile(
    r"minus|loss|lost|losing|negativ|below|low|short|f[ae]ll|declin|decreas|reduc|drop|down|less|under|cold|cool|frost|freez|frozen"
    r"|by\b|differ|between|not?\b|without|verl(?:ust|or|ier)|fehl|unter|niedr|tief|gesunken|s[ai]nk|rückgang|weniger|kalt|kälte"
    r"|kühl|frier|gefror|um\b|zwischen|kein|nicht|ohne|perte|négati|moins|baiss|sous|inférieur|froid|gel|entre|sans|pas\b|aucun",
    re.IGNORECASE,
)
_NOUN = re.compile(r"(?:[*_]{0,3}[ \u00a0\n-])?[*_-]{0,3}([^\W\d_]{2,})((?: [^\W\d_]{4,}){0,2})")
# `12. Januar` is a date, and no item of a list.
_LIST_MARK = re.compile(
    r"(?m)^[ \t>]*(?:#{1,6}[ \t]+)?(?:[-+*][ \t]+)?[0-9]{1,3}(?:\.[0-9]{1,3})*[.)](?=[ \t])"
    r"(?! (?:bis|und|Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
)
# The times that an amount may be for, in months: behind `a` or `per`, and alone.
_PERIODS = (
    ("12", r"year(?! ago| earlier| later)|yr|jahr|an|année|annum|año|anno|jaar", r"annually|yearly|p\. ?a|jährlich"),
    ("3", "quarter|quartal|vierteljahr|trimestre", "quarterly|vierteljährlich"),
    ("1", "month|monat|mois|mes|mese|maand", "monthly|monatlich|mtl"),
    ("3/13", "week|woche|semaine|semana|settimana", "weekly|wöchentlich"),
    ("12/365", "day|tag|jour", "daily|täglich"),
    ("1/730", "hour|hr|h|stunde|heure|hora|ora|uur", "hourly|stündlich"),
)
_PER = re.compile(
    "|".join(
        rf"(?P<p{at}>\s*(?:(?:more|less|mehr|weniger) )?"
        rf"(?:(?:an?|per|each|every|[ia]m|al|pro|je|par|in der|/|all['’])\s*(?:{noun})|{alone})\b(?! [0-9]))"
        for at, (_, noun, alone) in enumerate(_PERIODS)
    ),
    re.IGNORECASE,
)
_PERIOD_BEFORE = (
    r"annual(?:ly)?|yearly|jährlich\w*|annuel\w*|(?:each|every) year|jahres(?=beitrag|miete|gebühr|pacht|gehalt|kosten|preis)\w+",
    r"quarterly|vierteljährlich\w*|trimestriel\w*|(?:each|every) quarter",
    r"monthly|monatlich\w*|mensuel\w*|(?:each|every) month|monats(?=beitrag|miete|gebühr|pacht|gehalt|lohn|rate|preis)\w+",
    r"weekly|wöchentlich\w*|(?:each|every) week",
    r"daily|täglich\w*|(?:each|every) day|tages(?=miete|preis|satz|gebühr)\w+",
    r"hourly|stündlich\w*|(?:each|every) hour|stunden(?=lohn|satz|preis|miete|honorar)\w+",
)
_PER_BEFORE = re.compile(  # `the monthly rent is`, up to five words before the amount
    "|".join(
        rf"(?P<p{at}>\b(?:{words}|(?:im|in an?|per|pro|over an?)\s(?:{noun})(?!\s(?:zuvor|davor|danach|darauf)))"
        r"(?:\s[^\W\d_]+){0,5}(?::|\s\|)?\s\Z)"
        for at, (words, (_, noun, _)) in enumerate(zip(_PERIOD_BEFORE, _PERIODS, strict=True))
    ),
    re.IGNORECASE,
)
_PER_CHARS = 60
# `17 pupils per teacher`
_EACH = re.compile(r"(?:\s[^\W\d_]+){1,2}?\s(?:per|pro|je|par|por)\s([^\W\d_]{3,})", re.IGNORECASE)
_UP_FROM = re.compile(r"\b(?:(?:up|down) from|instead of|statt)\s[€$£]?\s?\Z", re.IGNORECASE)
_ADDED = re.compile(r"\.?\s+(?:(?:and|und|et)\s+)?")


def figures(text: str, language: str = "", *, said: bool = False) -> list[Figure]:
    """The figures of a text, in order. `language` is that of number words; empty: its own. `said`: the text is a writer's
    own, whose numbers of options and steps are no figures, and whose figures may be rough."""
    text = _WIDE_COMMA.sub(",", _OTHER_DIGIT.sub(lambda found: str(decimal(found[0])), text.translate(_ASCII)))
    text = EMPHASIS.sub(lambda found: "*" * len(found[0]), text)
    taken: list[tuple[int, int]] = [match.span() for match in _LIST_MARK.finditer(text)]
    found: list[Figure] = []

    def is_free(start: int, end: int) -> bool:
        at = bisect_left(taken, (start, start))
        before = taken[at - 1] if at else (0, 0)
        return before[1] <= start and (at == len(taken) or taken[at][0] >= end)

    def take(figure: Figure) -> None:
        taken.insert(bisect_left(taken, (figure.start, figure.end)), (figure.start, figure.end))
        found.append(figure)

    def take_free(some: Iterable[Figure]) -> None:
        for figure in some:
            if is_free(figure.start, figure.end):
                take(figure)

    take_free((*dates(text, said=said), *(quarters(text, said=True) if said else ())))
    text = _BESIDE_DIGITS.sub("、", text)
    take_free((*numeric_months(text), *seasons(text, said=True)) if said else ())
    for hour in hours_and_minutes(text, said=True) if said else ():
        take(hour)
    take_free(times_of_day(text))
    take_free(
        replace(share, rough=hedge_of(text, share.start, share.end)) if said else share
        for share in shares(text, said=said)
    )
    take_free(ones_in_many(text, said=True) if said else ())
    for multiple in multiples(text, said=said):
        take_free([replace(multiple, rough=hedge_of(text, multiple.start, multiple.end)) if said else multiple])
    for match in _DIGITS.finditer(text):
        if said and _LABELLED.search(text, max(0, match.start() - 40), match.start()):
            continue
        if is_free(*match.span()) and (figure := _number(text, match, language, said=said)) is not None:
            take(figure)
    for figure in (*odd_words(text), *number_words(text, language or language_of(text))):
        if is_free(figure.start, figure.end):
            is_day = figure.kind == "ordinal" and _OF_EACH_MONTH.match(text, figure.end) is not None
            measured = replace(figure, kind="number") if is_day else _measured(text, figure, said=said)
            if measured.kind != "ordinal" or is_of_things(measured):
                take(measured)
    take_free(months_alone(text, said=said))
    take_free(weekdays_alone(text) if said else ())
    found.sort(key=lambda figure: figure.start)
    hours = hours_of_ranges(text, found, said=said)
    if said:
        found = [hours.get(at, figure) for at, figure in enumerate(found)]
    for at, (figure, following) in enumerate(pairwise(found)):
        # `40 euro, 35 in meno`: the difference is in euros, too.
        if said and figure.unit in CURRENCIES and following.kind == "number" and not following.unit:
            apart = text[figure.end : following.start]
            if len(apart) <= _SIGN_CHARS and not CLAUSE_END.search(apart) and _MORE_OR_LESS.match(text, following.end):
                found[at + 1] = replace(following, unit=figure.unit)
        if joined := JOINED.fullmatch(text[figure.end : following.start]):
            is_rate = joined["and"] and following.unit == "%" and max(figure.values, default=0) > 100
            found[at] = figure if is_rate else _begun_range(figure, following)  # `3,200 and 19 % VAT`
            if said and following.per and not joined["and"] and not figure.dates:  # `from 1,200 to 1,260 a month`
                found[at] = replace(found[at], per=figure.per or following.per)
        if said and following.kind == "number" and _UP_FROM.search(text, max(0, following.start - 16), following.start):
            # `1,260 a month in 2025, up from 1,200`
            paid = [each.per for each in (*found[max(0, at - 1) : at], figure, following) if each.per]
            found[at + 1] = replace(found[at + 1], per=paid[-1] if paid else following.per)
    share_years(text, found)
    found = with_ballots(text, found)
    lengths = list(_lengths(text, found))
    if said:
        parts = {part.start for _, *both in lengths for part in both}
        found = [figure for figure in found if figure.start not in parts]
        return sorted([*found, *(length for length, *_ in lengths)], key=lambda figure: figure.start)
    in_hours = list(hours_and_minutes(text, said=False))
    inner = {at for each in in_hours if each.text[-1].isdigit() for at in range(each.start, each.end)}
    found = [each for each in found if each.start not in inner or each.kind == "time"]  # `1 h 30` is no 1 h, and no 30
    ones = list(ones_in_many(text, said=False))
    inside = {at for one in ones if " in " in one.text for at in range(one.start, one.end)}  # no one of seven
    found = [replace(figure, kind="label") if figure.start in inside else figure for figure in found]
    found += [*months_between(text, found), *numeric_months(text)]
    found += [*seasons(text, said=False), *quarters(text, said=False)]
    found += [*hours.values(), *dotted_times(text), *bare_hours(text), *ones, *in_hours]
    return [*found, *(length for length, *_ in lengths)]


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
    spelled = following.bare if following.worded else NONE
    bare = next((readings(each[0]) for each in _DIGITS.finditer(following.text)), spelled)
    if bare and following.values:
        factor = max(following.values) / max(max(bare), Fraction(1, 10**9))
        values |= {value * factor for value in values}
    return replace(figure, unit=following.unit, values=values)


def _number(text: str, match: re.Match[str], language: str, *, said: bool) -> Figure | None:
    """A number in digits; None for a part of a name."""
    start, end = match.span()
    spelled = match[0]
    money = _CURRENCY_BEFORE.search(text, max(0, start - 8), start) is not None
    figure = _measured(text, Figure(start, end, spelled, readings(spelled, money=money, language=language)), said=said)
    if not money and figure.unit in CURRENCIES:
        largest = max(readings(spelled, language=language), default=Fraction(0))
        factor = max(figure.values) / largest if largest else Fraction(1)
        # Without the readings that money does not have.
        as_money = frozenset(value * factor for value in readings(spelled, money=True, language=language))
        values = as_money or figure.values
        figure = replace(figure, values=values, bare=values if figure.bare == figure.values else values | figure.bare)
    if not figure.values:
        return replace(figure, kind="label")
    following = text[figure.end : figure.end + 1]
    ordinal = _ORDINAL.match(text, end) or (
        _GERMAN_ARTICLE.search(text, max(0, start - 6), start) and _GERMAN_ORDINAL.match(text, end)
    )
    if figure.end == end and ordinal:
        of_things = _measured(text, replace(figure, end=ordinal.end()), said=said)
        if is_of_things(of_things):
            return replace(of_things, kind="ordinal")
        return replace(figure, end=ordinal.end(), text=text[start : ordinal.end()])
    if figure.end == end and (following.isalnum() or following == "_"):
        return None
    is_part = spelled[0] == "0" and len(spelled) > 1 and spelled.isdigit()  # of the number of an account
    numbers = None if said or figure.unit or len(spelled) > 3 else _NUMBERS_LINE.search(text, max(0, start - 24), start)
    if numbers and (not numbers.lastgroup or _BEHIND_NUMBER[numbers.lastgroup].match(text, end)):
        return replace(figure, kind="label")
    if not figure.unit and (is_part or _SECTION_BEFORE.search(text, max(0, start - _SECTION_CHARS), start)):
        return replace(figure, kind="label")
    return figure


def is_of_things(figure: Figure) -> bool:
    """True for a figure with a unit of time or a noun of its own: `the third day`, `the 3rd floor`."""
    return figure.unit in ("minute", "month", "workday") or len(figure.noun) >= THING or figure.noun in ("mal", "og")


def hedge_of(text: str, start: int, end: int) -> Hedge:
    """The side to which the words before a figure leave it open: around it, above or below."""
    hedge = _HEDGE.search(text, max(0, start - _HEDGE_CHARS), start)
    if hedge is None:
        behind = _BEHIND.match(text, end)
        return "" if behind is None else "least" if behind["over"] else "most"
    if hedge["about"]:
        return "about"
    denied = hedge["denied"] or _NOT.search(text, max(0, hedge.start() - _NOT_CHARS), hedge.start()) is not None
    denied = denied or (_GERMAN_VERB.match(hedge[0]) and _NOT_BEHIND.match(text, end))
    if hedge["least"] or hedge["most"]:
        return "least" if bool(hedge["least"]) is not bool(denied) else "most"
    if denied:  # no more than
        return "most" if hedge["over"] else "least"
    return "over" if hedge["over"] else "under"


def _bound_of(text: str, start: int, end: int) -> Hedge:
    """The side of a figure that a text states: that of a limit, and that of `over` and `under` where it says so outright."""
    limit = _LIMIT.search(text, max(0, start - _LIMIT_CHARS), start) or _KEPT.match(text, end)
    if limit is not None:
        return "least" if limit["least"] else "most"
    hedge = hedge_of(text, start, end)
    if hedge not in ("over", "under"):
        return hedge
    stated = _STATED.search(text, max(0, start - _NOT_CHARS), start)
    if stated is None or _IF.search(CLAUSE_END.split(text[max(0, stated.start() - _NOT_CHARS) : stated.start()])[-1]):
        return ""
    return hedge


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
        or (multiplier["m"] if unit or multiplier[0] == "M" or _MONEY.match(text, multiplier.end()) else "")
    )
    if multiplier is not None and word:
        is_german = re.match("mio|mrd|mill.*en$", word, re.IGNORECASE)
        if is_german and re.fullmatch(r"[0-9]{1,3},[0-9]{3}", figure.text):  # `1,385 Mio.`
            values |= {Fraction(figure.text.replace(",", "."))}
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
    noun, per, each_of = _NOUN.match(text, end), _PER.match(text, end), _EACH.match(text, end) if said else None
    if per is None and unit in CURRENCIES:
        per = _PER_BEFORE.search(text, max(0, start - _PER_CHARS), start)
    name = noun[1].casefold() if noun else ""
    sign: Literal["", "+", "-"] = ""
    if signed := _SIGN.search(text, max(0, start - 8), start):
        sign = "+" if signed["sign"] == "+" else "" if _RANGE.search(text, max(0, start - 16), start) else "-"
    elif not said and _OPENS.search(text, max(0, start - 8), start) and _CLOSES.match(text, end):
        sign = "-"  # as books of account write it
    elif unit in ("°C", "°F") or name in DEGREES:
        around = CLAUSE_END.split(text[max(0, start - _SIGN_CHARS) : start])[-1], text[end : end + _SIGN_CHARS]
        sign = "" if _BELOW.search(f"{around[0]} {CLAUSE_END.split(around[1])[0]}") else "+"
    rough, bound = hedge_of(text, start, end) if said else "", _bound_of(text, start, end)
    return replace(
        figure, start=start, end=end, text=text[start:end], values=values, bare=bare, unit=unit, rough=rough,
        noun=name, following=tuple(noun[2].casefold().split()) if noun else (), each=each_of[1].casefold() if each_of else "",
        per=Fraction(_PERIODS[int((per.lastgroup or "p0")[1:])][0]) if per else Fraction(0), sign=sign,
        bound="" if name in _AHEAD and bound == "most" else bound,
    )  # fmt: skip
