"""Numbers that a text spells in letters, and the language that it does so in. Pure, linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from council.deliberation.quotations.figure import Figure

_LANGUAGES = {
    "en": "the of and is to in that for it with are was not than",
    "de": "der die das und ist nicht ein eine den dem von mit zu auf für des",
    "fr": "le la les des et est une du que pour dans pas au",
    "es": "el los las y es una del que para por con no",
    "it": "il gli e è una del che per con non di della",
    "nl": "de het een en is van niet voor met op dat",
}
_SMALL_WORDS = {language: frozenset(words.split()) for language, words in _LANGUAGES.items()}
_WORD = re.compile(r"[^\W\d_]+|(?!\b-\b)[^\w\s]")
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
            other = each != language and (value <= 1 or text[start:end].lower() in _OTHER_WORDS)
            if not (found.is_ordinal or other):
                numbers.append(Figure(start, end, text[start:end], frozenset({value}), worded=True))
    return sorted(numbers, key=lambda number: number.start - number.end)


_ODD_WORDS = re.compile(
    r"\b(?:(?P<one>an?|eine?|une)(?= (?:dozen|dutzend|douzaine|million)\b)|(?P<whole>one|two|three|four) and a half"
    r"|(?P<zahl>andert|einein|zweiein|dreiein|vierein)halb"
    r"|half an?(?= (?:dozen|million|hour|day|year)\b)|(?:eine? )?halbe[nrs]?(?= (?:dutzend|million|stunde|tag|jahr)))(?![^\W_])",
    re.IGNORECASE,
)
_WHOLES = {
    "andert": 1,
    "einein": 1,
    "one": 1,
    "zweiein": 2,
    "two": 2,
    "dreiein": 3,
    "three": 3,
    "vierein": 4,
    "four": 4,
}


def odd_words(text: str) -> Iterator[Figure]:
    """Words that count a dozen or a million, and halves: `a` dozen, `half a` million, `zweieinhalb` hours."""
    for match in _ODD_WORDS.finditer(text):
        whole = _WHOLES.get((match["whole"] or match["zahl"] or "").lower(), 0)
        value = Fraction(1) if match["one"] else whole + Fraction(1, 2)
        yield Figure(*match.span(), match[0], frozenset({value}), worded=True)


_FOLD = {
    "2": r"doubl(?:e[sd]|ing)|two-?fold|verdoppel\w*|two times as",
    "3": r"tripl(?:e[sd]|ing)|trebl(?:e[sd]|ing)|three-?fold|verdreifach\w*|three times as|dreimal so",
    "4": r"quadrupl(?:e[sd]|ing)|four-?fold|vervierfach\w*|four times as|viermal so",
    "5": r"quintupled|five-?fold|verfünffach\w*|five times as|fünfmal so",
    "10": r"ten-?fold|verzehnfach\w*|ten times as|zehnmal so",
}
_TIMES_AS = re.compile(
    "|".join(rf"(?P<x{many}>\b(?:{words})\b)" for many, words in _FOLD.items())
    + r"|(?<![\w.,])(?P<digits>[0-9]{1,3}(?:[.,][0-9]{1,2})?)(?: times (?:as|more|the)|[ -]?mal so|[ -]?fold)\b",
    re.IGNORECASE,
)
_TWICE = re.compile(r"\b(?:twice|double the|doppelt so|das doppelte)\b", re.IGNORECASE)


def multiples(text: str, *, said: bool) -> Iterator[Figure]:
    """So many times as much: `tripled`, `1.5 times as dear`. A writer's `twice` is calculated with instead."""
    for match in _TIMES_AS.finditer(text):
        many = match["digits"] or (match.lastgroup or "x1")[1:]
        values = frozenset({Fraction(many.replace(",", "."))})
        yield Figure(*match.span(), match[0], values, values, "times", worded=True)
    for match in () if said else _TWICE.finditer(text):
        yield Figure(*match.span(), match[0], frozenset({Fraction(2)}), frozenset({Fraction(2)}), "times", worded=True)


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
_MANY = {"two": 2, "zwei": 2, "three": 3, "drei": 3, "four": 4, "vier": 4}
_SHARE = re.compile(
    r"(?<!first )(?<!second )(?<!latter )(?<!other )\bhalf(?= (?:of|the)\b)|(?<=\bby )half\b|\bdie hälfte\b"
    r"|\b(?P<many>an?|one|two|three|four|eine?[mn]?|zwei|drei|vier)"
    r"[ -](?P<part>third|quarter|fifth|tenth)s?\b(?= of (?!an hour\b)| majority\b)"
    r"|\b(?P<some>one|two|three|four)[ -](?P<bit>third|fifth|tenth)s?\b(?! part)"
    r"|(?<=\bby )(?:a|one) (?P<whole>third|quarter|fifth|tenth)\b"
    r"|\b(?P<viele>ein(?:em)?|zwei|drei|vier) ?(?P<teil>drittel|viertel|fünftel|zehntel)(?:n?\b|(?=mehrheit))"
    r"|(?<![\w/.,])(?P<above>[1-9])/(?P<below>[2-9]|10)(?= (?:of|der|des|von)\b)",
    re.IGNORECASE,
)


def shares(text: str) -> Iterator[Figure]:
    """`half of`, `two thirds of`: so many in a hundred, exact and as one rounds it."""
    for match in _SHARE.finditer(text):
        many = _MANY.get((match["many"] or match["some"] or match["viele"] or "").lower(), 1)
        below = _PARTS[(match["part"] or match["bit"] or match["whole"] or match["teil"] or "half").lower()]
        part = Fraction(int(match["above"] or many), int(match["below"] or below))
        values = frozenset(
            {100 * part, *(Fraction(round(10**places * 100 * part), 10**places) for places in (0, 1, 2))}
        )
        yield Figure(*match.span(), match[0], values, frozenset({part}), "%", worded=True)
