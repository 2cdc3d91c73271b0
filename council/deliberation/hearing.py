"""What an agent is saying right now: text as it arrives, for those who watch. The journal gets the whole reply only.

Thoughts, the block that ends a turn and a record in JSON are not for watching. Pieces are passed on at white space, so
that a known secret value is never cut in two and missed by whoever redacts the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from council.llm.base import Restartable

_HIDDEN_FROM = re.compile(r"```council|\A\s*(?:\{|```json)")
_THOUGHTS = re.compile(r"\A\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
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

    @property
    def text(self) -> str:
        """What was passed on."""
        return self._visible[: self._passed]

    @property
    def _visible(self) -> str:
        self._pieces = ["".join(self._pieces)]
        text = _THOUGHTS.sub("", self._pieces[0])
        hidden = _HIDDEN_FROM.search(text)
        return text[: hidden.start()] if hidden else text
