"""The evidence of a run: texts from outside under ids that agents cite. Data only."""

from __future__ import annotations

import re

import msgspec

from council.artifacts.page import Footnote
from council.llm.base import Source
from council.llm.embeddings import EmbeddingCall
from council.safety.untrusted import plain_line
from council.safety.verdict import ALLOWED, Verdict
from council.turns.account import RequestEntry
from council.typed_json import convert

STEWARD_INPUT = "STEWARD"


_EXCERPT_CHARS = 300  # beside a citation: enough to see whether it says what is cited


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request (or a named input), or the reason it was refused. `id` (`E1`, `E2`, …) is empty for a
    refusal and for a repeated request, which names the earlier id in `repeats`. Lines are pages where the path is that
    of a PDF. `part` is that of the tool's result. `embeddings` are the model calls that finding it took. A text
    that `guard` blocks is a refusal, and not kept."""

    asked_by: str
    round: int
    request: str
    action: str = ""
    argument: str = ""
    id: str = ""
    title: str = ""
    path: str = ""
    first_line: int = 1
    last_line: int = 1
    sha256: str = ""
    text: str = ""
    repeats: str = ""
    error_code: str = ""
    error: str = ""
    embeddings: tuple[EmbeddingCall, ...] = ()
    guard: Verdict = ALLOWED
    part: str = "documents"

    @property
    def ok(self) -> bool:
        return not self.error_code

    @property
    def refusal(self) -> str:
        """The reason, with the path in front where it does not name it itself."""
        if re.search(rf"[`']{re.escape(self.argument)}[`']", self.error):
            return self.error
        return f"`{plain_line(self.argument, 200)}`: {self.error}"

    @property
    def outside(self) -> str:
        """The words of it that no agent wrote, as requests are compared with them."""
        return f"{self.path or self.argument}\n{self.text}"

    def as_read(self, step: str = "") -> RequestEntry:
        told = msgspec.structs.asdict(self) | {"step": step, "request": self.request or self.argument}
        if self.id:
            told |= {"excerpt": self.text[:_EXCERPT_CHARS]}
        else:  # a refusal, or what was given before
            told |= {"first_line": 0, "last_line": 0}
        return convert(told, RequestEntry)

    def footnote(self, how: str) -> Footnote:
        return Footnote(self.id, self.path, self.first_line, self.last_line, self.sha256, self.title, how)

    def source(self) -> Source:
        return Source(self.id, self.path, self.text, self.first_line, self.sha256)
