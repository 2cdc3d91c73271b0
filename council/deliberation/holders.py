"""Holders of a dissent: the members that a text names, and nobody else. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from council.deliberation.names import Names

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
        spelled = (re.escape(role).replace("_", "[_ -]") for role in sorted(roles, key=len, reverse=True))
        self._role = re.compile(rf"(?<!\w)(?:{'|'.join(spelled)})(?!\w)", re.IGNORECASE) if roles else None
        letters = "".join(names.letters.values())
        either = letters + letters.lower()  # small ones only behind the word, for a lone `a` is an article
        named = rf"[Mm]embers?\s+[{either}]{_MORE.format(either)}"
        self._letters = re.compile(rf"(?<!\w)(?:{named}|[{letters}]{_MORE.format(letters)})(?!\w)") if letters else None

    def shown(self, held_by: str) -> str:
        """On one line, members by role; a text that names anybody else, or no member at all, is marked."""
        known = {role.casefold().replace("_", " "): role for role in self._roles}

        def role(found: re.Match[str]) -> str:
            return known.get(re.sub(r"[_ -]", " ", found[0].casefold()), found[0])

        def roles(found: re.Match[str]) -> str:
            letters = [letter.upper() for letter in re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", found[0])]
            return ", ".join(f"{self._names.role_of(letter)} ({letter})" for letter in letters)

        line = " ".join(held_by.split())
        line = self._role.sub(role, line) if self._role else line
        line = self._letters.sub(roles, line) if self._letters else line
        return line if self.are_members(held_by) else f"{line} {NO_SUCH_MEMBER}"

    def are_members(self, held_by: str) -> bool:
        """True when a text names members, and beside them nobody."""
        line = _REMARK.sub(" ", " ".join(held_by.split()))
        left = self._role.sub("\0", line) if self._role else line
        left = self._letters.sub("\0", left) if self._letters else left
        return "\0" in left and not _FILLING.sub("", left.replace("\0", " "))

    def listed(self) -> str:
        """The names of the members, for one who is to name them."""
        shown = [self._names.of(role) for role in self._roles[:_MAX_NAMED]]
        return ", ".join([*shown, "…"] if len(self._roles) > _MAX_NAMED else shown)
