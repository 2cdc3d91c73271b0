"""Questions asked by their words and by their meaning: the Cortex with an embedding model beside it.

Passages without a vector are embedded first, in calls of bounded size, and each call's vectors are kept at once. The
answer is by words alone, and says why, where the model fails, a budget forbids its calls, or vectors cannot be kept.
Paying for calls and repeating them is the embedder's own affair.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from council.budgets.budget import BudgetSpent
from council.deadline import in_a_spare_thread
from council.errors import DaemonRunning, ModelError, StorageFailed
from council.knowledge.cortex.cortex import DEFAULT_LIMIT, MAX_QUESTION_CHARS, Cortex, CortexAnswer, Scope
from council.knowledge.cortex.vectors import DimensionsChanged, Meaning, VectorKey
from council.llm.embeddings import Embedder, cut_to
from council.safety.untrusted import clean

log = logging.getLogger(__name__)


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
    ) -> CortexAnswer:
        """Answers like `Cortex.query`. Without an `embedder` only vectors that are kept are of use. Raises StorageFailed."""
        question = clean(question[:MAX_QUESTION_CHARS])
        notes: tuple[str, ...] = ()
        meaning: Meaning | None = None
        if self.model and any(char.isalnum() for char in question):
            try:
                meaning, notes = await self._meaning(question, scope, embedder, patience_s)
            except (ModelError, BudgetSpent, DaemonRunning, DimensionsChanged, StorageFailed) as error:
                notes = (f"found only by words, not by meaning: {_reason(self.model, error)}",)
                log.warning("a question to the Cortex was answered %s", notes[0])
        answer = await in_a_spare_thread(
            self.cortex.query, question, scope=scope, limit=limit, group=group, patience_s=patience_s, meaning=meaning
        )
        return replace(answer, notes=(*answer.notes, *notes))

    async def embed(self, embedder: Embedder, scope: Scope = "files", *, patience_s: float = 0.0) -> int:
        """Embeds what has no vector yet; how many passages. Raises as `Cortex.keep_vectors`, ModelError, BudgetSpent."""
        async with self._embedding:
            missing = await in_a_spare_thread(self.cortex.missing_vectors, self.model, scope, "", patience_s)
            await self._embed(missing.texts, scope, embedder, patience_s)
        return len(missing.texts)

    async def _meaning(
        self, question: str, scope: Scope, embedder: Embedder | None, patience_s: float
    ) -> tuple[Meaning | None, tuple[str, ...]]:
        async with self._embedding:
            missing = await in_a_spare_thread(self.cortex.missing_vectors, self.model, scope, question, patience_s)
            vector = missing.question
            if embedder is None and (vector is None or missing.texts):
                return None, ("found only by words, not by meaning: this model asks no embedding model",)
            if embedder is not None:
                await self._embed(missing.texts, scope, embedder, patience_s)
                if vector is None:
                    [vector] = await _call(embedder, [question], question=True)
                    found = {VectorKey.of(question, question=True): vector}
                    await in_a_spare_thread(self.cortex.keep_vectors, self.model, scope, found, patience_s)
        beyond = "passages are beyond the number compared by meaning; they are found only by words"
        return Meaning(self.model, vector), (f"{missing.left_out} {beyond}",) if missing.left_out else ()

    async def _embed(self, texts: Mapping[VectorKey, str], scope: Scope, embedder: Embedder, patience_s: float) -> None:
        keys = list(texts)
        for at in range(0, len(keys), embedder.max_texts):
            some = keys[at : at + embedder.max_texts]
            vectors = await _call(embedder, [texts[key] for key in some], question=False)
            found = dict(zip(some, vectors, strict=True))
            await in_a_spare_thread(self.cortex.keep_vectors, self.model, scope, found, patience_s)
        if keys:
            log.info("%d passages of %s were embedded by %s", len(keys), scope, embedder.name)


async def _call(embedder: Embedder, texts: Sequence[str], *, question: bool) -> Sequence[object]:
    cut = [cut_to(text, embedder.max_text_bytes) for text in texts]
    embedded = await embedder.embed(cut, purpose="question" if question else "passage")
    return embedded.vectors


def _reason(model: str, error: Exception) -> str:
    match error:
        case DimensionsChanged():
            return f"{model} gives {error} now, and gave others before; the next question embeds everything again"
        case DaemonRunning():
            return "another process is indexing"
        case _:
            return str(error).rstrip(".")
