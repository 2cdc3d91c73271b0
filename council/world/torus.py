"""Cells of a torus: who stands beside whom, and how far apart. A cell is `y * width + x`."""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

Shape = tuple[int, int]  # width, height


def beside(cell: int, shape: Shape) -> tuple[int, int, int, int]:
    """The four cells next to a cell, round the edges."""
    width, height = shape
    y, x = divmod(cell, width)
    return (
        y * width + (x + 1) % width,
        y * width + (x - 1) % width,
        (y + 1) % height * width + x,
        (y - 1) % height * width + x,
    )


def squared_distance(one: int, other: int, shape: Shape) -> int:
    """The square of the shortest way between two cells."""
    width, height = shape
    (y1, x1), (y2, x2) = divmod(one, width), divmod(other, width)
    dx, dy = abs(x1 - x2), abs(y1 - y2)
    return min(dx, width - dx) ** 2 + min(dy, height - dy) ** 2


def distance(one: int, other: int, shape: Shape) -> int:
    """The shortest way between two cells, in thousandths of a cell."""
    return isqrt(squared_distance(one, other, shape) * 1_000_000)


def centre(cells: Iterable[int], shape: Shape) -> int:
    """The cell with the smallest sum of squared distances to all of them; the first such one."""
    own = sorted(cells)
    return min(own, key=lambda cell: (sum(squared_distance(cell, other, shape) for other in own), cell))
