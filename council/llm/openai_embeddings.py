"""`OpenAIEmbedder`: any server that speaks OpenAI's `/embeddings`, behind the `Embedder` seam.

The connection, its limits and its errors are those of `openai_compatible`; here is only what is asked and what comes back.
Ollama, vLLM, llama.cpp and routers serve it as OpenAI does. Servers that do not know `dimensions` refuse it, and that is said.
Vectors of another size than the one that was set would not fit those that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from council.llm.base import Usage
from council.llm.bounds import plausible
from council.llm.embeddings import Embeddings, Purpose, unit_vectors
from council.llm.openai_answer import count_of
from council.llm.openai_compatible import OpenAICompatibleModel
from council.llm.openai_dialect import Server
from council.redaction import Secret

ENDPOINT = "/embeddings"


class OpenAIEmbedder:
    """An embedding model by its id at a server. `request_timeout_s` bounds a whole call."""

    max_texts = 64  # servers take from 32 (some vLLM set-ups) to 2048; the answer to 64 stays below a few megabytes
    max_text_bytes = 6_000  # OpenAI takes 8,191 tokens a text, and a token is at least a byte

    def __init__(
        self,
        model_id: str,
        *,
        server: Server,
        api_key: Secret | None = None,
        dimensions: int | None = None,
        request_timeout_s: float = 30,
    ) -> None:
        self._model_id = model_id
        self.dimensions = dimensions
        self._server = OpenAICompatibleModel(
            model_id, server=server, api_key=api_key, request_timeout_s=request_timeout_s, endpoint=ENDPOINT
        )
        self.name = self._server.name

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """One call, one attempt. Raises ModelError. `purpose` makes no difference to these models."""
        body: dict[str, Any] = {"model": self._model_id, "input": list(texts)}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        content = await self._server.ask(body)
        try:
            data = content.get("data") if isinstance(content, dict) else None
            if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
                raise ValueError("it has no list of vectors")
            places = [item.get("index", at) for at, item in enumerate(data)]
            if sorted(place for place in places if type(place) is int) != list(range(len(data))):
                raise ValueError("its vectors are not numbered from 0")
            placed = sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
            rows = [item.get("embedding") for _, item in placed]
            vectors = unit_vectors(rows, count=len(texts), dimensions=self.dimensions)
        except (ValueError, OverflowError) as error:
            raise self._server.malformed(str(error)) from None
        counts = content.get("usage")
        tokens = count_of(counts, "prompt_tokens") or count_of(counts, "total_tokens")
        return Embeddings(vectors, plausible(Usage(input_tokens=tokens) if tokens else None, sum(map(len, texts))))

    async def aclose(self) -> None:
        """Closes the connections; a later call opens new ones."""
        await self._server.aclose()
