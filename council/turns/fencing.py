"""The one door by which text enters the prompts of a run: fenced, inert, and remembered for the comparison of requests."""

from __future__ import annotations

from council.ids import sha256_hex
from council.lines_and_pages import is_paged
from council.safety.echoes import OutsideTexts
from council.safety.untrusted import fence, inert, plain_line, unmarked
from council.turns.evidence import Evidence

_LINE_CHARS = 2_000


class Fencer:
    """Fences the texts of one run, whose `secret` makes the nonces. `outside` remembers all of them but an agent's words."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.outside = OutsideTexts()

    def evidence(self, item: Evidence) -> str:
        self.outside.add(item.outside)
        fenced = fence(
            item.text,
            secret=self._secret,
            source_id=item.id,
            path=item.path or item.argument,
            sha256=item.sha256,
            ordinal=int(item.id[1:]),
            first_line=item.first_line,
            numbered=bool(item.path) and not is_paged(item.path),
        )
        return f"{item.id}, {self.line(item.title)}\n{fenced}"

    def line(self, text: str) -> str:
        """A title, an argument or an error outside fences: one line that holds no mark of a fence and no request."""
        self.outside.add(text)
        return unmarked(inert(plain_line(text, _LINE_CHARS)))

    def words(self, text: str, source_id: str, ordinal: int) -> str:
        """Words of no file. `ordinal` is another one for each text of the run, so that no two share a nonce."""
        self.outside.add(text)
        return self.agents_words(text, source_id, ordinal)

    def agents_words(self, text: str, source_id: str, ordinal: int) -> str:
        """Fences words of this run's agents. Their requests are their own; what they quote was remembered at its source."""
        sha256 = sha256_hex(text)
        return fence(
            text, secret=self._secret, source_id=source_id, path="", sha256=sha256, ordinal=ordinal, numbered=False
        )
