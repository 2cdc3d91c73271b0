"""What a council gets from the outside, built once by `app`: its models, and everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from council.agents.memory import Memory
from council.budgets.prices import Price
from council.commands.models import BudgetConfig
from council.deliberation.deliberate import Limits
from council.deliberation.guarding import Guard
from council.engine.runs import Run
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import Embedder, Recall
from council.redaction import Redactor
from council.storage.paths import ConfinedRoot, PathRules
from council.tools.registry import ToolRegistry


@dataclass(frozen=True)
class RunModels:
    """The models of one run by their chain, and what its tools search with, if anything; its budget is asked by all."""

    of: Callable[[tuple[str, ...]], Model]
    embedder: Embedder | None = None
    recall: Recall | None = None


class Models(Protocol):
    """The models of all runs, by chain: spellings of which each stands in for the one before it."""

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """Which ones speak for an agent, by what its manifest and the command say; role "": for the council."""

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """What receipts and pages call them. Raises ConfigError for one that cannot be had."""

    def price(self, name: str) -> Price | None:
        """None when nobody knows it."""

    @property
    def embedding(self) -> str:
        """The name of what tools search with; empty without."""

    @property
    def meanings(self) -> str:
        """Under which name the vectors lie that tools search by, now or when it was recorded; empty without."""

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        """How many characters the smallest context among them holds, as far as is known now to the run of this secret."""

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models, which ask its budget before each call; `chair` is the name of the closing call's."""


@dataclass(frozen=True)
class CouncilSetup:
    """What the handler needs from the outside, built once by `app`."""

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
    output_rules: PathRules
    clock: Clock
    guard: Guard
    redactor: Redactor
