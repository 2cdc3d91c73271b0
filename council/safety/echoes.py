"""Recognises a request that only repeats one in the outside texts of a task (docs/security.md). The usual encodings
(`encodings`) are seen through, a cipher or a translation is not. An agent's own requests are bounded by its allowlist
and `read_roots`."""

from __future__ import annotations

import unicodedata

from council.safety.encodings import decodings
from council.safety.untrusted import clean, fold_char

MAX_OUTSIDE_CHARS = 8 * 1024 * 1024  # kept behind markers per task, 4,000 of them; a real task has a few


class OutsideTexts:
    """The outside texts of one task, to recognise a request that only repeats one of them.

    Remembers no more than what follows each marker. Above `max_chars` of that it fails closed: `occurs` is then true
    for every token, because a text that full of requests is an attack, and a refused request costs one sentence.
    """

    _WINDOW = 2048  # folded characters kept from each marker on; a token is shorter (512 for its argument)

    def __init__(self, *, max_chars: int = MAX_OUTSIDE_CHARS) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._kept: set[str] = set()

    @property
    def full(self) -> bool:
        return self._chars > self._max_chars

    def add(self, text: str) -> None:
        """Remember the requests that `text` holds, in its original spelling, already inert, or encoded."""
        for read in (text, *decodings(text)):
            folded = _fold(read)
            start = folded.find(_MARKER)
            while start >= 0 and not self.full:
                window = folded[start : start + self._WINDOW]
                self._chars += 0 if window in self._kept else len(window)
                self._kept.add(window)
                start = folded.find(_MARKER, start + 1)

    def occurs(self, token: str) -> bool:
        """Tells whether `token` stands in a text added before: by its letters and digits, NFKD, case, accents and
        look-alikes aside."""
        if self.full:
            return True
        needle = _fold(token)[: self._WINDOW]
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
