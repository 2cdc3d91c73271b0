"""Merges rankings: hits by words and hits by meaning into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# Reciprocal rank fusion (G. V. Cormack, C. L. A. Clarke, S. Büttcher, SIGIR 2009): places alone count, so that scores of
# different kinds need no common measure.
_FUSION_K = 60


def fused(*lists: Sequence[T]) -> dict[T, float]:
    """Merges lists, each best first and without repetition: every entry with the sum of 1 / (60 + its place)."""
    scores: dict[T, float] = defaultdict(float)
    for ranked in lists:
        for place, item in enumerate(ranked, start=1):
            scores[item] += 1 / (_FUSION_K + place)
    return dict(scores)
