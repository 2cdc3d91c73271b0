"""What an agent is saying right now: text as it arrives, for those who watch. The journal gets the whole reply only.

Thoughts, the block that ends a turn and a record in JSON are not for watching. Pieces are passed on at white space, so
that a known secret value is never cut in two and missed by whoever redacts the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from council.llm.base import Restartable
from council.llm.extraction import BLANK

_HIDDEN_FROM = re.compile(
    r"(?:```|~~~)council|\A\s*(?:\{|```json)|^[ \t]*(?:(?:```|~~~)json\s*)?\{\s*\"(?:position|ranking)\"", re.MULTILINE
)
_TAGS = "(?:think|thinking|reasoning)>"
# As `council.llm.extraction` takes them off; the white space before them was passed on already.
_THOUGHTS = re.compile(
    rf"(\A[{BLANK}]*|^[ \t]*)(?:<{_TAGS}.*?(?:</{_TAGS}[{BLANK}]*|\Z))+", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_LONE_CLOSING = re.compile(rf"</{_TAGS}[ \t]*\r?\n\s*", re.IGNORECASE)
_MAX_UNBROKEN = 400  # characters: a script without spaces is passed on, too


class Hearing(Restartable):
    """A listener (`council.llm.base.OnText`) for one call. `tell` gets each new piece, None when all is taken back."""

    def __init__(self, role: str, round_no: int, tell: Callable[[Hearing, str | None], None]) -> None:
        self.role = role
        self.round = round_no
        self._tell = tell
        self._pieces: list[str] = []
        self._passed = 0

    def __call__(self, piece: str) -> None:
        self._pieces.append(piece)
        self._forget_what_was_thought()
        visible = self._visible
        end = max(visible.rfind(" "), visible.rfind("\n")) + 1
        if len(visible) - end > _MAX_UNBROKEN:
            end = len(visible)
        if end > self._passed:
            new, self._passed = visible[self._passed : end], end
            self._tell(self, new)

    def restart(self) -> None:
        """Another attempt begins: nothing was said."""
        if self._pieces:
            self._pieces.clear()
            self._passed = 0
            self._tell(self, None)

    def _forget_what_was_thought(self) -> None:
        """Where a closing tag shows that all before it was a thought whose opening tag never came."""
        said = _THOUGHTS.sub(r"\1", "".join(self._pieces))
        closing = _LONE_CLOSING.search(said)
        if closing is not None:
            self.restart()
            self._pieces.append(said[closing.end() :])

    @property
    def text(self) -> str:
        """What was passed on."""
        return self._visible[: self._passed]

    @property
    def _visible(self) -> str:
        self._pieces = ["".join(self._pieces)]
        text = _THOUGHTS.sub(r"\1", self._pieces[0])
        hidden = _HIDDEN_FROM.search(text)
        return text[: hidden.start()] if hidden else text
