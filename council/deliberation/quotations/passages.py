"""Texts that were read, as passages that can be searched; and the citations that name a place in one. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from council.deliberation.quotations.normalization import LooseText, plain_lines
from council.knowledge.cortex.chunks import is_artifact
from council.lines_and_pages import is_paged, numbers, without_marks
from council.turns.evidence import Evidence

Place = tuple[str, int, str, int]  # of a line: its file, number and text, and how often that stood there before
ARCHIVE = "session_states/"
NAMED_NUMBER = re.compile(  # `Station Road 4`, where a document calls it so, is no 4
    r"\b(?P<name>[^\W\d_a-zß-ÿ][a-zß-ÿ][\w'’-]* (?P<number>[0-9]{1,3}))(?![\w%]|[.,][0-9])"
    r"(?=(?:[\s*_-]*(?P<noun>[^\W\d_]{2,}))?)"
)
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
    def places(self) -> list[Place]:
        """The place of each line, alike in every passage that holds it. Of a PDF many lines stand on one page, and a passage
        may begin in the middle of it: there the text tells them apart, and how often the page has had it."""
        where = self.path or self.id
        if not is_paged(self.path):
            return [(where, number, "", 0) for number in self.numbers]
        seen: Counter[Place] = Counter()
        found: list[Place] = []
        for number, line in zip(self.numbers, self.text.removesuffix("\n").split("\n"), strict=True):
            place = (where, number, line.strip(), 0)
            found.append((*place[:3], seen[place]))
            seen[place] += 1
        return found

    @cached_property
    def named_numbers(self) -> set[str]:
        return {match["name"] for match in NAMED_NUMBER.finditer(self.text)}

    @cached_property
    def plain(self) -> tuple[str, list[int]]:
        """The text as it is compared, and where each line of the passage begins in it."""
        return plain_lines(without_marks(self.path, self.text))

    @cached_property
    def numbered(self) -> tuple[str, list[int]]:
        """The same with the numbers that lines begin with; the very same where none does."""
        text = without_marks(self.path, self.text)
        return plain_lines(text, numbers=True) if _NUMBERED.search(text) else self.plain

    @cached_property
    def loose(self) -> LooseText:
        return LooseText(self.plain[0])

    @cached_property
    def loose_numbered(self) -> LooseText:
        return LooseText(self.numbered[0]) if self.numbered is not self.plain else self.loose

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
