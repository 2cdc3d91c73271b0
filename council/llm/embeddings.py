"""The second seam: `Embedder.embed(texts) -> Embeddings`, texts as points that lie near each other when they mean the
same. An embedder is named, resolved, wrapped and fails as a chat model does."""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from council.llm.base import Usage

MAX_DIMENSIONS = 8_192  # twice what any model gives; a vector of more is no answer to this question
REQUEST_TIMEOUT_S = 30.0  # at most: a search waits for it, and without it there is still an answer by words

Purpose = Literal["passage", "question"]


class Embeddings(msgspec.Struct, frozen=True):
    """One vector a text, in their order: an `array("f")` of length 1 each. `usage` None: the provider did not count."""

    vectors: tuple[Any, ...]
    usage: Usage | None = None


class EmbeddingCall(msgspec.Struct, frozen=True, omit_defaults=True):
    model: str
    usage: Usage | None = None


class Embedder(Protocol):
    """`name` is `provider:id`; `dimensions` what was asked for, None for the model's own. `embed` takes at most
    `max_texts` texts, none empty and each of at most `max_text_bytes` bytes in UTF-8. `purpose`: some models place a
    question where its answers lie."""

    name: str
    dimensions: int | None
    max_texts: int
    max_text_bytes: int

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings: ...

    async def aclose(self) -> None: ...


class EmbedderAround:
    """An Embedder around another one: the same name and limits, closed with it. `around` is given each call, and makes it."""

    def __init__(
        self,
        inner: Embedder,
        around: Callable[[Callable[[], Awaitable[Embeddings]]], Awaitable[Embeddings]] = lambda call: call(),
    ) -> None:
        self._inner = inner
        self._around = around
        self.name, self.dimensions = inner.name, inner.dimensions
        self.max_texts, self.max_text_bytes = inner.max_texts, inner.max_text_bytes

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        return await self._around(partial(self._inner.embed, texts, purpose=purpose))

    async def aclose(self) -> None:
        await self._inner.aclose()


class CountedEmbedder(EmbedderAround):
    """An Embedder that remembers which of its calls were answered, whatever became of the answers."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.calls: list[EmbeddingCall] = []

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        embedded = await self._inner.embed(texts, purpose=purpose)
        self.calls.append(EmbeddingCall(self.name, embedded.usage))
        return embedded


def cut_to(text: str, max_bytes: int) -> str:
    """The beginning of a text that is not longer than so many bytes in UTF-8."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= max_bytes else data[:max_bytes].decode("utf-8", "ignore")


def unit_vectors(rows: object, *, count: int, dimensions: int | None) -> tuple[Any, ...]:
    """A provider's rows as vectors of length 1. Raises ValueError, which says what is wrong with them."""
    if not isinstance(rows, list | tuple):
        raise ValueError("it has no list of vectors")
    if len(rows) != count:
        raise ValueError(f"{len(rows)} vectors came for {count} texts")
    vectors = []
    for row in rows:
        if not isinstance(row, list | tuple) or not 0 < len(row) <= MAX_DIMENSIONS:
            raise ValueError(f"a vector is not a list of 1 to {MAX_DIMENSIONS} numbers")
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in row):
            raise ValueError("a vector contains something that is not a number")
        length = math.hypot(*row)
        if not math.isfinite(length) or length == 0.0:
            raise ValueError("a vector has no direction")
        vectors.append(array("f", [value / length for value in row]))
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise ValueError("its vectors have different numbers of dimensions")
    if dimensions is not None and lengths - {dimensions}:
        raise ValueError(f"its vectors have {lengths.pop()} dimensions, and {dimensions} were asked for")
    return tuple(vectors)
