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
        for at, part in enumerate(parts):
            if at % 2 == 0 or len(part.split()) < _QUOTED_WORDS:
                parts[at] = spelled.sub(lambda found: self.of(roles[_spelled(found[1]).casefold()]), part)
        return "".join(parts)

    def roles_in(self, text: str, roles: Sequence[str]) -> list[str]:
        """Those of `roles` that a text names, by role or letter ("the Auditor", "Members A and C", "B"), in whatever
        case. A letter alone counts in capitals only, and only where nothing but letters stands before it. Nobody counts
        whom the text excepts ("all except the Auditor")."""
        named = set(_NAMED.findall(_EXCEPTION.sub("", _NO_EXCEPTION.sub(" ", self._marked(text, roles)))))
        return [role for role in roles if role in named]

    def shown(self, held_by: str, roles: Sequence[str]) -> str:
        """The text on one line, its members by role; marked where it names none. Other words beside them stay."""
        line = _NAMED.sub(
            lambda found: f"{found[1]} ({self.letters[found[1]]})" if self.letters else found[1],
            self._marked(held_by, roles),
        )
        return line if self.roles_in(held_by, roles) else f"{line} {NO_SUCH_MEMBER}"

    def _marked(self, text: str, roles: Sequence[str]) -> str:
        """The text on one line; in the place of each member that it names the role, as `_NAMED` finds it."""
        by_letter = {self.letters[role]: role for role in roles if role in self.letters}
        by_role = {_spelled(role).casefold(): role for role in roles}

        def lettered(found: re.Match[str]) -> str:
            role = by_letter.get((found[1] or found[2]).upper())
            return f"\0{role}\0" if role else found[0]

        def once(found: re.Match[str]) -> str:
            return f"\0{found[1]}\0" if found[2] in (None, self.letters.get(found[1])) else found[0]

        line = _LETTERED.sub(lambda found: _LETTER.sub(lettered, found[0]), " ".join(text.replace("\0", " ").split()))
        spelled = "|".join(map(_spelling, sorted(roles, key=len, reverse=True))) or r"(?!)"
        whole = re.compile(rf"(?<![\w\0])(?:{spelled})(?![\w\0])", re.IGNORECASE)
        return _TWICE.sub(once, whole.sub(lambda found: f"\0{by_role[_spelled(found[0]).casefold()]}\0", line))


NO_SUCH_MEMBER = "(no such member)"
_NAMED = re.compile("\0([^\0]+)\0")
# The six languages that figures are read in, too: English, German, French, Spanish, Italian and Dutch.
_JOINS = r"and|or|as\s+well\s+as|und|oder|sowie|et|ou|ainsi\s+que|[yeou]|ed|en"
_AND = rf"(?:\s*+(?:[,&/+]|\b(?:{_JOINS}|of)\b))*+\s*+"  # possessive: many commas cost no power of their number
_MEMBER = r"(?i:\b(?:members?|mitglied(?:er)?|membres?|miembros?|membr[oi]|lid|leden))"
_LETTERED = re.compile(
    rf"{_MEMBER}\s+(?!a\s+(?!(?:{_JOINS})\b)\w)(?i:(?:[a-z]\b{_AND})+)"  # not "the member a consultant hired"
    rf"|\A\s*(?:[A-Z]\b{_AND})+(?=\s*(?:\(|\Z|{_MEMBER}\s+(?i:[a-z])\b))"
)
_LETTER = re.compile(rf"{_MEMBER}\s+([A-Za-z])\b|\b([A-Za-df-np-tv-xz])\b")  # a small e, o, u or y may be a join
_TWICE = re.compile(r"\0([^\0]+)\0(?:\s*\((?:\0\1\0|([A-Z]))\)|[\s,/–-]*\0\1\0)")  # by role and by letter
_EXCEPTION = re.compile(
    r"\b(?:except|excluding|without|not|(?:other|rather)\s+than|(?:apart|aside)\s+from|(?:all|every\w*)\s+but"
    r"|außer|ausser|ohne|nicht|sauf|excepté|hormis|sans|pas|excepto|salvo|menos|sin|tranne|eccetto|senza|non"
    r"|behalve|zonder|niet)\b.*",
    re.IGNORECASE,
)
_NO_EXCEPTION = re.compile(
    r"\b(?:nobody|no\s+(?:one|member)|none|niemand|personne|nadie|nessuno),?\s+(?:except|but|(?:other|apart)\s+\w+|außer"
    r"|ausser|sauf|excepto|salvo|tranne|eccetto|behalve)\b"
    r"|\b(?:not\s+only|nicht\s+nur|non\s+(?:seulement|solo)|pas\s+seulement|niet\s+alleen)\b",
    re.IGNORECASE,
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
