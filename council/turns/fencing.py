"""Fences around text from outside, with nonces that only its run can know. Pure."""

from __future__ import annotations

from council.ids import sha256_hex
from council.places import is_paged
from council.safety.untrusted import fence
from council.turns.evidence import Evidence


class Fencer:
    """Fences the texts of one run, whose `secret` makes the nonces."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def evidence(self, item: Evidence) -> str:
        return fence(
            item.text,
            secret=self._secret,
            source_id=item.id,
            path=item.path or item.argument,
            sha256=item.sha256,
            ordinal=int(item.id[1:]),
            first_line=item.first_line,
            numbered=bool(item.path) and not is_paged(item.path),
        )

    def words(self, text: str, source_id: str, ordinal: int) -> str:
        """Words of no file. `ordinal` is another one for each text of the run, so that no two share a nonce."""
        sha256 = sha256_hex(text)
        return fence(
            text, secret=self._secret, source_id=source_id, path="", sha256=sha256, ordinal=ordinal, numbered=False
        )
