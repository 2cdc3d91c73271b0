"""A run as plain values: who was called, what was read, who stood where. Nothing here knows how it came to be.

A decision page is for who wants the answer; an account is for who asks how it came about. Both are made of the same
transcript, so they cannot disagree.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from council.artifacts.page import Page
from council.llm.base import Source
from council.turns.result import ModelCall


class RequestEntry(msgspec.Struct, frozen=True):
    """A request by an agent or (round 0) by the command. Without `error_code` it was given, as evidence `id`, or again
    as the earlier `repeats`. `path` is empty for what is no single file. `excerpt` is how its text begins."""

    step: str
    asked_by: str
    round: int
    request: str
    id: str = ""
    path: str = ""
    first_line: int = 0
    last_line: int = 0
    sha256: str = ""
    title: str = ""
    repeats: str = ""
    error_code: str = ""
    error: str = ""
    excerpt: str = ""


class StanceEntry(msgspec.Struct, frozen=True):
    """The stance of an agent after a turn. `key` is equal for positions that are the same, empty for none."""

    role: str
    round: int
    key: str = ""
    position: str = ""
    confidence: float = 0.0
    evidence: tuple[str, ...] = ()
    would_change: str = ""
    advocate: bool = False


class MindChange(msgspec.Struct, frozen=True):
    """`evidence` are the ids named that were new to the agent; empty: unexplained."""

    role: str
    round: int
    before: str
    after: str
    evidence: tuple[str, ...]


class Mending(msgspec.Struct, frozen=True):
    """A structured block that could not be read as it came, of a round or (0) of a closing call. `how` is what was done to
    read it, `calls` how many repair turns that took, `fault` why it stayed unreadable."""

    step: str
    role: str
    round: int
    what: Literal["stance", "ranking", "decision record"]
    how: str
    calls: int
    fault: str = ""


class Account(msgspec.Struct, frozen=True):
    """A deliberation. `sources` are the texts behind the ids of `reads`. `letters` are what the members called one another,
    by role. `written_by` wrote the decision, in place of those in `instead_of`, whose closing calls failed. `stopped` says
    why the rounds ended in a word, empty when they are not known to have ended."""

    protocol: str
    roles: tuple[str, ...]
    model: str
    calls: tuple[ModelCall, ...]
    reads: tuple[RequestEntry, ...]
    page: Page
    sources: tuple[Source, ...] = ()
    max_rounds: int = 0
    letters: dict[str, str] = {}
    stances: tuple[StanceEntry, ...] = ()
    changes: tuple[MindChange, ...] = ()
    mended: tuple[Mending, ...] = ()
    written_by: str = ""
    instead_of: tuple[str, ...] = ()
    stopped: str = ""
    stopped_because: str = ""
    calls_saved: int = 0
