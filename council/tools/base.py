"""A tool: a named function that an agent may ask for, and what it answers. The registry decides who may call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from council.llm.base import Source
from council.llm.embeddings import Embedder, EmbeddingCall, Nearness, Recall

Effect = Literal["read", "write", "danger"]


class ToolContext(msgspec.Struct, frozen=True):
    """On whose behalf a tool runs. `embedder` is the run's own, which its budget pays for; `recall` tells what a recorded
    run's embedding model said."""

    role: str = ""
    run_id: str = ""
    lane: str = "main"
    round: int = 0
    embedder: Embedder | None = None
    recall: Recall | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """The answer of a tool. With `ok` false, `error_code` is a machine word, `error` one line for the agent.
    `embeddings` are the model calls that it made itself, `nearness` what they came to."""

    ok: bool
    title: str
    text: str = ""
    sources: tuple[Source, ...] = ()
    error_code: str = ""
    error: str = ""
    embeddings: tuple[EmbeddingCall, ...] = ()
    nearness: Nearness | None = None


class RunTool(Protocol):
    async def __call__(self, argument: str, /, *, context: ToolContext) -> ToolResult: ...


@dataclass(frozen=True)
class Tool:
    """`run` gets the argument of a request, unquoted and not yet checked. `schema` is the JSON Schema of the one
    `parameter`; `spellings` are exact requests, shown to agents word for word. Only `read` tools run in a turn."""

    name: str
    description: str
    parameter: str
    effect: Effect
    spellings: tuple[str, ...]
    run: RunTool
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
