"""What an agent is saying right now: text as it arrives, for those who watch. The journal gets the whole reply only.

Thoughts, the block that ends a turn and a record in JSON are not for watching. Pieces are passed on at white space, so
that a known secret value is never cut in two and missed by whoever redacts the pieces.
"""

from __future__ import annotations

from collections.abc import Callable

from council.llm.thoughts import ThoughtFilter

_BLOCK = "```council"  # from here on it is not for watching
_JSON = ("{", "```json")  # nor is a reply that begins like this
_MAX_UNBROKEN = 400  # characters: a script without spaces is passed on, too


class Hearing:
    """A listener (`council.llm.base.OnText`) for one call. `tell` gets each new piece, None when all is taken back. The work
    for a piece does not grow with what was heard before."""

    def __init__(self, role: str, round_no: int, tell: Callable[[Hearing, str | None], None]) -> None:
        self.role = role
        self.round = round_no
        self._tell = tell
        self._begin()

    def _begin(self) -> None:
        self._heard = self._hidden = self._speaking = False
        self._thoughts = ThoughtFilter()
        self._tail = ""  # what is not passed on yet
        self._passed: list[str] = []

    def __call__(self, piece: str) -> None:
        self._heard = self._heard or bool(piece)
        if self._hidden:
            return
        self._tail += self._thoughts.feed(piece)
        end = self._end()
        if end > 0:
            told, self._tail = self._tail[:end], self._tail[end:]
            self._passed.append(told)
            self._tell(self, told)

    def restart(self) -> None:
        """Another attempt begins: nothing was said."""
        if self._heard:
            self._begin()
            self._tell(self, None)

    @property
    def text(self) -> str:
        """What was passed on."""
        self._passed = ["".join(self._passed)]
        return self._passed[0]

    def _end(self) -> int:
        """How much of the tail may be passed on: up to the last white space, and nothing of what is hidden."""
        if not self._speaking:
            first = self._tail.lstrip()
            if not first or any(start.startswith(first) for start in _JSON):
                return 0  # it cannot be told yet
            self._speaking, self._hidden = True, first.startswith(_JSON)
        block = self._tail.find(_BLOCK)
        self._hidden = self._hidden or block >= 0
        if self._hidden:
            return max(0, block)
        end = max(self._tail.rfind(" "), self._tail.rfind("\n")) + 1
        return end if len(self._tail) - end <= _MAX_UNBROKEN else len(self._tail) - len(_BLOCK)
