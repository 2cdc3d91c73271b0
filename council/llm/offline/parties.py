"""Documents of several parties, such as offers: their figures differ by design, and others say whose they mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from council.llm.offline.mentions import Mention
from council.llm.offline.text import Statement
from council.llm.offline.vocabulary import content_stems, pattern

_TITLE_CHARS = 80  # a longer one is a paragraph
_HEAD = 6  # statements that tell what a document is


class Parties:
    """The documents that answer one question each for a party of its own, and the words that name it."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        documents: dict[str, list[Statement]] = defaultdict(list)
        for s in statements:
            documents[s.path].append(s)
        rival = pattern("patterns", "rival")
        numbered = pattern("patterns", "rival", end=r"\s*(?:(?:no|nr|number)\b|#|[A-Z]{0,3}-?\d)")
        words = {}
        for path, found in documents.items():
            head = " ".join(s.text for s in found[:_HEAD])
            if rival.search(f"{_file_words(path)} {found[0].title}"[:_TITLE_CHARS]) or numbered.search(head):
                words[path] = {w for s in found for w in s.stems} | set(content_stems(_file_words(path)))
        self._names: dict[str, frozenset[str]] = {}
        for path in words if len(words) > 1 else ():
            first = documents[path][0]
            own = set(content_stems(f"{first.title} {_file_words(path)}", first.language))
            self._names[path] = frozenset(own.difference(*(each for other, each in words.items() if other != path)))

    def owners(self, mention: Mention) -> frozenset[str]:
        """The parties' documents that a figure speaks of: its own, else those that the nearest text names."""
        s = mention.statement
        if s.path in self._names:
            return frozenset({s.path})
        for text in (mention.clause, s.text if s.kind != "row" else "", s.section):
            said = set(content_stems(text, s.language))
            meant = frozenset(path for path, names in self._names.items() if names & said)
            if meant:
                return meant
        return frozenset()


def _file_words(path: str) -> str:
    return re.sub(r"[^a-zäöüß0-9]+", " ", path.rpartition("/")[2].rpartition(".")[0].lower()).strip()
