"""The lines that a citation names, as they were read. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from council.citations import CitedPlace
from council.lines_and_pages import numbers
from council.llm.base import Source

_MAX_CHARS = 300  # of one place: enough to see whether it says what is cited


class Excerpts:
    """Finds them in `sources`, of which those of a search have one for each hit under one id."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources: defaultdict[str, list[tuple[str, list[int], list[str]]]] = defaultdict(list)
        for one in sources:
            lines = one.text.removesuffix("\n").split("\n")
            self._sources[one.id].append((one.path, numbers(one.path, one.text, one.first_line), lines))

    def __call__(self, place: CitedPlace) -> str:
        """`docs/a.md:3`, and line 3 below it; empty for a place that names no line, or none that was read."""
        for path, places, lines in self._sources.get(place.id, ()):
            first, after = bisect_left(places, place.first), bisect_right(places, place.last)
            if path.endswith(place.path) and place.first and first < after:
                text = "\n".join(lines[first:after])
                return f"{replace(place, path=path).where}\n{text[:_MAX_CHARS]}"
        return ""
