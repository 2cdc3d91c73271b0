"""Where an agent stands at the end of its turn: a small block of JSON, strictly read, never guessed from its words.

A reply without a block is "position not stated", which is an answer. A block that does not fit is asked for again, at
most twice. Positions are compared by code: two are the same when they are spelled the same, case, spacing and a final
stop aside, so agents are asked to repeat the words of a position that they share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from council.llm.structured import Check, Problem

MAX_POSITION_CHARS = 400  # a sentence to compare, not the argument for it
_MAX_EVIDENCE = 32


class Stance(BaseModel):
    """What an agent holds after a turn. `evidence` are ids issued in this run; `would_change` is what would change its
    mind; `confidence` runs from 0 to 1 and is the agent's own word, calibrated by nobody."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    position: Annotated[str, Field(min_length=1, max_length=MAX_POSITION_CHARS)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    evidence: Annotated[tuple[str, ...], Field(max_length=_MAX_EVIDENCE)]
    would_change: Annotated[str, Field(max_length=1_000)]

    @field_validator("position")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip(" \t\r\n.!\"'"):
            raise ValueError("must say what you hold, and is blank")
        return value

    @property
    def key(self) -> str:
        """Equal for positions that are the same."""
        return folded(self.position)


def folded(text: str) -> str:
    """A text as it is compared: one case, single spaces, no final stop."""
    return " ".join(text.casefold().split()).rstrip(".! ")


def only_issued(issued: Collection[str]) -> Check[Stance]:
    """A check that refuses evidence ids which nobody was ever shown."""
    known = f"the ids are {_listed(tuple(issued))}" if issued else "none was issued yet, so write []"

    def check(stance: Stance) -> Iterable[Problem]:
        for at, name in enumerate(stance.evidence):
            if name not in issued:
                yield Problem("schema", f"{name[:40]!r} was never issued in this run; {known}", f"evidence[{at}]")

    return check


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids) if len(ids) <= 40 else f"{ids[0]} to {ids[-1]}"
