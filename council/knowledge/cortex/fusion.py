"""Several ranked lists as one. Pure.

Reciprocal rank fusion: G. V. Cormack, C. L. A. Clarke, S. Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
individual Rank Learning Methods", SIGIR 2009. It looks at places alone, so that scores of different kinds need no common
measure; k = 60 is theirs, found to serve everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

K = 60
T = TypeVar("T")


def fused(lists: Iterable[Sequence[T]]) -> dict[T, float]:
    """Merges lists, each best first and without repetition: every entry with the sum of 1 / (60 + its place)."""
    scores: dict[T, float] = defaultdict(float)
    for ranked in lists:
        for place, item in enumerate(ranked, start=1):
            scores[item] += 1 / (K + place)
    return dict(scores)
