"""Secrets taken out of what an agent says while it is said: each piece is redacted in the light of those before it.

A key may stand behind a word that tells what it is (`Bearer …`), over several lines (a private key), or be longer than a
piece. What was shown cannot be taken back: of a secret with white space in it, its beginning may have been.
"""

from __future__ import annotations

from council.redaction import MASK, Redactor

_MIN_CONTEXT_CHARS = 2_048
_MAX_CONTEXT_CHARS = 4_096  # to redact it for each piece costs some hundred microseconds
_MAX_SECRET_CHARS = 65_536  # a secret that has not ended keeps its beginning in sight for as long


class Speech:
    """What one agent says in one turn."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._heard = ""
        self._redacted = ""

    def hear(self, piece: str) -> str:
        """What of the text, with `piece` at its end, was not shown before."""
        self._heard += piece
        redacted = self._redactor.redact(self._heard)
        new = redacted[_equal_chars(self._redacted, redacted) :]
        self._redacted = redacted
        self._forget()
        return new

    def _forget(self) -> None:
        ends_in_secret = self._redacted.rstrip().endswith(MASK)
        if len(self._heard) > (_MAX_SECRET_CHARS if ends_in_secret else _MAX_CONTEXT_CHARS):
            self._heard = self._heard[-_MIN_CONTEXT_CHARS:]
            self._redacted = self._redactor.redact(self._heard)


def _equal_chars(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    if other.startswith(one):
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
