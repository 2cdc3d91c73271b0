"""The gates of a creation that are code alone: one-time tasks, duplicates, and the health of what a specialist depends on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from operator import mul
from typing import Literal

import msgspec

from council.errors import CouncilError
from council.llm.embeddings import CountedEmbedder, Embedder, EmbeddingCall, cut_to
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import MIN_CONFIDENCE, CaseResult, TestSuite, avg_confidence

MAX_CORRECTIONS = 3  # the source's: after them the refusal is final
SAME_WORDS = 0.8  # the share of words in common beyond which two purposes are one
_WORD = re.compile(r"[^\W_]{3,}")

Gate = Literal[
    "one_time", "duplicate", "design_blocked", "suite_unfit", "credential_missing", "training_failed", "unhealthy",
    "not_worth_having", "unknown_specialist",
]  # fmt: skip


class CreationRefused(CouncilError):
    """A specialist that is not made. `code` names the gate."""

    http_status = 409

    def __init__(self, gate: Gate, message: str, *, fix: str) -> None:
        super().__init__(message, fix=fix)
        self.code = gate


class KnownAgent(msgspec.Struct, frozen=True):
    """An agent that the person can reach. `names` are all by which it is called."""

    id: str
    purpose: str
    names: tuple[str, ...]
    is_trusted: bool = True
    is_own: bool = False
    depends_on: tuple[str, ...] = ()


class Likeness(msgspec.Struct, frozen=True):
    """The agent whose purpose is nearest to a design's. `score` is a cosine, or without an embedding model the share of words
    in common. `calls` are those that it took."""

    agent: str = ""
    score: float = 0.0
    most: float = 1.0
    calls: tuple[EmbeddingCall, ...] = ()

    @property
    def is_duplicate(self) -> bool:
        return self.score > self.most


def refuse_one_time(frequency: str) -> None:
    """Raises CreationRefused for a task that will not come again."""
    if frequency == "one_time":
        message = "This is needed only once, and a specialist is for what comes again and again."
        raise CreationRefused("one_time", message, fix='`council ask "…"` has it done by a temporary agent')


def refuse_known(spec: SpecialistSpec, changes: str, others: Sequence[KnownAgent], likeness: Likeness) -> None:
    """Raises CreationRefused for a second agent of one name, and for one that does what another does. A new version, of the
    specialist `changes`, keeps its name."""
    again = (
        "`council ask` reaches it by its name; `--changes` (in a file or a request: `changes`) gives your own one a new "
        "version"
    )
    if changes and spec.role != changes:
        message = f"The new version of {changes} was designed as {spec.role}, which is another specialist."
        raise CreationRefused("duplicate", message, fix="leave `--changes` out to have another one made")
    if any(spec.role.upper() in map(str.upper, agent.names) for agent in others):
        raise CreationRefused("duplicate", f"There is an agent {spec.role} already.", fix=again)
    if likeness.is_duplicate and not changes:
        message = f"The agent {likeness.agent} does this already (likeness {likeness.score:.2f})."
        raise CreationRefused("duplicate", message, fix=again)


def alike_in_words(purpose: str, agents: Sequence[KnownAgent]) -> Likeness:
    """The agent whose purpose has most words in common with this one."""
    wanted = set(_WORD.findall(purpose.lower()))
    scored = [Likeness(most=SAME_WORDS)]
    for agent in agents:
        words = set(_WORD.findall(agent.purpose.lower()))
        scored.append(Likeness(agent.id, len(wanted & words) / (len(wanted | words) or 1), SAME_WORDS))
    return max(scored, key=lambda one: one.score)


async def alike_in_meaning(
    purpose: str, agents: Sequence[KnownAgent], embedder: Embedder, most: Mapping[bool, float]
) -> Likeness:
    """The agent whose purpose means nearly the same. `most` has the source's constants for routing, by an agent's trust: what
    would be routed to an agent needs no second one. Raises ModelError, BudgetSpent."""
    counted, vectors = CountedEmbedder(embedder), list[Sequence[float]]()
    texts = [cut_to(text, counted.max_text_bytes) for text in (purpose, *(agent.purpose for agent in agents))]
    for at in range(0, len(texts), counted.max_texts):
        vectors += (await counted.embed(texts[at : at + counted.max_texts])).vectors
    calls = tuple(counted.calls)
    scored = [Likeness(calls=calls)]
    for agent, vector in zip(agents, vectors[1:], strict=True):
        cosine = round(sum(map(mul, vectors[0], vector)), 4)
        scored.append(Likeness(agent.id, cosine, most[agent.is_trusted], calls))
    return max(scored, key=lambda one: (one.is_duplicate, one.score))


def refuse_unhealthy(spec: SpecialistSpec, agents: Sequence[KnownAgent], tools: Collection[str]) -> None:
    """Raises CreationRefused where an agent or a tool that it needs is not there now."""
    if gone := spec.lacks((*tools, *(name for agent in agents for name in agent.names))):
        message = f"It depends on {', '.join(gone)}, which is not there any more."
        raise CreationRefused("unhealthy", message, fix="bring that back, then retry the run")


def refuse_untrained(suite: TestSuite, results: Sequence[CaseResult], fix: str = "") -> None:
    """Raises CreationRefused below the source's 0.75, with the cases that failed. Raises it for one answer to all hidden cases,
    too: with a table of the visible ones it could reach as much."""
    reached, hidden = avg_confidence(results), [result.output for result in results[len(suite.visible) :]]
    if reached < MIN_CONFIDENCE:
        failed = [
            f"case {number} ({result.error or f'{result.confidence:.2f}'})"
            for number, result in enumerate(results, start=1)
            if not result.success
        ]
        message = f"The training reached {reached:.3f}, and {MIN_CONFIDENCE} is needed. Failed: {', '.join(failed)}."
    elif None not in hidden and all(output == hidden[0] for output in hidden):
        message = "It gives one answer to all hidden cases, so it has learnt nothing that it was not shown."
    else:
        return
    raise CreationRefused("training_failed", message, fix=fix)
