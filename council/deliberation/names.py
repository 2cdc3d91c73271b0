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

    def roles_in(self, text: str, roles: Sequence[str]) -> set[str]:
        """The members that a text names, by role or letter ("the Auditor", "Members A and C"), in whatever case."""
        named = {role for role in roles if re.search(rf"(?<!\w){_spelling(role)}(?!\w)", text, re.IGNORECASE)}
        lists = re.findall(r"\bmembers?\s+((?:[a-z]\b(?:\s*,\s*|\s+and\s+|\s*&\s*)*)+)", text, re.IGNORECASE)
        letters = set(re.findall(r"\b[a-z]\b", " ".join(lists), re.IGNORECASE))
        return named | {
            role for role, letter in self.letters.items() if letter.casefold() in map(str.casefold, letters)
        }


NO_SUCH_MEMBER = "(no such member)"
_MAX_NAMED = 12
_REMARK = re.compile(r"\([^()]*\)")
_FILLING = re.compile(
    r"(?:\b(?:the|and|members?|agents?|both|alone|only|in|of|round|rounds|as|devil'?s|advocate|[0-9]+)\b|\W)+", re.I
)
_MORE = r"(?:\s*(?:,|&|/|\band\b)\s*(?:and\s+)?(?:[Mm]embers?\s+)?[{0}])*"


class Holders:
    """Finds the members of one council in a text: by role in any case or, where they go by letters, by letter."""

    def __init__(self, roles: Sequence[str], names: Names) -> None:
        self._roles = roles
        self._names = names
        spelled = "|".join(map(_spelling, sorted(roles, key=len, reverse=True)))
        self._role = re.compile(rf"(?<!\w)(?:{spelled})(?!\w)", re.IGNORECASE) if roles else None
        letters = "".join(names.letters.values())
        either = letters + letters.lower()  # small ones only behind the word, for a lone `a` is an article
        named = rf"[Mm]embers?\s+[{either}]{_MORE.format(either)}"
        self._letters = re.compile(rf"(?<!\w)(?:{named}|[{letters}]{_MORE.format(letters)})(?!\w)") if letters else None

    def shown(self, held_by: str) -> str:
        """Members by role, on one line; marked where it names anybody else, or no member at all."""
        known = {_spelled(role).casefold(): role for role in self._roles}
        role_of = {letter: role for role, letter in self._names.letters.items()}

        def roles(found: re.Match[str]) -> str:
            letters = [letter.upper() for letter in re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", found[0])]
            return ", ".join(f"{role_of[letter]} ({letter})" for letter in letters)

        line = " ".join(held_by.split())
        if self._role:
            line = self._role.sub(lambda found: known[_spelled(found[0]).casefold()], line)
        line = self._letters.sub(roles, line) if self._letters else line
        return line if self.are_members(held_by) else f"{line} {NO_SUCH_MEMBER}"

    def are_members(self, held_by: str) -> bool:
        """True when a text names members, and beside them nobody."""
        line = _REMARK.sub(" ", " ".join(held_by.split()))
        left = self._role.sub("\0", line) if self._role else line
        left = self._letters.sub("\0", left) if self._letters else left
        return "\0" in left and not _FILLING.sub("", left.replace("\0", " "))

    def listed(self) -> str:
        shown = [self._names.of(role) for role in self._roles[:_MAX_NAMED]]
        return ", ".join([*shown, "…"] if len(self._roles) > _MAX_NAMED else shown)


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
