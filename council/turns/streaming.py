"""An agent's words as they arrive, for those who watch. The journal gets the whole reply only.

Thoughts, the block that ends a turn and a record in JSON are not for watching. Pieces are passed on at white space, so
that words are whole, keys above all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from council.llm.base import Restartable
from council.markup import CLOSING, LONE_CLOSING, OPENING, TAGS
from council.redaction import MASK, Redactor

_BLOCK = re.compile("(?:```|~~~)council")  # from here on it is not for watching
_JSON = ("{", "```json", "~~~json")  # nor is a reply that begins like this
_THOUGHTS = tuple(f"<{tag}>" for tag in TAGS)
_MAX_UNBROKEN = 400  # characters: beyond, a script without spaces is passed on, too
_MAX_WORD = 16_384  # characters: beyond, any word is passed on; no key is longer
_JUDGED_CHARS = 2_000  # before a piece, read with it: several sentences
_MAX_MARK_CHARS = max(map(len, _THOUGHTS)) + 1  # of a closing one


Blocks = Callable[[str], bool]  # of a guardrail: True for words that nobody may be shown


class Hearing(Restartable):
    """A listener (`council.llm.base.OnText`) for one call. `tell` gets each new piece, None when all is taken back.
    Words that `blocks` is true of are withheld, with all that follows."""

    def __init__(
        self, role: str, round_no: int, tell: Callable[[Hearing, str | None], None], blocks: Blocks = lambda text: False
    ) -> None:
        self.role = role
        self.round = round_no
        self._tell = tell
        self._blocks = blocks
        self._begin()

    def _begin(self) -> None:
        self._heard = self._hidden = self._speaking = self._thinking = self._trims = self._withheld = False
        self._line_begins = True  # where the tail begins
        self._tail = ""  # what is not passed on yet
        self._searched = 0  # characters of the tail: no mark begins there
        self._passed: list[str] = []
        self._recent = ""  # the end of what was passed on

    def __call__(self, piece: str) -> None:
        self._heard = self._heard or bool(piece)
        if self._hidden:
            return
        self._tail += piece
        while self._step():
            pass
        if self._thinking:
            return
        if not self._speaking:
            first = self._tail.lstrip()
            self._tail = self._tail if first else ""
            if not first or any(start.startswith(first.lower()) for start in (*_JSON, *_THOUGHTS)):
                return  # it cannot be told yet
            self._speaking, self._hidden = True, first.startswith(_JSON)
        block = _BLOCK.search(self._tail, self._searched)
        self._hidden = self._hidden or block is not None
        if self._hidden:
            self._pass_on(block.start() if block else 0)
            return
        end = max(self._tail.rfind(" "), self._tail.rfind("\n")) + 1
        if len(self._tail) - end > _MAX_UNBROKEN and not self._tail.isascii():  # a long key is in no such script
            end = next((at + 1 for at in range(len(self._tail) - 1, end, -1) if not self._tail[at].isascii()), end)
        self._pass_on(end if len(self._tail) - end <= _MAX_WORD else len(self._tail) - _MAX_MARK_CHARS)
        self._searched = max(0, len(self._tail) - _MAX_MARK_CHARS)

    def _step(self) -> bool:
        """One thought that begins on a line of its own, or ends there, taken out; False when there is none, or not yet."""
        if self._thinking:
            closing = CLOSING.search(self._tail)
            self._thinking, self._trims = closing is None, True
            self._tail, self._searched = self._tail[closing.end() if closing else -_MAX_MARK_CHARS :], 0
            return closing is not None
        if self._trims:  # the white space behind a thought
            self._tail = self._tail.lstrip()
            self._trims = not self._tail
        if self._tail.find("<", self._searched) < 0:
            return False
        line = 0 if self._line_begins else self._tail.find("\n")
        opening = None if line < 0 else OPENING.search(self._tail, max(line, self._searched))
        lone = LONE_CLOSING.search(self._tail, self._searched)
        if lone is not None and lone.end() < (opening.start() if opening else len(self._tail)):
            rest = self._tail[lone.end() :]  # all before it was a thought whose opening tag never came
            self.restart()
            self._tail, self._heard, self._trims = rest, True, True
            return True
        block = _BLOCK.search(self._tail, self._searched)
        if opening is None or (block and block.start() < opening.start()):
            return False
        self._pass_on(opening.start())
        self._tail, self._searched, self._thinking = self._tail[opening.end() - opening.start() :], 0, True
        return True

    def _pass_on(self, end: int) -> None:
        if end > 0:
            told, self._tail = self._tail[:end], self._tail[end:]
            self._line_begins = told.endswith("\n")
            self._withheld = self._withheld or self._blocks(self._recent + told)
            if not self._withheld:
                self._passed.append(told)
                self._recent = (self._recent + told)[-_JUDGED_CHARS:]
                self._tell(self, told)

    def restart(self) -> None:
        if self._heard:
            self._begin()
            self._tell(self, None)

    def end(self) -> None:
        """The reply is whole: its last word is told, too."""
        self("")
        if self._speaking and not self._hidden and not self._thinking:
            self._pass_on(len(self._tail.rstrip()))

    @property
    def text(self) -> str:
        self._passed = ["".join(self._passed)]
        return self._passed[0]


_MIN_CONTEXT_CHARS = 2_048
_MAX_CONTEXT_CHARS = 4_096  # to redact it for each piece costs some hundred microseconds
_MAX_SECRET_CHARS = 65_536  # a secret that has not ended keeps its beginning in sight for as long


class Speech:
    """The words of one agent in one turn without secrets: each piece is redacted in the light of those before it. Shown
    text cannot be taken back: the beginning of a secret with white space in it may have been shown."""

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
