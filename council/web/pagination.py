"""A part of a long list, as a page shows it; the number of the part stands in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")
Other = TypeVar("Other")
_ROWS = 50


@dataclass(frozen=True)
class Slice(Generic[Row]):
    """The `rows` of part `number` of `parts`, from 1. `of`: how many rows there are in all. `name`: its key in the address."""

    rows: Sequence[Row]
    number: int
    parts: int
    of: int
    name: str

    def showing(self, rows: Sequence[Other]) -> Slice[Other]:
        """The same part with what is shown of each row."""
        return Slice(rows, self.number, self.parts, self.of, self.name)


def slice_of(rows: Sequence[Row], filters: Mapping[str, str], name: str, most: int = _ROWS) -> Slice[Row]:
    """The part that the address asks for; the nearest one where there is no such part."""
    return slice_from(len(rows), lambda first, count: rows[first : first + count], filters, name, most)


def slice_from(
    of: int, read: Callable[[int, int], Sequence[Row]], filters: Mapping[str, str], name: str, most: int = _ROWS
) -> Slice[Row]:
    """Finds like `slice_of` where only the rows of that part are read: those behind the first so many, and how many."""
    parts, asked = max(1, -(-of // most)), filters.get(name, "1")
    number = min(parts, max(1, int(asked[:9]) if asked.isascii() and asked.isdigit() else 1))
    return Slice(read((number - 1) * most, most), number, parts, of, name)
