"""Questions asked by their words and by their meaning: the Cortex with an embedding model beside it.

What has no vector yet is embedded first, in calls of bounded size, and each call's vectors are kept at once. Where the
embedding model fails, or a budget does not allow its calls, the answer is the one by words alone, and says so and why.
Which calls are made, by whom they are paid and how often they are repeated is the embedder's own affair.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from council.budgets import BudgetSpent
from council.errors import DaemonRunning, ModelError
from council.knowledge.cortex.cortex import DEFAULT_LIMIT, MAX_QUESTION_CHARS, Answer, Cortex, Scope
from council.knowledge.cortex.vectors import DimensionsChanged, Key, Meaning
from council.llm.embeddings import Embedder, cut_to
from council.safety.untrusted import clean
from council.tools.base import EmbeddingCall

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Searched:
    """`calls` are those that it took, to the embedding model."""

    answer: Answer
    calls: tuple[EmbeddingCall, ...]


class Search:
    """A Cortex, and the name under which its vectors are kept; without one it is asked by words alone."""

    def __init__(self, cortex: Cortex, model: str = "") -> None:
        self.cortex = cortex
        self.model = model
        self._embedding = asyncio.Lock()  # two runs that miss the same vectors pay for them once

    async def query(
        self,
        question: str,
        *,
        scope: Scope = "files",
        limit: int = DEFAULT_LIMIT,
        group: str = "",
        patience_s: float = 0.0,
        embedder: Embedder | None = None,
    ) -> Searched:
        """As `Cortex.query`. Without an `embedder` only vectors that are kept are of use. Raises StorageFailed."""
        question, notes = clean(question[:MAX_QUESTION_CHARS]), []
        calls: list[EmbeddingCall] = []
        meaning: Meaning | None = None
        if self.model and any(char.isalnum() for char in question):
            try:
                meaning, note = await self._meaning(question, scope, embedder, calls, patience_s)
                notes += [note] if note else []
            except (ModelError, BudgetSpent, DaemonRunning, DimensionsChanged) as error:
                notes.append(f"by words alone, not by meaning: {_reason(self.model, error)}")
                log.warning("a question to the Cortex was answered %s", notes[-1])
        answer = await asyncio.to_thread(
            self.cortex.query,
            question,
            scope=scope,
            limit=limit,
            group=group,
            patience_s=patience_s,
            meaning=meaning,
        )
        return Searched(replace(answer, notes=(*answer.notes, *notes)), tuple(calls))

    async def embed(self, embedder: Embedder, scope: Scope = "files", *, patience_s: float = 0.0) -> int:
        """Embeds what has no vector yet; how many passages those were. Raises ModelError, BudgetSpent, DaemonRunning,
        DimensionsChanged, StorageFailed."""
        async with self._embedding:
            missing = await asyncio.to_thread(self.cortex.unembedded, self.model, scope, patience_s=patience_s)
            await self._embed(missing.texts, scope, embedder, [], patience_s)
        return len(missing.texts)

    async def _meaning(
        self, question: str, scope: Scope, embedder: Embedder | None, calls: list[EmbeddingCall], patience_s: float
    ) -> tuple[Meaning | None, str]:
        """The question's vector, when all passages have theirs; and what is to be said of them."""
        async with self._embedding:
            missing = await asyncio.to_thread(self.cortex.unembedded, self.model, scope, patience_s=patience_s)
            vector = await asyncio.to_thread(self.cortex.vector_of_question, self.model, question, scope)
            if embedder is None and (vector is None or missing.texts):
                return None, "by words alone, not by meaning: this model asks no embedding model"
            if embedder is not None:
                await self._embed(missing.texts, scope, embedder, calls, patience_s)
                if vector is None:
                    vector = await self._embed_question(question, scope, embedder, calls, patience_s)
        note = ""
        if missing.left_out:
            note = f"{missing.left_out} passages are beyond what is compared by meaning; they are found by words alone"
        return Meaning(self.model, vector), note

    async def _embed(
        self, texts: Mapping[Key, str], scope: Scope, embedder: Embedder, calls: list[EmbeddingCall], patience_s: float
    ) -> None:
        keys = list(texts)
        for at in range(0, len(keys), embedder.max_texts):
            some = keys[at : at + embedder.max_texts]
            vectors = await _call(embedder, [texts[key] for key in some], calls, question=False)
            found = dict(zip(some, vectors, strict=True))
            await asyncio.to_thread(self.cortex.keep_vectors, self.model, found, scope, patience_s=patience_s)
        if keys:
            log.info("%d passages of %s were embedded by %s", len(keys), scope, embedder.name)

    async def _embed_question(
        self, question: str, scope: Scope, embedder: Embedder, calls: list[EmbeddingCall], patience_s: float
    ) -> object:
        [vector] = await _call(embedder, [question], calls, question=True)
        found = {Key.of(question, question=True): vector}
        await asyncio.to_thread(self.cortex.keep_vectors, self.model, found, scope, patience_s=patience_s)
        return vector


async def _call(
    embedder: Embedder, texts: Sequence[str], calls: list[EmbeddingCall], *, question: bool
) -> Sequence[object]:
    cut = [cut_to(text, embedder.max_text_bytes) for text in texts]
    embedded = await embedder.embed(cut, purpose="question" if question else "passage")
    calls.append(EmbeddingCall(embedder.name, embedded.usage))
    return embedded.vectors


def _reason(model: str, error: Exception) -> str:
    match error:
        case DimensionsChanged():
            return f"{model} gives {error} now, and gave others before; the next question embeds everything anew"
        case DaemonRunning():
            return "another process is indexing"
        case _:
            return str(error).rstrip(".")
