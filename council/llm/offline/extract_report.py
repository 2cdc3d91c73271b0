"""Markdown of the offline engine: the label line, quotes with citations, sections, a bounded size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from council.citations import CitedPlace
from council.llm.offline.text import Statement, holds_request

LABEL = (
    "*Offline, extractive, no language model: quoted lines are copied from the documents; "
    "findings are pattern matches, not judgements.*"
)
_MAX_QUOTE_CHARS = 230  # two lines on a page; longer statements are cut at a word and end in "…" after the citation


@dataclass(frozen=True)
class ExtractSection:
    """A bold label, a line of text after it, and bullets; `total` is how many there would be without limits.

    Bullets beyond the size of a turn are dropped from the end, and the label then says how many of `total` are shown.
    """

    label: str
    text: str = ""
    bullets: tuple[str, ...] = ()
    total: int = 0


def cite(statement: Statement) -> str:
    """`[E1: docs/path.md:12]` or `[E1: docs/path.md:12-14]`."""
    return str(CitedPlace(statement.source, statement.path, statement.line, statement.end_line))


def quote(statement: Statement) -> str:
    """The statement in typographic quotes with its citation; verbatim, cut at a word when long."""
    text = statement.text
    heads = [cell for cell in statement.header if cell]
    columns = f" (columns: {'; '.join(heads)})" if len(heads) > 2 and not holds_request(" ".join(heads)) else ""
    if len(text) <= _MAX_QUOTE_CHARS:
        return f"“{text}” {cite(statement)}{columns}"
    kept = text[:_MAX_QUOTE_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:")
    return f"“{kept}” {cite(statement)} …"


def figure(value: float, language: str) -> str:
    """A number as the language writes it: 7,225.50 or 7.225,50."""
    text = f"{value:,.2f}".removesuffix(".00")
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text


def count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def listed(words: Sequence[str], *, last: str = "and") -> str:
    """Words in italics, joined as a sentence joins them; anything that could be read as markup is taken out."""
    clean = ["*" + re.sub(r"[^\w’' -]", "", word) + "*" for word in words]
    if len(clean) < 2:
        return "".join(clean)
    return f"{', '.join(clean[:-1])} {last} {clean[-1]}"


def render(sections: Sequence[ExtractSection], *, tail: Sequence[str] = (), max_chars: int) -> str:
    """The label line, the sections that have something to say, then `tail` lines, each on a line of its own.

    Above `max_chars` the last bullet of the longest section goes first, until it fits; the tail always stays.
    """
    kept = [section for section in sections if section.text or section.bullets]
    while len(_markdown(kept, tail)) > max_chars and any(len(section.bullets) > 1 for section in kept):
        longest = max(range(len(kept)), key=lambda i: sum(map(len, kept[i].bullets)) * (len(kept[i].bullets) > 1))
        section = kept[longest]
        kept[longest] = replace(section, bullets=section.bullets[:-1])
    return _markdown(kept, tail)


def _markdown(sections: Sequence[ExtractSection], tail: Sequence[str]) -> str:
    parts = [LABEL]
    for section in sections:
        shown = len(section.bullets)
        share = f"({shown} of {section.total} shown)" if section.total > shown > 0 else ""
        head = " ".join(filter(None, (f"**{section.label}**" if section.label else "", share, section.text)))
        parts.append("\n".join([head, *([""] if section.bullets else []), *(f"- {b}" for b in section.bullets)]))
    parts.extend(tail)
    return "\n\n".join(parts) + "\n"
