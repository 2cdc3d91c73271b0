"""The stance of an agent at the end of its turn: a small block of JSON, strictly read, never guessed from its words. A
reply without a block is "position not stated". Positions are compared by code: they are the same when they are spelled
the same (`folded`), so agents are asked to repeat the words of a position that they share."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from council.citations import places_in
from council.llm.structured import ReplyProblem
from council.safety.untrusted import clean

MAX_POSITION_CHARS = 400  # a sentence to compare, not the argument for it
_MAX_EVIDENCE = 32
_SAYS_NOTHING = frozenset({"position not stated", "not stated", "no position", "n/a", "tbd", "your position"})


class Stance(BaseModel):
    """The position of an agent after a turn. `evidence` are ids issued in this run; `would_change` is what would change
    its mind. `confidence` runs from 0 to 1 and is the agent's own word, calibrated by nobody."""

    # NOTE: the text above is part of the schema that models read. `evidence` may name places, too; see `ids`.
    model_config = ConfigDict(frozen=True, extra="forbid")

    position: Annotated[str, Field(min_length=1, max_length=MAX_POSITION_CHARS)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    evidence: Annotated[tuple[str, ...], Field(max_length=_MAX_EVIDENCE)]
    would_change: Annotated[str, Field(max_length=1_000)]

    @field_validator("position")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not _has_words(value) or folded(value) in _SAYS_NOTHING:
            raise ValueError("must say what you hold, in words of your own; this says nothing")
        return value

    @field_validator("would_change")
    @classmethod
    def _or_nothing(cls, value: str) -> str:
        return value if _has_words(value) else ""

    @field_validator("evidence")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """An entry without a word is none."""
        return tuple(dict.fromkeys(name.strip() for name in value if _has_words(name)))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids alone: that of `E1: path:line` is E1."""
        cited = ((name, [place.id for place in places_in(name) if place.id]) for name in self.evidence)
        return tuple(dict.fromkeys(id for name, ids in cited for id in ids or [name]))

    @property
    def key(self) -> str:
        return folded(self.position)


def _has_words(text: str) -> bool:
    return any(char.isalnum() for char in text)


def folded(text: str) -> str:
    """A text as it is compared. A model that repeats a sentence changes case, spaces, marks and encodings without
    meaning to."""
    one_shape = unicodedata.normalize("NFC", clean(text)).translate(_ONE_SHAPE)
    return " ".join(one_shape.casefold().split()).rstrip(".!。！ ")


_ONE_SHAPE = str.maketrans(
    {
        char: plain
        for chars, plain in (("‘’‚‛′ʼ", "'"), ("“”„‟″«»", '"'), ("‐‑‒–—―−", "-"), ("…", "..."))
        for char in chars
    }
)


def stance_problems(issued: Collection[str], stance: Stance) -> Iterator[ReplyProblem]:
    ids = tuple(issued)
    listed = ", ".join(ids) if len(ids) <= 40 else f"{ids[0]} to {ids[-1]}"
    known = f"the ids are {listed}" if issued else "none was issued yet, so write []"
    for at, name in enumerate(stance.ids):
        if name not in issued:
            yield ReplyProblem(f"{name[:40]!r} was never issued in this run; {known}", f"evidence[{at}]")
