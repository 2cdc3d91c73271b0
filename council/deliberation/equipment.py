"""The equipment of a council: `CouncilSetup` for all runs, built once from the core; `Equipment` for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from council.agents.memory import Memory
from council.deliberation.guarding import Guard
from council.deliberation.members import Member
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import Embedder, Recall
from council.redaction import Redactor
from council.storage.paths import ConfinedRoot
from council.systems import Models
from council.tools.registry import ToolRegistry


@dataclass(frozen=True)
class Limits:
    """Bounds of one deliberation; requests and bytes count over the whole task."""

    max_requests_per_reply: int
    max_requests: int
    max_context_bytes: int


@dataclass(frozen=True)
class Equipment:
    """The means of one deliberation. `model_of` is whom to ask for an agent. `window_chars`: how many characters the
    smallest context of their models holds, by what is known of tokens now; 0: without end. `streams`: text is shown
    as it arrives. `native_tools`: models get what their agents may ask for as functions, too. `embedder` is what
    tools search with, `recall` what a recorded run searched with."""

    model_of: Callable[[Member], Model]
    tools: ToolRegistry
    limits: Limits
    seconds_to_midnight: Callable[[], float]
    window_chars: Callable[[], int]
    streams: bool = False
    native_tools: bool = False
    embedder: Embedder | None = None
    recall: Recall | None = None


@dataclass(frozen=True)
class CouncilSetup:
    """The things that the handler needs from the outside, built once by `app`."""

    home: Path
    root: ConfinedRoot
    personas: Path
    seeds: Path | None
    memory: Memory
    models: Models
    seconds_to_midnight: Callable[[], float]
    tools: ToolRegistry
    streams: bool
    native_tools: bool
    limits: Limits
    clock: Clock
    guard: Guard
    redactor: Redactor
