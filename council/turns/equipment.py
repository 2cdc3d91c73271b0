"""The means of the turns of one run: its models, its tools, and what bounds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from council.llm.base import Model, ToolSpec
from council.llm.embeddings import Embedder
from council.tools.registry import ToolRegistry


class Speaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as one run knows it. `models` speak for it, each standing in for the one before; `model` is the name of
    the first. `withheld` are the parts of the context that its manifest keeps from it."""

    role: str
    system: str
    memory: str
    tools: tuple[str, ...]
    models: tuple[str, ...] = ()
    model: str = ""
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestLimits:
    max_requests_per_reply: int
    max_requests: int
    max_context_bytes: int


@dataclass(frozen=True)
class Equipment:
    """`window_chars`: how many characters the smallest context of the models holds; 0: without end. `streams`: text is
    shown as it arrives, and `redact` takes the secrets out of it. `rehearses`: no language model is among them.
    `functions` are the tools that a model gets as functions."""

    model_of: Callable[[Speaker], Model]
    tools: ToolRegistry
    limits: RequestLimits
    seconds_to_midnight: Callable[[], float]
    window_chars: Callable[[], int]
    redact: Callable[[str], str]
    streams: bool = False
    rehearses: bool = False
    functions: Callable[[tuple[str, ...]], tuple[ToolSpec, ...]] = lambda allowed: ()
    embedder: Embedder | None = None
