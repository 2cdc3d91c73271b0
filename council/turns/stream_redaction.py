"""Takes secrets out of an agent's words while they are said: each piece is redacted in the light of those before it.

A key may stand behind a word that tells what it is (`Bearer …`). It may have several lines, as a private key has, or be longer
than a piece. Shown text cannot be taken back: the beginning of a secret with white space in it may have been shown.
"""

from __future__ import annotations

from council.redaction import MASK, Redactor

_MIN_CONTEXT_CHARS = 2_048
_MAX_CONTEXT_CHARS = 4_096  # to redact it for each piece costs some hundred microseconds
_MAX_SECRET_CHARS = 65_536  # a secret that has not ended keeps its beginning in sight for as long


class Speech:
    """The words of one agent in one turn."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._heard = ""
        self._redacted = ""

    def hear(self, piece: str) -> str:
        """The part of the text, with `piece` at its end, that was not shown before."""
        self._heard += piece
        redacted = self._redactor.redact(self._heard)
        if redacted.startswith(self._redacted):
            equal_chars = len(self._redacted)
        else:
            pairs = enumerate(zip(self._redacted, redacted, strict=False))
            shorter = min(len(self._redacted), len(redacted))
            equal_chars = next((at for at, (before, now) in pairs if before != now), shorter)
        self._redacted = redacted
        ends_in_secret = redacted.rstrip().endswith(MASK)
        if len(self._heard) > (_MAX_SECRET_CHARS if ends_in_secret else _MAX_CONTEXT_CHARS):
            self._heard = self._heard[-_MIN_CONTEXT_CHARS:]
            self._redacted = self._redactor.redact(self._heard)
        return redacted[equal_chars:]
