"""The index of a home's files and of its agents' archived memory: brought up to date, asked, looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from council.app.knowledge_tools import build_cortex, build_texts, read_rules
from council.desk.desk import Desk
from council.knowledge.cortex.cortex import SCOPES, Cortex, CortexAnswer, Scope
from council.knowledge.cortex.hybrid_search import Search
from council.knowledge.cortex.index import Refresh, Status
from council.llm.embeddings import Embedder, EmbedderAround
from council.llm.retry import Retries
from council.storage.files import FileLock
from council.storage.paths import ConfinedRoot
from council.turns.model_building import build_embedding_model, embedding_name

_PATIENCE_S = 5.0  # for another process that is writing the index; a small change takes it a fraction of that


@dataclass(frozen=True)
class IndexUpdate:
    """One scope brought up to date. `embedded`: passages that got their vectors now, None without an embedding model."""

    refresh: Refresh
    status: Status
    embedded: int | None


def update_index(desk: Desk, *, rebuild: bool) -> dict[Scope, IndexUpdate]:
    """Reads what changed since the last time; `rebuild` starts over. Raises ConfigError, ModelError, DaemonRunning."""
    with _cortex(desk) as built:
        done = {
            scope: (built.refresh(scope, rebuild=rebuild, patience_s=_PATIENCE_S), built.status(scope))
            for scope in SCOPES
        }

        async def embed_all() -> dict[Scope, int]:
            async with _embedder(desk) as embedder:
                if embedder is None:
                    return {}
                search = Search(built, embedding_name(desk.settings))
                return {scope: await search.embed(embedder, scope, patience_s=_PATIENCE_S) for scope in SCOPES}

        embedded = asyncio.run(embed_all())
    return {scope: IndexUpdate(*update, embedded.get(scope)) for scope, update in done.items()}


def ask_index(desk: Desk, question: str, scope: Scope, limit: int) -> CortexAnswer:
    """The passages that fit best, as the files are now. Raises as `update_index`."""
    with _cortex(desk) as built:

        async def ask() -> CortexAnswer:
            async with _embedder(desk) as embedder:
                search = Search(built, embedding_name(desk.settings))
                return await search.query(question, scope=scope, limit=limit, patience_s=_PATIENCE_S, embedder=embedder)

        return asyncio.run(ask())


def state_of_index(desk: Desk) -> tuple[dict[Scope, Status], dict[str, object] | None]:
    """The content of each scope, and the process that is writing, if one is."""
    with _cortex(desk) as built:
        return {scope: built.status(scope) for scope in SCOPES}, FileLock.holder(built.lock_path)


@contextmanager
def _cortex(desk: Desk) -> Iterator[Cortex]:
    settings = desk.settings
    desk.home.ensure_runtime()
    with ConfinedRoot(desk.home.root) as root:
        yield build_cortex(build_texts(root, settings), read_rules(root.root, settings), desk.keys.redactor, desk.store)


@asynccontextmanager
async def _embedder(desk: Desk) -> AsyncIterator[Embedder | None]:
    """The embedding model that settings name. A person asks: no run, and no budget of one."""
    settings = desk.settings
    if settings.embedding_model is None:
        yield None
        return
    embedder = build_embedding_model(desk.home, settings, desk.keys, settings.embedding_model)
    try:
        yield EmbedderAround(embedder, Retries(attempts=settings.model_attempts, max_wait_s=settings.max_inline_wait_s))
    finally:
        await embedder.aclose()
