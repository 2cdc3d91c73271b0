"""`Core` is what each system gets, `System` what it brings: one value in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from council.agents.memory import Memory
from council.audit.trail import Trail
from council.budgets.prices import Price
from council.commands.models import BudgetConfig
from council.commands.types import CommandType
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.engine.runs import ControlHandler, Handler, Run
from council.events import Events
from council.ids import Clock
from council.knowledge.cortex.cortex import Cortex
from council.llm.base import Model
from council.llm.embeddings import Embedder, Recall
from council.redaction import Redactor
from council.settings import Home, Settings
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from council.tools.base import Tool
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
        """The chain that speaks for an agent, by what its manifest and the command say; role "": for the council."""

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """The names on receipts and pages. Raises ConfigError for a model that cannot be had."""

    def price(self, name: str) -> Price | None:
        """None when nobody knows it."""

    def second_opinion(self, run_secret: str) -> str:
        """The spelling of the model that the guardrails of the run of this secret ask as well; empty for none."""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        """The name of that model on pages. Raises ConfigError for one that cannot be had."""

    @property
    def embedding(self) -> str:
        """The name of what tools search with; empty without."""

    @property
    def meanings(self) -> str:
        """The name under which the vectors lie that tools search by, now or when it was recorded; empty without."""

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        """The characters that the smallest context among them holds, as far as is known now to the run of this
        secret."""

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models, which ask its budget before each call; `chair` is the name of the closing call's."""

    def close(self) -> None:
        """At the end of the process."""


@dataclass(frozen=True)
class Core:
    """The house without its systems: built once by `app`. `tools` are those of all systems once these are built."""

    home: Home
    settings: Settings
    events: Events
    clock: Clock
    root: ConfinedRoot
    store: Store
    receipts: Receipts
    ledger: Ledger
    redactor: Redactor
    spending: Models
    memory: Memory
    cortex: Cortex
    audit: Trail
    tools: ToolRegistry


class Companion(Protocol):
    """Something that runs beside the inbox as long as the daemon."""

    @property
    def name(self) -> str:
        """Its name in the log and in `status`."""

    async def run(self) -> None:
        """Serves until it is cancelled. To return is to have ended too early: it is started again."""


@dataclass(frozen=True)
class System:
    """One system. Nothing of it is built before the core is there; its commands are admitted without one.

    `handlers` are those of its commands that become runs, `controls` those of its control commands, by type. `tables` is
    the module that declares its tables.
    """

    name: str
    commands: tuple[CommandType, ...] = ()
    handlers: Callable[[Core], Mapping[str, Handler]] = lambda core: {}
    controls: Callable[[Core], Mapping[str, ControlHandler]] = lambda core: {}
    tools: Callable[[Core], Iterable[Tool]] = lambda core: ()
    companions: Callable[[Core], Iterable[Companion]] = lambda core: ()
    tables: str = ""
