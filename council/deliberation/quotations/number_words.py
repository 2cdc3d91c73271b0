"""Numbers that a text spells in letters, and the language that it does so in. Pure, linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from unicodedata import numeric

from council.deliberation.quotations.figure import Figure, Kind

_LANGUAGES = {
    "en": "the of and is to in that for it with are was not than",
    "de": "der die das und ist nicht ein eine den dem von mit zu auf für des",
    "fr": "le la les des et est une du que pour dans pas au",
    "es": "el los las y es una del que para por con no",
    "it": "il gli e è una del che per con non di della",
    "nl": "de het een en is van niet voor met op dat",
}
_SMALL_WORDS = {language: frozenset(words.split()) for language, words in _LANGUAGES.items()}
_WORD = re.compile(r"(?i:\b(?:pour ?cent|per cento|por ?ciento)\b)|[^\W\d_]+|(?!\b-\b)[^\w\s]")
_LANGUAGE_CHARS = 4_000
# Numbers in one language, and other words in another: `due`, `once`, `seize`. They count in a text of their own language.
_OTHER_WORDS = {
    "cent", "cents", "dos", "doses", "due", "mil", "mille", "miles", "once", "otto", "quart", "quint", "second", "sei", "seize",
    "sept", "ten", "tens",
}  # fmt: skip


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


def number_words(text: str, language: str) -> list[Figure]:
    """The numbers in words, the longest first. Those of another language than that of the text count, too, for a line of
    facts often has no small words; but not the words for one, which are articles and pronouns."""
    from text_to_num import find_numbers  # not at the top: only a decision that cites needs it

    tokens = [_Token(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
    numbers: list[Figure] = []
    for each in dict.fromkeys((language, *_LANGUAGES)):
        for found in find_numbers(tokens, each, 0):
            start, end, value = tokens[found.start].start, tokens[found.end - 1].end, Fraction(str(found.value))
            other = each != language and (
                (value <= 1 and not found.is_ordinal) or text[start:end].lower() in _OTHER_WORDS
            )
            if not other and tokens[found.start].word != "o":  # of `o'clock`
                kind: Kind = "ordinal" if found.is_ordinal else "number"
                numbers.append(Figure(start, end, text[start:end], frozenset({value}), worded=True, kind=kind))
    return sorted(numbers, key=lambda number: number.start - number.end)


FRACTIONS = {each: Fraction(numeric(each)).limit_denominator(10) for each in "½¼¾⅓⅔⅛⅜⅝⅞"}
ENGLISH_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
GERMAN_NUMBERS = "ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
_ODD_WORDS = re.compile(
    r"\b(?:(?P<one>an?|eine?|une)(?= (?:dozen|dutzend|douzaine|million)\b)"
    r"|(?P<a>(?<!\ban )(?!eines tages\b)eine?[mnrs]?(?= (?:tag|woche|monat|jahr|stunde|minute)e?[ns]?\b)"
    r"|eine(?= (?:enthaltung|(?:gegen)?stimme)\b)"
    r"|(?:(?<=within )|(?<=after )|(?<=takes ))an?(?= (?:day|week|month|year|hour|minute)\b(?!-)))"
    rf"|(?P<whole>{ENGLISH_NUMBERS}) and a half"
    rf"|(?P<zahl>andert|(?:{GERMAN_NUMBERS})ein)halb"
    r"|half an?(?= (?:dozen|million|hour|day|year)\b)|(?:eine? )?halbe[nrs]?(?= (?:dutzend|million|stunde|tag|jahr)))(?![^\W_])",
    re.IGNORECASE,
)
_WHOLES = {
    "andert": 1,
    **{word: number for number, word in enumerate(ENGLISH_NUMBERS.split("|"), 1)},
    **{f"{word}ein": number for number, word in enumerate(GERMAN_NUMBERS.split("|"), 1)},
}


def odd_words(text: str) -> Iterator[Figure]:
    """Words for one dozen, million or unit of time, and halves: `a` dozen, `half a` million, `eine` Woche, `zweieinhalb`."""
    for match in _ODD_WORDS.finditer(text):
        whole = _WHOLES.get((match["whole"] or match["zahl"] or "").lower(), 0)
        value = Fraction(1) if match["one"] or match["a"] else whole + Fraction(1, 2)
        yield Figure(*match.span(), match[0], frozenset({value}), worded=True)


_FOLD = (
    ("2", "two|zwei", r"doubl(?:e[sd]|ing)|verdoppel\w*|twice as|doppelt so"),
    ("3", "three|drei", "tripl(?:e[sd]|ing)|trebl(?:e[sd]|ing)"),
    ("4", "four|vier", "quadrupl(?:e[sd]|ing)"), ("5", "five|fünf", "quintupled"), ("10", "ten|zehn", "decupled"),
)  # fmt: skip
_HIGHER = "(?:high|low|larg|bigg|dear|cheap|fast|long|short|great|small)er"
_TIMES_AS = re.compile(
    "|".join(
        rf"(?P<x{many}>\b(?:(?:{number})(?:-?fold| times (?:as|the|{_HIGHER})|mal so)"
        rf"|(?:ver|da[sm] |aufs )(?:{number})fach\w*|{words})\b)"
        for many, number, words in _FOLD
    )
    + r"|(?<![\w.,])(?P<digits>[0-9]{1,3}(?:[.,][0-9]{1,2})?)"
    rf"(?: times (?:as|more|the|{_HIGHER})|[ -]?mal so|[ -]?fold)\b",
    re.IGNORECASE,
)
_TWICE = re.compile(r"\b(?:twice(?! as)|double the|das doppelte)\b", re.IGNORECASE)


def multiples(text: str, *, said: bool) -> Iterator[Figure]:
    """So many times as much: `tripled`, `1.5 times as dear`. A writer's `twice` is calculated with instead."""
    for match in _TIMES_AS.finditer(text):
        many = match["digits"] or (match.lastgroup or "x1")[1:]
        values = frozenset({Fraction(many.replace(",", "."))})
        yield Figure(*match.span(), match[0], values, values, "times", worded=True)
    for match in () if said else _TWICE.finditer(text):
        yield Figure(*match.span(), match[0], frozenset({Fraction(2)}), frozenset({Fraction(2)}), "times", worded=True)


