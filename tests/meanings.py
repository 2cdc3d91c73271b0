"""Vectors for the fake servers: a text lies where its topics lie, whatever words it uses for them.

Each topic is a direction; a text points towards those of its words that are known, and a little into a direction of its
own, so that no two texts lie at one place.
"""

from __future__ import annotations

import hashlib
import re

DIMENSIONS = 8
_TOPICS = (
    ("car", "automobile", "vehicle", "motor", "sedan"),
    ("soup", "broth", "meal", "dinner"),
    ("walrus", "seal", "mammal"),
    ("money", "price", "cost", "budget"),
)


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Not of length 1: what wants unit vectors must see to that itself."""
    words = re.findall(r"[a-z]+", text.lower())
    vector = [3.0 * sum(word.rstrip("s") in topic for word in words) for topic in _TOPICS]
    vector += [0.0] * (dimensions - len(vector))
    own = hashlib.sha256(text.encode()).digest()[0] % (dimensions - len(_TOPICS))
    vector[len(_TOPICS) + own] += 0.3
    return vector
