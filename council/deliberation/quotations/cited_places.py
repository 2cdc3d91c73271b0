"""Citations that name a place, held against the places that were read: right, corrected, or wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from council.citations import Citation, CitedPlace, KnownPaths
from council.deliberation.quotations.passages import Passage
from council.lines_and_pages import in_words, is_paged

_MAX_DESCRIBED = 8
Fault = Literal["", "evidence", "place"]


class Places:
    """The places that there are to cite. `issued`: the ids of all evidence. `names`: the paths, with and without their
    folders."""

    def __init__(self, passages: Iterable[Passage], issued: Iterable[str]) -> None:
        self.issued = frozenset(issued)
        self.spans: dict[str, dict[str, list[tuple[int, int]]]] = {}  # path -> id -> lines
        self._unnamed: dict[str, list[tuple[int, int]]] = {}  # id -> lines, of what is no file
        for passage in passages:
            of_id = self.spans.setdefault(passage.path, {}) if passage.path else self._unnamed
            of_id.setdefault(passage.id, []).append((passage.first_line, passage.last_line))
        self.names = frozenset(name for path in self.spans for name in (path, path.rsplit("/", 1)[-1]))
        self.paths = KnownPaths(self.names)

    def is_unread(self, cited: Citation) -> bool:
        """True for the name of a document that was not read, where it stands without square brackets and lines."""
        place = cited.places[0]
        is_name = cited.text[0] not in "[【<{" and not place.id and place.first is None
        return is_name and self.judged(place)[1] == "place"

    def described(self, id: str) -> str:
        """The lines of files that a piece of evidence holds."""
        held = [
            f"{path}, {in_words(path, low, high)}" for path, ids in self.spans.items() for low, high in ids.get(id, ())
        ]
        return "; ".join(held[:_MAX_DESCRIBED]) or "of no file"

    def judged(self, cited: CitedPlace) -> tuple[CitedPlace, Fault]:
        """The citation as it is right, or what is wrong with it where that cannot be told.

        A citation that leaves no doubt is corrected. It may give lines without a path, or a path without its folders or an id.
        It may also give an id where only another one holds these lines. Its lines may run on behind the end of what was read.
        """
        missing: Fault = "place" if cited.id in self.issued or not cited.id else "evidence"
        if not cited.path:
            if cited.id not in self.issued or cited.first is None:
                return cited, "" if cited.id in self.issued else "evidence"
            held = [(path, ids[cited.id]) for path, ids in self.spans.items() if cited.id in ids]
            held += [("", self._unnamed[cited.id])] if cited.id in self._unnamed else []
            if cited.in_pages and cited.first and not any(is_paged(path) for path, _ in held):
                return CitedPlace(cited.id), ""
            met = [(path, lines) for path, spans in held if (lines := _overlap(spans, cited.first, cited.last))]
            return (CitedPlace(cited.id, met[0][0], *met[0][1]) if len(met) == 1 else cited), "" if met else "place"
        named = cited.path.removeprefix("/")
        known = [named] if named in self.spans else []
        ending = known or [path for path in self.spans if path.endswith(f"/{named}")]
        whole = [path for path in ending if cited.id in self.spans[path]] or ending
        if len(whole) != 1 or (cited.in_pages and not is_paged(whole[0])):
            return cited, missing
        path, ids = whole[0], self.spans[whole[0]]
        for id in dict.fromkeys((cited.id, *ids)):
            lines = _overlap(ids.get(id, ()), cited.first, cited.last)
            if lines is not None:
                return CitedPlace(id, path, *lines), ""
        return cited, missing


def _overlap(spans: Sequence[tuple[int, int]], first: int | None, last: int) -> tuple[int | None, int] | None:
    """The cited lines as far as they were read; (None, 0) for a citation without lines; None where none was, or line 0 is
    cited."""
    if first is None:
        return (None, 0) if spans else None
    met = [(max(first, low), min(last, high)) for low, high in spans if 0 < first <= high and low <= last]
    return max(met, key=lambda lines: lines[1] - lines[0], default=None)
