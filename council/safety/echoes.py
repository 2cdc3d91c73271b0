"""Recognises a request that only repeats one in the outside texts of a task (docs/security.md). The usual encodings
(`encodings`) are seen through, a cipher or a translation is not. An agent's own requests are bounded by its allowlist
and `read_roots`."""

from __future__ import annotations

import hashlib
import unicodedata

from council.safety.encodings import decodings
from council.safety.untrusted import clean, fold_char

MAX_OUTSIDE_BYTES = 8 * 1024 * 1024  # kept around markers per task; a real task keeps a few hundred bytes


class OutsideTexts:
    """The outside texts of one task, to recognise a request that only repeats one of them.

    Remembers no more than what follows each marker. Above `max_bytes` of that it fails closed: `occurs` is then true
    for every token, because a text that large full of requests is an attack, and a refused request costs one sentence.
    """

    _WINDOW = 2048  # folded characters kept from each marker on; a token is shorter (512 for its argument)

    def __init__(self, *, max_bytes: int = MAX_OUTSIDE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: list[bytes] = []
        self._seen: set[bytes] = set()

    @property
    def full(self) -> bool:
        return self._bytes > self._max_bytes

    def add(self, text: str) -> None:
        """Remember the requests that `text` holds, in its original spelling, already inert, or encoded."""
        self._add(text)
        for read in decodings(text):
            self._add(read)

    def _add(self, text: str) -> None:
        folded = _fold(text)
        start = folded.find(_MARKER)
        while start >= 0 and not self.full:
            end = start + self._WINDOW
            following = folded.find(_MARKER, start + 1)
            while 0 <= following <= end:  # overlapping windows are kept once
                end = following + self._WINDOW
                following = folded.find(_MARKER, following + 1)
            window = folded[start:end].encode("utf-8", "replace")
            digest = hashlib.sha256(window).digest()
            if digest not in self._seen:
                self._seen.add(digest)
                self._bytes += len(window)
                if not self.full:
                    self._kept.append(window)
            start = following

    def occurs(self, token: str) -> bool:
        """Tells whether `token` stands in a text added before: by its letters and digits, NFKD, case, accents and
        look-alikes aside."""
        if self.full:
            return True
        needle = _fold(token)[: self._WINDOW].encode("utf-8", "replace")
        return any(needle in kept for kept in self._kept)


_MARKER = "orchestratorrequest"


def _fold(text: str) -> str:
    """Letters and digits in one spelling, for comparison: no other brackets, hyphens or emphasis make it another request.
    Character by character: NFKC of a whole text is quadratic in its combining marks."""
    return clean(text).translate(_FoldTable()).replace("quotedrequest", _MARKER)


class _FoldTable(dict[int, "str | None"]):
    """Each character as it is compared; filled on first sight."""

    def __missing__(self, code: int) -> str | None:
        folded = "".join(c for c in fold_char(chr(code)) if c.isalnum() and unicodedata.category(c) != "Lm") or None
        self[code] = folded
        return folded
