"""Texts that were read, as passages that can be searched; and the citations that name a place in one. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from council.citations import CitedPlace
from council.deliberation.quotations.normalization import plain_lines
from council.knowledge.cortex.chunks import is_artifact
from council.places import is_paged, numbers, unit_of, without_marks
from council.turns.evidence import Evidence

ARCHIVE = "session_states/"
_MAX_DESCRIBED = 8
_NUMBERED = re.compile(r"(?m)^[ \t>]*+[0-9]")
_INDENTATION = re.compile(r"(?m)^    ")
_HIT = re.compile(
    r"(?m)^(?P<path>\S.*):p?(?P<first>[0-9]+)(?:-[0-9]+)? sha256 (?P<sha256>[0-9a-f]{64})(?P<rest>[^\n]*)$"
)


@dataclass(frozen=True)
class Passage:
    """A stretch of text that was read: lines (of a PDF: pages) from `first_line` of `path` (empty: of no file). `own`: written
    by the council itself. `sha256` is that of the whole file."""

    id: str
    path: str
    first_line: int
    text: str
    sha256: str = ""
    own: bool = False

    @property
    def last_line(self) -> int:
        return self.numbers[-1]

    @cached_property
    def numbers(self) -> list[int]:
        """The number of each line; of a PDF, that of its page."""
        return numbers(self.path, self.text, self.first_line)

    @cached_property
    def plain(self) -> tuple[str, list[int]]:
        """The text as it is compared, and where each line of the passage begins in it."""
        return plain_lines(without_marks(self.path, self.text))

    @cached_property
    def numbered(self) -> tuple[str, list[int]]:
        """The same with the numbers that lines begin with; the very same where none does."""
        text = without_marks(self.path, self.text)
        return plain_lines(text, numbers=True) if _NUMBERED.search(text) else self.plain

    def line_at(self, starts: Sequence[int], offset: int) -> int:
        return self.numbers[min(bisect_right(starts, offset), len(self.numbers)) - 1]


def passages_of(item: Evidence, own_paths: Collection[str] = ()) -> list[Passage]:
    """The passages of a piece of evidence. A Cortex answer holds a passage per hit, each with its own place.
    `own_paths`: files that the council wrote."""
    if not item.id:
        return []
    if item.path:
        own = (
            item.path in own_paths or item.path.startswith(ARCHIVE) or (item.first_line == 1 and is_artifact(item.text))
        )
        return [Passage(item.id, item.path, item.first_line, item.text, item.sha256, own)]
    if item.action != "QUERY_CORTEX":
        return [Passage(item.id, "", 1, item.text)]
    passages = []
    heads = list(_HIT.finditer(item.text))
    ends = [*(head.start() for head in heads[1:]), len(item.text)]
    for head, end in zip(heads, ends, strict=False):
        path = head["path"]
        own = path in own_paths or path.startswith(ARCHIVE) or head["rest"].startswith(" [the council's own artifact")
        text = _INDENTATION.sub("", item.text[head.end() + 1 : end]).rstrip("\n")
        passages.append(Passage(item.id, path, int(head["first"]), text, head["sha256"], own))
    return passages


Fault = Literal["", "evidence", "place"]


class Places:
    """The places that there are to cite. `issued`: the ids of all evidence."""

    def __init__(self, passages: Iterable[Passage], issued: Iterable[str]) -> None:
        self.issued = frozenset(issued)
        self.spans: dict[str, dict[str, list[tuple[int, int]]]] = {}  # path -> id -> lines
        self._unnamed: dict[str, list[tuple[int, int]]] = {}  # id -> lines, of what is no file
        for passage in passages:
            of_id = self.spans.setdefault(passage.path, {}) if passage.path else self._unnamed
            of_id.setdefault(passage.id, []).append((passage.first_line, passage.last_line))

    def described(self, id: str) -> str:
        """The lines of files that a piece of evidence holds."""
        held = [
            f"{path}, {unit_of(path)}s {low}-{high}"
            for path, ids in self.spans.items()
            for low, high in ids.get(id, ())
        ]
        return "; ".join(held[:_MAX_DESCRIBED]) or "of no file"

    def judged(self, cited: CitedPlace) -> tuple[CitedPlace, Fault]:
        """The citation as it is right, or what is wrong with it where that cannot be told.

        A citation that leaves no doubt is corrected. It may give lines without a path, or a path without its folders or an id.
        It may also give an id where only another one holds these lines. Its lines may run on behind the end of what was read.
        """
        missing: Fault = "place" if cited.id in self.issued or not cited.id else "evidence"
        if not cited.path:
            if cited.id not in self.issued or not cited.first:
                return cited, "" if cited.id in self.issued else "evidence"
            held = [(path, ids[cited.id]) for path, ids in self.spans.items() if cited.id in ids]
            held += [("", self._unnamed[cited.id])] if cited.id in self._unnamed else []
            if cited.in_pages and not any(is_paged(path) for path, _ in held):
                return CitedPlace(cited.id), ""
            met = [(path, lines) for path, spans in held if (lines := _overlap(spans, cited.first, cited.last))]
            return (CitedPlace(cited.id, met[0][0], *met[0][1]) if len(met) == 1 else cited), "" if met else "place"
        known = [cited.path] if cited.path in self.spans else []
        ending = known or [path for path in self.spans if path.endswith(f"/{cited.path}")]
        whole = [path for path in ending if cited.id in self.spans[path]] or ending
        if len(whole) != 1 or (cited.in_pages and not is_paged(whole[0])):
            return cited, missing
        path, ids = whole[0], self.spans[whole[0]]
        for id in dict.fromkeys((cited.id, *ids)):
            lines = _overlap(ids.get(id, ()), cited.first, cited.last)
            if lines is not None:
                return CitedPlace(id, path, *lines), ""
        return cited, missing


def _overlap(spans: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int] | None:
    """The cited lines as far as they were read; (0, 0) for a citation without lines; None where none was."""
    if not first:
        return (0, 0) if spans else None
    met = [(max(first, low), min(last, high)) for low, high in spans if first <= high and low <= last]
    return max(met, key=lambda lines: lines[1] - lines[0], default=None)
