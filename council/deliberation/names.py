"""Names among agents: by role, or by a letter that hides it. A name moves a model more than an argument does."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Names:
    """`letters` by role; empty where agents go by their roles."""

    letters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def hidden(cls, roles: Sequence[str], draw: random.Random) -> Names:
        """A letter for each of at most 26 roles, drawn by lot."""
        letters = list(_LETTERS[: len(roles)])
        draw.shuffle(letters)
        return cls(dict(zip(roles, letters, strict=True)))

    def __bool__(self) -> bool:
        return bool(self.letters)

    def of(self, role: str) -> str:
        """The name of an agent; a role outside the council keeps its own."""
        return f"Member {self.letters[role]}" if role in self.letters else role

    def text(self, text: str) -> str:
        """The words of an agent, without the roles of members that it spells out. A quotation of some words stays as it
        was."""
        if not self.letters:
            return text
        roles = {_spelled(role).casefold(): role for role in self.letters}
        spellings = "|".join(_spelling(role) for role in sorted(self.letters, key=len, reverse=True))
        spelled = re.compile(rf"\b(?:the\s+)?({spellings})\b", re.IGNORECASE)
        parts = re.split(rf"({_QUOTED})", text)  # every second one is a quotation
        return "".join(
            part
            if at % 2 and len(part.split()) >= _QUOTED_WORDS
            else spelled.sub(lambda found: self.of(roles[_spelled(found[1]).casefold()]), part)
            for at, part in enumerate(parts)
        )

    def roles_in(self, text: str, roles: Sequence[str]) -> list[str]:
        """Those of `roles` that a text names, by role or letter ("the Auditor", "Members A and C", "B"), in whatever
        case. A letter alone counts in capitals only, and only where nothing but letters stands before it."""
        lists = " ".join(found[1] or found[2] for found in _LETTERED.finditer(text))
        letters = {letter.upper() for letter in re.findall(r"\b[a-z]\b", lists, re.IGNORECASE)}
        return [
            role
            for role in roles
            if self.letters.get(role) in letters or re.search(rf"(?<!\w){_spelling(role)}(?!\w)", text, re.IGNORECASE)
        ]

    def shown(self, held_by: str, roles: Sequence[str]) -> str:
        """The members that a text names, by role. A text that names none stays, on one line, and is marked."""
        named = self.roles_in(held_by, roles)
        if not named:
            return f"{' '.join(held_by.split())} {NO_SUCH_MEMBER}"
        return ", ".join(f"{role} ({self.letters[role]})" if self.letters else role for role in named)


NO_SUCH_MEMBER = "(no such member)"
_AND = r"(?:\s*[,&/]\s*|\s+and\s+)*"
_LETTERED = re.compile(
    rf"(?i:\bmembers?\s+((?:[a-z]\b{_AND})+))|\A\s*((?:[A-Z]\b{_AND})+)(?=\s*(?:\(|\Z))",
)
_QUOTED = r"""“[^“”\n]*”|(?<![\w"])"(?=\S)[^"\n]*(?<=\S)"(?!\w)"""
_QUOTED_WORDS = 3  # fewer are a name between marks


def _spelled(role: str) -> str:
    return re.sub(r"[_\s-]+", " ", role)


def _spelling(role: str) -> str:
    """A role as prose may spell it: RISK_OFFICER, Risk Officer, risk-officer."""
    return r"[_\s-]+".join(map(re.escape, role.split("_")))


def listed(names: Sequence[str]) -> str:
    """`A, B and C`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
