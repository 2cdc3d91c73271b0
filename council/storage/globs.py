"""Globs, matched in one pass: the time grows with the pattern's length times the path's, whatever stands in them.

A regular expression would go back and forth between the stars, for hours where a pattern has many. Here a number holds
every place of the path that the pattern has reached so far: bit n stands for the path's first n characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum


class Wild(Enum):
    """A sign that stands for more than itself."""

    ONE = "?"  # one character of a name
    NAME = "*"  # any number of characters of one name
    FOLDERS = "**/"  # any number of whole folders
    ALL = "**"  # anything


# A literal is one character; a set of characters is a regular expression for one.
Token = str | Wild | re.Pattern[str]

_TOKEN = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
_WILD: dict[str, Wild] = {wild.value: wild for wild in Wild}


def tokens_of(glob: str) -> list[Token]:
    """`*` and `?` stay within a name, `**` crosses folders; nothing else is special."""
    return [_WILD.get(token, token) for token in _TOKEN.findall(glob)]


class Letters:
    """The places of the characters of one path: bit n is the n-th, from 0."""

    def __init__(self, path: str) -> None:
        self.end = 1 << len(path)
        self._where: dict[str, int] = {}
        for place, char in enumerate(path):
            self._where[char] = self._where.get(char, 0) | 1 << place
        self.slashes = self._where.get("/", 0)
        self._in_names = (self.end - 1) ^ self.slashes

    def reached(self, tokens: Sequence[Token]) -> int:
        """The places at which a pattern can end; those that have `end` fit the whole path."""
        reached = 1
        for token in tokens:
            if isinstance(token, str):
                reached = (reached & self._where.get(token, 0)) << 1
            elif token is Wild.FOLDERS:
                reached |= (-(reached & -reached) & self.slashes) << 1  # behind each slash from the first place on
            elif token is Wild.NAME:
                # The carry of the sum runs from each place to the end of its name.
                reached |= ((reached & self._in_names) + self._in_names) ^ self._in_names
            elif token is Wild.ALL:
                reached = -(reached & -reached) & ((self.end << 1) - 1)  # the first place and all that follow
            else:
                fits = self._in_names
                if not isinstance(token, Wild):
                    fits &= sum(places for char, places in self._where.items() if token.fullmatch(char))
                reached = (reached & fits) << 1
            if not reached:
                break
        return reached