_PARTS = (  # how the words for them begin
    (3, "third|drittel|tiers|terc|terz|derde"), (4, "quart|viertel|cuart|kwart"),
    (5, "fifth|fünftel|cinqui|quint|vijfde"), (10, "tenth|zehntel|dixi|d[ée]cim|tiende"),
)  # fmt: skip
_MANY = ((2, "two|zwei|deux|dos|due|twee"), (3, "thr|drei|trois|tre|drie"), (4, "four|vier|quatr|cuatr|quattr"))
_PARTITIVE = (  # `un quart des membres`, and neither `un cuarto de baño` nor `un quart d'heure`
    r"(?= (?:des|du|de[il]|degli|dell[ae]|dell['’]|di|van|d['’](?!heure|ora\b)"
    r"|de (?:l[ao]s?\b|l['’]|s[ue]s?\b|nos|leur|tou|tod|ces|est)))"
)
_SHARE = re.compile(
    r"(?<!first )(?<!second )(?<!latter )(?<!other )\bhalf(?= (?:of|the|are|is|was|were)\b)|(?<=\bby )half\b(?! an?\b)"
    r"|(?:(?<=\bthan )|(?<=\bis ))half(?=\s*(?:[.,;:)\[]|\Z))"
    r"|(?:\bdie hälfte|(?:(?<=\bla )|(?<=della ))(?:moitié|mitad|metà)|\bde helft)(?![^\W_])"
    r"|\b(?P<many>an?|one|two|three|four|eine?[mn]?|zwei|drei|vier)"
    r"[ -](?P<part>third|quarter|fifth|tenth)s?\b(?= of (?!an hour\b)| majority\b)"
    r"|\b(?P<some>one|two|three|four)[ -](?P<bit>third|fifth|tenth)s?\b(?! part)"
    r"|(?<=\bby )(?:a|one) (?P<whole>third|quarter|fifth|tenth)\b"
    r"|\b(?P<viele>ein(?:em)?|zwei|drei|vier) ?(?P<teil>drittel|viertel|fünftel|zehntel)(?:n?\b|(?=mehrheit))"
    rf"|\b(?:une?|un[ao]|een|le(?= (?:tiers|quart)\b)) (?P<piece>tiers|tercio|terzo|derde|quart|cuarto|quarto|kwart"
    rf"|cinquième|quinto|vijfde|dixième|d[ée]cimo|tiende)\b{_PARTITIVE}"
    r"|\bla (?P<parte>tercer|cuart|quint|d[ée]cim)a parte(?= de l[ao]s\b)"
    r"|(?<!\be )\b(?P<plus>deux|trois|quatre|dos|tres?|cuatro|due|quattro|twee|drie)[ -]?(?P<pieces>tiers|tercios|terzi|derden?"
    rf"|quarts|cuartos{_PARTITIVE}|quarti|cuartas|kwart|cinquièmes|quint[aoi]s?|vijfden?|dixièmes|d[ée]cim[aoi]s?|tienden?)\b"
    r"(?: partes\b)?(?! d(?:['’]|e )(?:heure|h?ora)\b)"
    rf"|(?<![\w/.,])(?:(?P<above>[1-9])/(?P<below>[2-9]|10)|(?P<sign>[{''.join(FRACTIONS)}]))"
    r"(?= (?:of|der|des|von)\b|[ -](?:majority|mehrheit))",
    re.IGNORECASE,
)


