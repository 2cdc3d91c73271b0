"""The contents of a decision page as plain values; nothing here knows how it came to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Scalar = str | int | float | bool | None
Outcome = Literal["fulfilled", "found_nothing", "refused"]


@dataclass(frozen=True)
class Footnote:
    """A piece of evidence: `first_line`–`last_line` of a file with `sha256`; `how` says on whose request."""

    id: str
    path: str
    first_line: int
    last_line: int
    sha256: str
    title: str
    how: str


@dataclass(frozen=True)
class PageSpeech:
    """The words of an agent; `failure` instead when it could not speak."""

    role: str
    text: str
    failure: str = ""


@dataclass(frozen=True)
class PageRequest:
    """The outcome of a request token: `fulfilled` with the evidence `id`, or refused with `detail` as the reason. A search
    without a hit was answered, too: `found_nothing`.
    `body` is what it brought when that is no file that a reader could open."""

    asked_by: str
    spelling: str
    outcome: Outcome
    detail: str
    id: str = ""
    body: str = ""


@dataclass(frozen=True)
class Round:
    number: int
    entries: tuple[PageSpeech | PageRequest, ...]


@dataclass(frozen=True)
class Table:
    """A table under a heading; `lines` stand below it as a list. All text is from agents, and is made harmless."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of a decision under a heading of its own; a single item of `listed` none is a paragraph."""

    heading: str
    items: tuple[str, ...]
    listed: Literal["none", "bullets", "numbers"] = "none"


@dataclass(frozen=True)
class Page:
    """A decision page. `heading` stands over `answer`, `sections` below it; `notes` stand above everything when something
    is to be known before reading on; `front_matter` is flat. `has_changes`: members changed their minds."""

    title: str
    front_matter: Mapping[str, Scalar | tuple[str, ...]]
    notes: tuple[str, ...]
    heading: str
    answer: str
    task: str
    byline: str = ""
    inputs: tuple[PageRequest, ...] = ()
    rounds: tuple[Round, ...] = ()
    footnotes: tuple[Footnote, ...] = ()
    tables: tuple[Table, ...] = ()
    sections: tuple[Section, ...] = ()
    has_changes: bool = False
