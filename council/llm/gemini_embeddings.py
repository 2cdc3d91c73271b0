"""`GeminiEmbedder`: Gemini's embedding models behind the `Embedder` seam, through the client of `council.llm.gemini`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from council.llm.embeddings import Embeddings, Purpose
from council.llm.gemini import GeminiModel

DEFAULT_ID = "gemini-embedding-001"
DEFAULT_DIMENSIONS = 768


class GeminiEmbedder:
    """A Gemini embedding model by its id. Its own size is 3,072 dimensions; the default here is 768, which Google recommends
    beside it. That is a fourth of the room, and hardly worse at finding things."""

    max_texts = 64  # the API takes 100
    max_text_bytes = 6_000  # the API cuts off behind 2,048 tokens: some three thousand bytes of prose are well within

    def __init__(self, client: GeminiModel, model_id: str, *, dimensions: int | None = None) -> None:
        self._client = client
        self.name = client.name
        self.dimensions = dimensions or DEFAULT_DIMENSIONS
        self._has_task_types = not model_id.startswith("gemini-embedding-2")  # which wants no such word

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """One call, one attempt. Raises ModelError."""
        config: dict[str, Any] = {"output_dimensionality": self.dimensions}
        if self._has_task_types:
            config["task_type"] = "RETRIEVAL_QUERY" if purpose == "question" else "RETRIEVAL_DOCUMENT"
        return await self._client.embed(texts, config, self.dimensions)

    async def aclose(self) -> None:
        """Closes the connections; a later call opens new ones."""
        await self._client.aclose()
