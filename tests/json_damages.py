"""Known objects, and what models do to their JSON: a seeded generator for the suite of `council.llm.structured`.

`spell` writes JSON with chosen misspellings; the classes in `DAMAGES` put them, and what surrounds or shortens an object,
on a random one. Whatever they do, the object meant is known.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel


class Claim(BaseModel):
    text: str
    evidence: tuple[str, ...] = ()
    weight: float | None = None


class Opinion(BaseModel):
    position: str
    confidence: Literal["high", "medium", "low"]
    votes: int
    settled: bool
    claims: tuple[Claim, ...] = ()
    would_change: tuple[str, ...] = ()
    caveat: str | None = None


_SENTENCES = (
    "Ship on Friday.",
    'She said "not before the tests pass" and left.',
    'The word "safe" is used twice, "sound" once.',
    'He asked: "Who signs?", then nobody spoke.',
    "It's the team's call, isn't it?",
    "The users' wishes come first.",
    "See https://example.org/a#b // not a comment, /* nor this */",
    "A brace { here, a bracket ] there: {x: 1}, [1, 2",
    "True or False? None of it is null.",
    "“Curly” quotes, ‘both’ kinds — and a dash…",
    "Grüße, 日本語, 😀",
    "First line.\nSecond line.\n\n- an item: yes\n- another, no",
    "A tab\tand a back\\slash, C:\\dir",
    "```json\n{}\n```",
    "the tag </think> and <think>",
    "Costs 5, then 10,000; ends with a comma,",
    "",
    "key: value",
    "# not a heading",
)


def opinion(rng: random.Random) -> dict[str, Any]:
    def sentence() -> str:
        return " ".join(rng.sample(_SENTENCES, rng.choice((1, 1, 2))))

    def claim() -> dict[str, Any]:
        found: dict[str, Any] = {"text": sentence(), "evidence": [f"E{rng.randint(1, 40)}"] * rng.randint(0, 3)}
        return found | ({"weight": rng.choice((0.25, 1.0, -2.5e-3, None))} if rng.random() < 0.5 else {})

    found: dict[str, Any] = {
        "position": sentence(),
        "confidence": rng.choice(("high", "medium", "low")),
        "votes": rng.randint(-3, 10**6),
        "settled": rng.random() < 0.5,
        "claims": [claim() for _ in range(rng.randint(0, 3))],
        "would_change": [sentence() for _ in range(rng.randint(0, 2))],
    }
    return found | ({"caveat": rng.choice((None, sentence()))} if rng.random() < 0.6 else {})


# ── spelling ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Style:
    """How JSON is misspelled; a share is the probability at each place."""

    quote: str = '"'
    bare_apostrophes: bool = False  # within single quotes
    unquoted_keys: float = 0
    python_literals: bool = False
    trailing_commas: float = 0
    missing_commas: float = 0  # at the end of a line
    comments: tuple[str, ...] = ()
    raw_line_ends: bool = False
    raw_quotes: bool = False
    indent: int = 2


@dataclass
class _Speller:
    style: Style
    rng: random.Random
    out: list[str] = field(default_factory=list)

    def value(self, value: Any, level: int) -> None:
        if isinstance(value, dict):
            self.container("{}", [(key, entry) for key, entry in value.items()], level)
        elif isinstance(value, list):
            self.container("[]", [(None, entry) for entry in value], level)
        elif isinstance(value, str):
            self.out.append(self.text(value))
        elif self.style.python_literals and (value is None or isinstance(value, bool)):
            self.out.append(repr(value))
        else:
            self.out.append(json.dumps(value))

    def container(self, brackets: str, entries: list[tuple[str | None, Any]], level: int) -> None:
        line = "\n" + " " * self.style.indent * (level + 1) if self.style.indent else ""
        self.out.append(brackets[0])
        for number, (key, entry) in enumerate(entries, start=1):
            self.out.append(self.comment() + line)
            if key is not None:
                unquoted = self.rng.random() < self.style.unquoted_keys
                self.out.append(f"{key if unquoted else self.text(key)}: ")
            self.value(entry, level + 1)
            self.out.append(self.comma(last=number == len(entries)))
        self.out.append(self.comment() + (line[: -self.style.indent] if line and entries else "") + brackets[1])

    def comma(self, *, last: bool) -> str:
        if last:
            return "," if self.rng.random() < self.style.trailing_commas else ""
        return "" if self.rng.random() < self.style.missing_commas else "," if self.style.indent else ", "

    def comment(self) -> str:
        if not self.style.comments or self.rng.random() < 0.6:
            return ""
        comment = self.rng.choice(self.style.comments)
        return f" {comment}" if comment.startswith("/*") else f" {comment}\n"

    def text(self, text: str) -> str:
        quote = self.style.quote
        spelled = json.dumps(text, ensure_ascii=self.rng.random() < 0.3)[1:-1]
        if self.style.raw_line_ends:
            spelled = re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\n", spelled).replace("\\t", "\t")
        if quote == "'":
            spelled = spelled.replace('\\"', '"')
            spelled = spelled if self.style.bare_apostrophes else spelled.replace("'", "\\'")
        elif self.style.raw_quotes:
            spelled = spelled.replace('\\"', '"')
        return f"{quote}{spelled}{quote}"


def spell(value: dict[str, Any], rng: random.Random, style: Style) -> str:
    speller = _Speller(style, rng)
    speller.value(value, 0)
    return "".join(speller.out)


# ── damages ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Damaged:
    """A reply that was meant to say `meant`; `complete` if the provider says that it ended by itself."""

    reply: str
    meant: dict[str, Any]
    complete: bool = True


Damage = Callable[[dict[str, Any], random.Random], str]

COMMENTS = ("// as agreed, see above", "# it's a guess", "/* two\n lines */", "// {old: 1},", "/* , */")


def _plain(value: dict[str, Any], rng: random.Random) -> str:
    return spell(value, rng, Style(indent=rng.choice((0, 2, 4))))


def _fenced_or_in_prose(value: dict[str, Any], rng: random.Random) -> str:
    text = _plain(value, rng)
    run = rng.choice(("```", "~~~", "````"))
    return rng.choice(
        (
            f"{run}json\n{text}\n{run}",
            f"Here is my answer:\n\n{run}\n{text}\n{run}\nI hope it's what you want.",
            f"Sure! {text}",
            f"{text}\n\nLet me know.",
            f"Here (see [1]): {text} — that's all.",
            f"{run}JSON\n{text}{run}",
            f"\ufeff{text}\n",
            f"As asked:\n{run}json\n{text}",
        )
    )


def _thoughts(value: dict[str, Any], rng: random.Random) -> str:
    text = _plain(value, rng)
    draft = _plain(opinion(rng) if rng.random() < 0.5 else value, rng)
    return rng.choice(
        (
            f"<think>Hm, {{x}}: it's [not] clear.</think>{text}",
            f"<think>\n{draft}\n</think>\n\n{text}",
            f"I weigh it {{first}}.\n{draft}\n</think>\n{text}",
            f"<thinking>\nA draft:\n```json\n{draft}\n```\n</thinking>\n```json\n{text}\n```",
            f"<think>one</think>\n<think>two</think>{text}",
        )
    )


def _trailing_commas(value: dict[str, Any], rng: random.Random) -> str:
    return spell(value, rng, Style(trailing_commas=rng.choice((0.5, 1)), indent=rng.choice((0, 2))))


def _single_quotes(value: dict[str, Any], rng: random.Random) -> str:
    return spell(value, rng, Style(quote="'", bare_apostrophes=rng.random() < 0.4, indent=rng.choice((0, 2))))


def _unquoted_keys(value: dict[str, Any], rng: random.Random) -> str:
    return spell(value, rng, Style(unquoted_keys=rng.choice((0.3, 1)), indent=rng.choice((0, 2))))


def _comments(value: dict[str, Any], rng: random.Random) -> str:
    return spell(value, rng, Style(comments=COMMENTS, indent=rng.choice((0, 2))))


def _python_literals(value: dict[str, Any], rng: random.Random) -> str:
    if rng.random() < 0.3:
        return repr(value)
    return spell(value, rng, Style(python_literals=True, quote=rng.choice("\"'"), indent=rng.choice((0, 2))))


def _texts_unescaped(value: dict[str, Any], rng: random.Random) -> str:
    raw = rng.choice(((True, False), (False, True), (True, True)))
    return spell(value, rng, Style(raw_line_ends=raw[0], raw_quotes=raw[1], indent=rng.choice((0, 2))))


def _truncated(value: dict[str, Any], rng: random.Random) -> str:
    style = rng.choice((Style(), Style(indent=0), Style(trailing_commas=1), Style(quote="'"), Style(raw_quotes=True)))
    text = spell(value, rng, style)
    return rng.choice(("", "", "```json\n", "Here: ", "<think>x</think>")) + text[: rng.randrange(1, len(text))]


def _more_than_spelling(value: dict[str, Any], rng: random.Random) -> str:
    text = _plain(value, rng)
    pair = [text, _plain(opinion(rng), rng)]
    rng.shuffle(pair)
    wrong_type = value | {"votes": rng.choice((str(value["votes"]), None, 1.5, True))}
    wrong_enum = value | {"confidence": rng.choice(("very high", "High", 3))}
    missing = {key: entry for key, entry in value.items() if key != "votes"}
    bracket = rng.choice(structure(text, "{}[]"))
    return rng.choice(
        (
            rng.choice(("\n", " ", "\n\nOr rather:\n")).join(pair),
            f"```json\n{pair[0]}\n```\n```json\n{pair[1]}\n```",
            _plain(wrong_type, rng),
            _plain(wrong_enum, rng),
            _plain(missing, rng),
            _plain(value | {"mood": "calm"}, rng),
            text[:bracket] + text[bracket + 1 :],
            text[:bracket] + text[bracket : bracket + 1] + text[bracket:],
            text[:-1],
            text.replace('"votes":', '"votes": 1, "votes":', 1),
        )
    )


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def structure(text: str, marks: str) -> list[int]:
    """Where such a mark stands in strict JSON, outside its texts; a quotation mark where it opens or closes one."""
    bare = _TEXT.sub(lambda found: f'"{" " * (len(found[0]) - 2)}"', text)
    return [at for at, char in enumerate(bare) if char in marks]


DAMAGES: dict[str, Damage] = {
    "fenced or in prose": _fenced_or_in_prose,
    "thoughts before it": _thoughts,
    "trailing commas": _trailing_commas,
    "single quotes": _single_quotes,
    "keys without quotes": _unquoted_keys,
    "comments": _comments,
    "Python literals": _python_literals,
    "quotes and line ends unescaped": _texts_unescaped,
    "cut off": _truncated,
    "more than spelling": _more_than_spelling,
}
TRUNCATION = "cut off"
BEYOND_SPELLING = "more than spelling"


def damaged(name: str, seed: int) -> Damaged:
    """A damage of a class: a reply that is not, as it stands, the JSON of what was meant."""
    rng = random.Random(f"{name}/{seed}")
    for _ in range(100):
        meant = opinion(rng)
        reply = DAMAGES[name](meant, rng)
        if not _is_json_of(reply, meant):
            return Damaged(reply, meant, complete=name != TRUNCATION or rng.random() < 0.5)
    raise AssertionError(f"{name} damages nothing")


def _is_json_of(reply: str, meant: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(reply) == meant)
    except ValueError:
        return False
