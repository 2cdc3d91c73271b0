"""The models of all runs, and what those may spend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from council.budgets.budget import Budget, BudgetLimits
from council.budgets.metering import BudgetedEmbedder, BudgetedModel, Calibration, TimedModel, timed
from council.budgets.prices import Price
from council.budgets.spend import Spend
from council.commands.models import BudgetConfig
from council.engine.runs import Run
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import Embedder, EmbedderAround
from council.llm.retry import Retries, with_fallbacks
from council.settings import Home, ProviderKeys, Settings
from council.storage.store import Store
from council.turns.model_building import ModelPool, embedding_name, model_price, provider_of

if TYPE_CHECKING:
    from council.telemetry.tracing import Tracing


@dataclass(frozen=True)
class RunModels:
    """The models of one run by their chain, and what its tools search with, if anything; its budget is asked by all."""

    of: Callable[[tuple[str, ...]], Model]
    embedder: Embedder | None = None


@dataclass(eq=False)
class Models:
    """The models of all runs, by chain: spellings of which each stands in for the one before it. One calibration and one day
    count for all of them. `only_model` answers whatever the chain is."""

    home: Home
    store: Store
    settings: Settings
    keys: ProviderKeys
    pool: ModelPool
    clock: Clock
    tracing: Tracing | None
    only_model: Model | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        self._calibration = Calibration(self.store)
        self._day = BudgetLimits(
            settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd, settings.day_max_seconds
        )
        self._price = cache(partial(model_price, settings))  # the bundled table is large

    def of_council(self, model: str) -> Models:
        """The same for a run whose council asks `model`, whatever the daemon runs with; empty: as the daemon."""
        if model in ("", self.settings.model) or self.only_model is not None:
            return self
        other = copy(self)
        other.settings = self.settings.model_copy(update={"model": model})
        return other

    def asking(self, model: Model) -> Models:
        """The same for runs that are told again: each asks `model`, whatever its chain."""
        other = copy(self)
        other.only_model = model
        return other

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """The chain that speaks for an agent, by what its manifest and the command say; role "": for the council."""
        return self.settings.chain(role, manifest, command)

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """The names on receipts and pages. Raises ConfigError for a model that cannot be had."""
        return tuple(self.pool.get(spelling).name for spelling in chain)

    def price(self, name: str) -> Price | None:
        """None when nobody knows it."""
        return self._price(name)

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        """The characters that the smallest context among them holds, as far as this run knows."""
        models = {spelling: self.pool.get(spelling) for chain in chains for spelling in chain}
        return min(self._calibration.chars(model.name, model.context_tokens) for model in models.values())

    def second_opinion(self, run_secret: str) -> str:
        """The spelling of the model that the guardrails of the run of this secret ask as well; empty for none."""
        return self.settings.guardrail_model or ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        """The name of that model on pages. Raises ConfigError for one that cannot be had."""
        return self.names((spelling,))[0]

    @property
    def embedding(self) -> str:
        """The name of what tools search with. Empty without an embedding model, and beside the offline engine. Raises
        ConfigError."""
        if self.settings.embedding_model is None or self.settings.model == "offline":
            return ""
        return self._embedder(lambda inner: inner).name

    @property
    def meanings(self) -> str:
        """The name under which the vectors lie that tools search by; empty without."""
        return embedding_name(self.settings)

    def run_secret(self, task: str) -> bytes | None:
        """The secret that a run of this task must have. None: the run draws its own."""
        return None

    def day(self, run_secret: str) -> str | None:
        """The day that the run of this secret must have. None: it has its own."""
        return None

    def _embedder(self, around: Callable[[Embedder], Embedder]) -> Embedder:
        return self.pool.embedder(self.settings.embedding_model or "", around)

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models, which ask its budget before each call. `chair`: the closing call's, empty for none. Using one raises
        ConfigError when a limit in dollars is set and its price is not known."""
        budget = Budget(
            command=BudgetLimits(config.max_calls, config.max_tokens, config.max_usd, config.max_seconds),
            day=self._day,
            spend=Spend(self.store, run.id, run.retries, self.clock),
            price_of=self._price,
            chair=chair,
            clock=self.clock,
        )
        retries = Retries(
            attempts=self.settings.model_attempts,
            max_wait_s=self.settings.max_inline_wait_s,
            on_retry=lambda error, attempt, wait_s: run.note_retry(error.kind, error.message, attempt, wait_s),
        )
        tracing = self.tracing

        @cache
        def one(spelling: str) -> Model:
            output_tokens = provider_of(self.home, self.settings, self.keys, spelling)[1].max_output_tokens

            def asking(model: Model) -> Model:
                budget.require_price(model.name)
                return BudgetedModel(model, budget, self._calibration, max_output_tokens=output_tokens)

            return self.pool.get(spelling, asking)

        @cache  # agents of one chain learn from one another which model cannot be reached
        def models(chain: tuple[str, ...]) -> Model:
            if self.only_model is not None:
                return self.only_model
            inner = with_fallbacks([one(spelling) for spelling in chain], self.clock.monotonic_s, retries)
            model = TimedModel(inner, budget)
            return model if tracing is None else tracing.model(run.id, model)

        if not self.embedding:
            return RunModels(models)
        budget.require_price(self.embedding)
        asking_first = self._embedder(lambda inner: BudgetedEmbedder(inner, budget, self._calibration))
        embedder: Embedder = EmbedderAround(EmbedderAround(asking_first, retries), partial(timed, budget))
        return RunModels(models, embedder if tracing is None else tracing.embedder(run.id, embedder))

    def close(self) -> None:
        """Closes at the end of the process."""
        self._calibration.save(self.store)
