"""A part of a long list, as a page shows it; the number of the part stands in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")
_ROWS = 50


@dataclass(frozen=True)
class Slice(Generic[Row]):
    """The `rows` of part `number` of `parts`, from 1. `of`: how many rows there are in all. `name`: its key in the address."""

    rows: Sequence[Row]
    number: int
    parts: int
    of: int
    name: str


def slice_of(rows: Sequence[Row], filters: Mapping[str, str], name: str, most: int = _ROWS) -> Slice[Row]:
    """The part that the address asks for; the nearest one where there is no such part."""
    parts, asked = max(1, -(-len(rows) // most)), filters.get(name, "1")
    number = min(parts, max(1, int(asked[:9]) if asked.isascii() and asked.isdigit() else 1))
    return Slice(rows[(number - 1) * most : number * most], number, parts, len(rows), name)
