"""Known objects, and what models do to their JSON: a seeded generator for the tests of `council.llm.structured`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel


class Claim(BaseModel):
    text: str
    evidence: tuple[str, ...] = ()


class Opinion(BaseModel):
    position: str
    confidence: Literal["high", "medium", "low"]
    votes: int
    settled: bool
    claims: tuple[Claim, ...] = ()
    caveat: str | None = None


_SENTENCES = (
    "Ship on Friday.",
    'She said "not before the tests pass" and left.',
    'He asked: "Who signs?", then nobody spoke.',
    "It's the team's call, isn't it?",
    "See https://example.org/a#b // not a comment, /* nor this */",
    "A brace { here, a bracket ] there: {x: 1}, [1, 2",
    "True or False? None of it is null.",
    "“Curly” quotes, ‘both’ kinds — Grüße, 日本語, 😀",
    "First line.\nSecond line.\n\n- an item: yes\n- another, no",
    "A tab\tand a back\\slash, C:\\dir",
    "```json\n{}\n```",
    "Costs 5, then 10,000; ends with a comma,",
    "",
    "# not a heading",
)


def opinion(rng: random.Random) -> dict[str, Any]:
    def sentence() -> str:
        return " ".join(rng.sample(_SENTENCES, rng.choice((1, 1, 2))))

    return {
        "position": sentence(),
        "confidence": rng.choice(("high", "medium", "low")),
        "votes": rng.randint(-3, 10**6),
        "settled": rng.random() < 0.5,
        "claims": [
            {"text": sentence(), "evidence": ["E1", "E22"][: rng.randint(0, 2)]} for _ in range(rng.randint(0, 2))
        ],
        "caveat": rng.choice((None, sentence())),
    }


def spelled(value: dict[str, Any], rng: random.Random) -> str:
    return json.dumps(value, ensure_ascii=rng.random() < 0.3, indent=rng.choice((None, 2)))


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def structure(text: str, marks: str) -> list[int]:
    """Where such a mark stands in strict JSON, outside its texts; a quotation mark where it opens or closes one."""
    bare = _TEXT.sub(lambda found: f'"{" " * (len(found[0]) - 2)}"', text)
    return [at for at, char in enumerate(bare) if char in marks]


def _single_quoted(text: str) -> str:
    return _TEXT.sub(lambda found: "'" + found[0][1:-1].replace('\\"', '"').replace("'", "\\'") + "'", text)


def _trailing_commas(text: str) -> str:
    for at in reversed(structure(text, "}]")):
        before = text[:at].rstrip()
        if before[-1] not in "{[":
            text = before + "," + text[len(before) :]
    return text


def _one_mark_changed(text: str, rng: random.Random) -> str:
    at = rng.choice(structure(text, '{}[],:"'))
    return text[:at] + rng.choice(("", text[at] * 2, rng.choice("{}[],:'\n "))) + text[at + 1 :]


DAMAGES: dict[str, Callable[[str, random.Random], str]] = {
    "trailing commas": lambda text, rng: _trailing_commas(text),
    "single quotes": lambda text, rng: _single_quoted(text),
    "keys without quotes": lambda text, rng: re.sub(r'"(\w+)":', r"\1:", text),
    "Python literals": lambda text, rng: repr(json.loads(text)),
    "line ends unescaped": lambda text, rng: text.replace("\\n", "\n"),
    "quotes unescaped": lambda text, rng: text.replace('\\"', '"'),
    "comments": lambda text, rng: text.replace(", ", ", /* so */ ").replace(",\n", ", // so\n"),
    "commas missing": lambda text, rng: text.replace(",\n", "\n", 1),
    "one mark changed": _one_mark_changed,
}


def damaged(name: str, seed: int) -> tuple[str, dict[str, Any]]:
    """A reply that is not strict JSON, and the object that it was meant to say."""
    rng = random.Random(f"{name}/{seed}")
    while True:
        meant = opinion(rng)
        reply = DAMAGES[name](spelled(meant, rng), rng)
        try:
            json.loads(reply)
        except ValueError:
            return reply, meant
