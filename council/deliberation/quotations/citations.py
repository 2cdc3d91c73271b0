"""Citations as they stand in a text: `[E1]`, `[E1: docs/a.md:3-5]`, `[E1: docs/a.md:2, 4]`, `[E1, E2: b.md]`,
`[E1: docs/a.pdf:p3]`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from council.places import spelled

ANY = re.compile(r"\[(E[0-9]{1,4}(?![0-9A-Za-z])[^\[\]\n]{0,600})\](?!\()")
_NEXT = re.compile(r"\s*[,;&]\s*(?:and\s+)?(?=E[0-9]{1,4}(?![0-9A-Za-z]))|\s+and\s+(?=E[0-9]{1,4}(?![0-9A-Za-z]))")
_PART = re.compile(r"(?P<id>E[0-9]{1,4})(?:\s*[:,]\s*(?P<rest>.*)|.*)", re.DOTALL)
_RANGE = r"[Lp]?[0-9]{1,7}(?:\s*[-–—]\s*[Lp]?[0-9]{1,7})?"
_LINES = re.compile(rf"(?:(?:lines?|ll?\.?|pages?|pp?\.?)\s*)?{_RANGE}(?:\s*(?:[,;+&]|and)\s*{_RANGE})*", re.IGNORECASE)
_WITH_LINES = re.compile(r"(?P<path>[^:#]{1,512}?)\s*(?::|#|,\s*(?=[lp]))\s*(?P<lines>.+)", re.IGNORECASE | re.DOTALL)
_A_RANGE = re.compile(r"[Lp]?(?P<first>[0-9]{1,7})(?:\s*[-–—]\s*[Lp]?(?P<last>[0-9]{1,7}))?", re.IGNORECASE)
_A_PATH = re.compile(r"[^\s/][^/]*\.[A-Za-z0-9]{1,8}|\S*/\S.*")


@dataclass(frozen=True)
class CitedPlace:
    """One place of a citation: evidence, and a path and lines (of a PDF: pages) of it where they are named (`first` 0: the
    whole). `in_pages`: it was spelled as pages, which only a PDF has."""

    id: str
    path: str = ""
    first: int = 0
    last: int = 0
    in_pages: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if not self.path:
            return f"[{self.id}]"
        if not self.first:
            return f"[{self.id}: {self.path}]"
        return f"[{self.id}: {spelled(self.path, self.first, self.last if self.last > self.first else None)}]"


@dataclass(frozen=True)
class Citation:
    """A pair of brackets with one or more places in it."""

    start: int
    end: int
    text: str
    places: tuple[CitedPlace, ...]


def citations(text: str) -> Iterator[Citation]:
    """All citations of a text, in order; what is code in it, the caller knows."""
    for match in ANY.finditer(text):
        yield Citation(match.start(), match.end(), match[0], tuple(places_in(match[1])))


def places_in(inside: str) -> Iterator[CitedPlace]:
    """The places that the inside of the brackets names."""
    for part in _NEXT.split(inside):
        match = _PART.fullmatch(part.strip())
        if match is None:
            continue
        id, rest = match["id"], (match["rest"] or "").strip()
        located = _WITH_LINES.fullmatch(rest)
        if lines := _LINES.fullmatch(rest):
            yield from _at_lines(id, "", lines[0])
        elif located and (lines := _LINES.fullmatch(located["lines"].strip())):
            yield from _at_lines(id, _path(located["path"]), lines[0])
        else:  # a remark, such as "the second paragraph", names the evidence as a whole
            path = _path(rest)
            yield CitedPlace(id, path if _A_PATH.fullmatch(path) else "")


def _at_lines(id: str, path: str, ranges: str) -> Iterator[CitedPlace]:
    for found in _A_RANGE.finditer(ranges):
        first = int(found["first"])
        yield CitedPlace(id, path, first, max(first, int(found["last"] or 0)), ranges.lower().startswith("p"))


def _path(text: str) -> str:
    return text.strip().strip("`").removeprefix("./")
