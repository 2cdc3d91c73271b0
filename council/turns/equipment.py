"""The means of the turns of one run: its models, its tools, and what bounds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from council.budgets.prices import Price
from council.commands.models import BudgetConfig
from council.engine.runs import Run
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


@dataclass(frozen=True)
class RunModels:
    """The models of one run by their chain, and what its tools search with, if anything; its budget is asked by all."""

    of: Callable[[tuple[str, ...]], Model]
    embedder: Embedder | None = None


class Models(Protocol):
    """The models of all runs, by chain: spellings of which each stands in for the one before it."""

    def of_council(self, model: str) -> Models:
        """The same for a run whose council asks `model`, whatever the daemon runs with; empty: as the daemon."""

    def asking(self, model: Model) -> Models:
        """The same for runs that are told again: each asks `model`, whatever its chain."""

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """The chain that speaks for an agent, by what its manifest and the command say; role "": for the council."""

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """The names on receipts and pages. Raises ConfigError for a model that cannot be had."""

    def price(self, name: str) -> Price | None:
        """None when nobody knows it."""

    def day(self, run_secret: str) -> str | None:
        """The day that the run of this secret must have, where it is one that was recorded."""

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
        """The characters that the smallest context among them holds, as far as this run knows."""

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models, which ask its budget before each call. `chair`: the closing call's, empty for none."""

    def close(self) -> None:
        """Closes at the end of the process."""
