"""Recognises a request that only repeats one in the outside texts of a task: a tripwire, not a boundary (docs/security.md).

The encodings that `encodings` lists are seen through; a cipher or a translation is not. What an agent can reach at all is
bounded by its allowlist and `read_roots`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from itertools import accumulate

from council.ids import sha256_hex
from council.safety.encodings import decodings
from council.safety.untrusted import clean, fold_char

MAX_OUTSIDE_CHARS = 8 * 1024 * 1024  # kept behind markers per task, 4,000 of them; a real task has a few


class OutsideTexts:
    """The outside texts of one task, to recognise a request that only repeats one of them.

    A text is read when a request is compared first: most runs make none. Of what was read it remembers no more than what
    follows each marker. Above `max_chars` of that it fails closed: `occurs` is then true for every token. A text that full
    of requests is an attack, and a refused request costs one sentence.
    """

    _WINDOW = 2048  # folded characters kept behind each marker; a token is shorter (512 for its argument)

    def __init__(self, *, max_chars: int = MAX_OUTSIDE_CHARS) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._unread: dict[str, None] = {}
        self._added: set[str] = set()  # the SHA-256 of texts that were read
        self._folding = _FoldTable()
        self._kept: dict[str, set[int]] = {}  # what follows a marker, and where in it something is closed

    @property
    def full(self) -> bool:
        self.read()
        return self._chars > self._max_chars

    def add(self, text: str) -> None:
        """Remembers the requests that `text` holds, in its original spelling, already inert, or encoded."""
        self._unread[text] = None

    def read(self) -> None:
        """Reads what was added since. A text that was read before costs nothing."""
        while self._unread:
            self._read(self._unread.popitem()[0])

    def _read(self, text: str) -> None:
        sha256 = sha256_hex(text)
        if sha256 in self._added:
            return
        self._added.add(sha256)
        for read in (text, *decodings(text)):
            letters, closings = _fold(read, self._folding)
            for match in _MARKER.finditer(letters):
                if self._chars > self._max_chars:
                    return
                window = letters[match.end() : match.end() + self._WINDOW]
                self._chars += 0 if window in self._kept else max(len(window), 1)
                first, last = bisect_left(closings, match.end()), bisect_right(closings, match.end() + len(window))
                ends = self._kept.setdefault(window, {len(window)})
                ends.update(at - match.end() for at in closings[first:last])

    def occurs(self, token: str) -> bool:
        """Tells whether `token`, to the end of its argument, stands in a text added before. Letters and digits count; NFKD,
        case, accents, look-alikes and signs do not."""
        if self.full:
            return True
        letters, _ = _fold(token, self._folding)
        marker = _MARKER.search(letters)
        needle = letters[marker.end() if marker else 0 :][: self._WINDOW]
        return any(kept.startswith(needle) and len(needle) in ends for kept, ends in self._kept.items())


_MARKER = re.compile("(?:orchestrator|quoted)request")
_CLOSING = "\0"


def _fold(text: str, folding: _FoldTable) -> tuple[str, list[int]]:
    """Letters and digits in one spelling, for comparison, and after how many of them a bracket closes or a line ends. No
    hyphens or emphasis make it another request. Character by character: NFKC of a whole text is quadratic in its
    combining marks."""
    pieces = clean(text).translate(folding).split(_CLOSING)
    return "".join(pieces), list(accumulate(map(len, pieces)))


class _FoldTable(dict[int, "str | None"]):
    """Each character as it is compared; filled on first sight."""

    def __missing__(self, code: int) -> str | None:
        signs = fold_char(chr(code))
        folded = "".join(c for c in signs if c.isalnum() and unicodedata.category(c) != "Lm") or None
        if folded is None and (signs == "\n" or any(unicodedata.category(c) == "Pe" for c in signs)):
            folded = _CLOSING
        self[code] = folded
        return folded
