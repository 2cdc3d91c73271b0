"""The agents nearest to a part: by the embedding of their purposes, or by words where no embedding model is set.

Words only decide which agents the model sees, never which one is chosen. Vectors lie in `agent_embeddings`; one is made
anew when its agent's purpose, name or trust changes, or the model does.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache, partial
from heapq import nlargest
from operator import mul

import msgspec

from council.agents.manifest import AgentManifest
from council.conductor import statements as sql
from council.ids import sha256_hex
from council.llm.embeddings import CountedEmbedder, Embedder, EmbeddingCall, cut_to
from council.storage.store import Store, Tx

# That a model is shown: its request does not grow with the number of agents. Words miss more than meanings do.
NEAREST, NEAREST_BY_WORDS = 8, 16
_WORD = re.compile(r"[^\W_]{3,}")


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent near to a part. `score` is the cosine of the embeddings, None where it was found by words."""

    agent: str
    role: str
    purpose: str
    is_trusted: bool = True
    score: float | None = None


class Matches(msgspec.Struct, frozen=True):
    """The candidates of each part, nearest first, and the calls that finding them took. `fault`: why they were not found by
    meaning, though they should have been."""

    parts: tuple[tuple[Candidate, ...], ...]
    calls: tuple[EmbeddingCall, ...] = ()
    fault: str = ""


def by_words(agents: Sequence[AgentManifest], texts: Sequence[str]) -> Matches:
    """The nearest agents by the words that they share with a text, rare words before common ones. All, where they are few."""
    index = _index(tuple((agent.id, agent.purpose, agent.aliases) for agent in agents))
    found = []
    for text in texts:
        scores: dict[int, float] = {}
        for word in _words(text):
            for number in index.get(word, ()):
                scores[number] = scores.get(number, 0.0) + math.log(1 + len(agents) / len(index[word]))
        ranked = nlargest(NEAREST_BY_WORDS, scores.items(), key=lambda each: (each[1], -each[0]))
        best = [number for number, _ in ranked]
        best += [number for number in range(min(NEAREST_BY_WORDS, len(agents))) if number not in best]
        found.append(tuple(_candidate(agents[number]) for number in best[:NEAREST_BY_WORDS]))
    return Matches(tuple(found))


async def by_meaning(
    store: Store, embedder: Embedder, agents: Sequence[AgentManifest], texts: Sequence[str]
) -> Matches:
    """The nearest agents by embedding. Agents whose vector is missing or out of date are embedded first. Raises ModelError,
    BudgetSpent, StorageFailed."""
    counted = CountedEmbedder(embedder)
    wanted = {agent.id: (agent, version_of(agent)) for agent in agents}
    known: dict[str, tuple[str, bytes]] = {
        row[0]: (row[1], bytes(row[2]))
        for row in store.read(lambda tx: tx.execute(sql.VECTORS, (embedder.name,)).fetchall())
    }
    missing = [agent for agent, version in wanted.values() if known.get(agent.id, ("",))[0] != version]
    for at in range(0, len(missing), embedder.max_texts):
        batch = missing[at : at + embedder.max_texts]
        embedded = await counted.embed([cut_to(_text_of(agent), embedder.max_text_bytes) for agent in batch])
        rows = [
            (agent.id, embedder.name, version_of(agent), array("f", vector).tobytes())
            for agent, vector in zip(batch, embedded.vectors, strict=True)
        ]

        def keep(tx: Tx, rows: Sequence[tuple[str, str, str, bytes]] = rows) -> None:
            for row in rows:
                tx.execute(sql.KEEP_VECTOR, row)

        await store.write(keep)
        known |= {row[0]: (row[2], row[3]) for row in rows}
    asked = await counted.embed([cut_to(text, embedder.max_text_bytes) for text in texts], purpose="question")
    found = []
    for question in asked.vectors:
        scored = [(sum(map(mul, _vector(known[agent.id][1]), question)), agent) for agent in agents]
        nearest = nlargest(NEAREST, scored, key=lambda each: each[0])
        found.append(tuple(_candidate(agent, round(score, 4)) for score, agent in nearest))
    return Matches(tuple(found), tuple(counted.calls))


def version_of(agent: AgentManifest) -> str:
    """A hash that changes with the purpose, the name or the trust of an agent."""
    return sha256_hex(f"{agent.trust}\n{_text_of(agent)}")


def _text_of(agent: AgentManifest) -> str:
    return f"{agent.id}: {agent.purpose}"


def _candidate(agent: AgentManifest, score: float | None = None) -> Candidate:
    return Candidate(agent.id, agent.role, agent.purpose, agent.is_trusted, score)


def _words(text: str) -> set[str]:
    return {word[:6] for word in _WORD.findall(text.lower())}  # a stem of any language, roughly


@lru_cache(maxsize=4)  # agents change seldom, and every request asks
def _index(agents: tuple[tuple[str, str, tuple[str, ...]], ...]) -> dict[str, list[int]]:
    """The agents by the words of their names and purposes."""
    found: dict[str, list[int]] = {}
    for number, (name, purpose, aliases) in enumerate(agents):
        for word in _words(" ".join((name, purpose, *aliases)).replace("-", " ").replace("_", " ")):
            found.setdefault(word, []).append(number)
    return found


_vector = lru_cache(maxsize=4_096)(partial(array, "f"))