_ONE_IN = re.compile(
    r"(?<!phase )(?<!stage )(?<!part )(?<!step )(?<!option )(?<!year )\b(?:one|1) (?:in|(?P<each>(?:[^\W\d_]+ )?(?:per|pro|je))) "
    rf"(?P<many>(?!one\b)(?:{ENGLISH_NUMBERS})|[2-9]|[1-9][0-9])\b(?![.,]?[0-9])(?! (?:week|month|day|year|hour|minute)s?\b)",
    re.IGNORECASE,
)
_HALF = re.compile(  # of a source: `pupils pay half`, `half in advance`
    r"(?:(?<=\bpay )|(?<=\bpays )|(?<=\bpaid )|(?<=\bwants )|(?<=\bcosts ))half\b(?! an?\b)"
    r"|(?<!first )(?<!second )\bhalf(?= (?:in advance|up front|upfront|before|on (?:order|delivery)|each|price)\b)"
    r"|\b(?:zur hälfte|la moitié|la mitad|la metà|de helft)\b",
    re.IGNORECASE,
)


def ones_in_many(text: str, *, said: bool) -> Iterator[Figure]:
    """`one in six`, as a share. Of a source also `1 teacher per 12 pupils`."""
    for match in _ONE_IN.finditer(text):
        if match["each"] is None or not said:
            part = Fraction(1, int(match["many"]) if match["many"].isdigit() else _WHOLES[match["many"].lower()])
            yield _share(match, part)


def _share(match: re.Match[str], part: Fraction) -> Figure:
    """So many in a hundred, exact and as one rounds it."""
    values = {100 * part, *(Fraction(round(10**places * 100 * part), 10**places) for places in (0, 1, 2))}
    return Figure(*match.span(), match[0], frozenset(values), frozenset({part}), "%", worded=True)


def shares(text: str, *, said: bool) -> Iterator[Figure]:
    """`half of`, `two thirds of`."""
    for match in () if said else _HALF.finditer(text):
        yield _share(match, Fraction(1, 2))
    for match in _SHARE.finditer(text):
        count = (match["many"] or match["some"] or match["viele"] or match["plus"] or "").lower()
        names = ("part", "bit", "whole", "teil", "piece", "parte", "pieces")
        name = next((match[each] for each in names if match[each]), "")
        many = next((each for each, words in _MANY if re.match(words, count)), 1)
        below = next((each for each, words in _PARTS if re.match(words, name.lower())), 2)
        part = FRACTIONS.get(match["sign"] or "") or Fraction(int(match["above"] or many), int(match["below"] or below))
        yield _share(match, part)
