"""The effect of a write tool as a person sees it before it takes place, and the operation that takes it back."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec


class Difference(msgspec.Struct, frozen=True):
    """A field that an operation changes, as a person knows it. `before` is empty where there was nothing."""

    field: str
    before: str = ""
    after: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines that go, that come, and one around them, each with its sign of a unified diff."""
        was, becomes = (text.split("\n") if text else [] for text in (self.before, self.after))
        return [*difflib.unified_diff(was, becomes, n=1, lineterm="")][3:]  # behind the head


class Preview(msgspec.Struct, frozen=True):
    """The effect of an operation, told before it takes place: without ids, and without anything that is locked.

    `affects` names the people who notice it. `state` stands for the rows that it touches, as they are now: any text that
    differs once somebody has changed them. It is kept with the plan, so it is a hash or a number and no content.
    """

    summary: str
    differences: tuple[Difference, ...] = ()
    affects: tuple[str, ...] = ()
    undoable: bool = True
    state: str = ""


class Inverse(msgspec.Struct, frozen=True):
    """The operation that takes another one back: a write or danger tool and its arguments."""

    tool: str
    arguments: dict[str, Any]
