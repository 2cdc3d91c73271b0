"""The things that every deliberation of a home shares, built once by `app`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from council.agents.memory import Memory
from council.ids import Clock
from council.redaction import Redactor
from council.storage.paths import ConfinedRoot
from council.tools.registry import ToolRegistry
from council.turns.equipment import Models, RequestLimits
from council.turns.guarding import Guard


@dataclass(frozen=True)
class CouncilSetup:
    """The means of the handler. Of each run `guard` is the beginning."""

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
    limits: RequestLimits
    clock: Clock
    guard: Guard
    redactor: Redactor
