"""What agents call one another: by role, or by a letter that hides it.

A name moves a model more than an argument does; a council that does not know who speaks listens to what is said.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_ANONYMOUS = len(_LETTERS)


@dataclass(frozen=True)
class Names:
    """`letters` by role; empty where agents go by their roles."""

    letters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def hidden(cls, roles: Sequence[str], draw: random.Random) -> Names:
        """A letter for each of at most MAX_ANONYMOUS roles, drawn by lot."""
        letters = list(_LETTERS[: len(roles)])
        draw.shuffle(letters)
        return cls(dict(zip(roles, letters, strict=True)))

    def __bool__(self) -> bool:
        return bool(self.letters)

    def of(self, role: str) -> str:
        """How an agent is called; a role outside the council keeps its name."""
        return f"Member {self.letters[role]}" if role in self.letters else role

    def role_of(self, letter: str) -> str:
        return next(role for role, drawn in self.letters.items() if drawn == letter)

    def text(self, text: str) -> str:
        """What an agent said, with the roles of its colleagues replaced where it spells them out."""
        if not self.letters:
            return text
        return re.sub(rf"\b(?:{'|'.join(self.letters)})\b", lambda found: self.of(found[0]), text)
