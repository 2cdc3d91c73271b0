"""Pattern rules over statements: what is marked as open, and where somebody takes a position. Matches, no judgements."""

from __future__ import annotations

import re
from collections.abc import Iterable

from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import pattern

_MARK = re.compile(r"\b(?:TODO|TBD|TBC|TBA|FIXME)\b|\?\?\?")
_OPEN_SECTION = re.compile(
    r"(?i)^(?:\W|\d)*(?:open|still open|unresolved|to.?do|still to do|offene?|noch (?:zu|offen)|zu klären)\b(?!ing)"
)


def open_items(statements: Iterable[Statement]) -> list[Statement]:
    """Marked as not settled: TODO and its kin, unchecked boxes, "to be decided", items under such a heading."""
    found = []
    for s in statements:
        listed = s.kind == "item" and s.checked is not True and _OPEN_SECTION.search(s.section) is not None
        if (
            s.checked is False
            or listed
            or (s.checked is None and (_MARK.search(s.text) or pattern("patterns", "open").search(s.text)))
        ):
            found.append(s)
    return found


def positions(statements: Iterable[Statement]) -> list[Statement]:
    """Statements in which somebody prefers, recommends, proposes or decides; headings do not count."""
    return [
        s
        for s in statements
        if s.kind in ("prose", "item") and pattern("patterns", "position").search(s.text) and s.checked is None
    ]
