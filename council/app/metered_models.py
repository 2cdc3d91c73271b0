"""The models of all runs, and what those may spend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from council.app.model_building import ModelPool, embedding_name, model_price, provider_of
from council.budgets.budget import Budget, BudgetLimits
from council.budgets.metering import BudgetedEmbedder, BudgetedModel, Calibration, TimedEmbedder, TimedModel
from council.budgets.prices import Price
from council.budgets.spend import Spend
from council.commands.models import BudgetConfig
from council.engine.runs import Run
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import Embedder, RetryingEmbedder
from council.llm.replay import ReplayModel
from council.llm.retry import RetryOptions, with_fallbacks
from council.settings import Home, ProviderKeys, Settings
from council.storage.store import Store
from council.turns.equipment import Models, RunModels

if TYPE_CHECKING:
    from council.telemetry.tracing import Tracing


class OneModel:
    def __init__(self, known: Models, model: Model) -> None:
        self._known = known
        self.embedding, self.meanings = known.embedding, known.meanings
        self.chain, self.names = known.chain, known.names
        self.price, self.window_chars = known.price, known.window_chars
        self.day = known.day
        self.second_opinion, self.opinion_name = known.second_opinion, known.opinion_name
        self.close = known.close
        self._model = model

    def of_council(self, model: str) -> Models:
        return self

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        return RunModels(lambda chain: self._model, self._known.models_for(run, config, chair).embedder)


@dataclass(eq=False)
class Spending:
    """The `Models` of a council, with one calibration and one day for all of them."""

    home: Home
    store: Store
    settings: Settings
    keys: ProviderKeys
    pool: ModelPool
    clock: Clock
    tracing: Tracing | None

    def __post_init__(self) -> None:
        settings = self.settings
        self._calibration = Calibration(self.store)
        self._day = BudgetLimits(
            settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd, settings.day_max_seconds
        )
        self._price = cache(partial(model_price, settings))  # the bundled table is large

    def of_council(self, model: str) -> Models:
        if model in ("", self.settings.model):
            return self
        other = copy(self)
        other.settings = self.settings.model_copy(update={"model": model})
        return other

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        return self.settings.chain(role, manifest, command)

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.pool.get(spelling).name for spelling in chain)

    def price(self, name: str) -> Price | None:
        return self._price(name)

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        models = {spelling: self.pool.get(spelling) for chain in chains for spelling in chain}
        return min(self._calibration.chars(model.name, model.context_tokens) for model in models.values())

    def second_opinion(self, run_secret: str) -> str:
        return self.settings.guardrail_model or ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        return self.names((spelling,))[0]

    @property
    def embedding(self) -> str:
        """Empty without an embedding model, and beside the offline engine. Raises ConfigError."""
        if self.settings.embedding_model is None or self.settings.model == "offline":
            return ""
        return self._embedder(lambda inner: inner).name

    @property
    def meanings(self) -> str:
        return embedding_name(self.settings)

    def run_secret(self, task: str) -> bytes | None:
        """The secret that a run of this task must have; None: it draws its own."""
        return None

    def day(self, run_secret: str) -> str | None:
        return None

    def _embedder(self, around: Callable[[Embedder], Embedder]) -> Embedder:
        return self.pool.embedder(self.settings.embedding_model or "", around)

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models by chain. Using one raises ConfigError when a limit in dollars is set and its price is not known."""
        budget = Budget(
            command=BudgetLimits(config.max_calls, config.max_tokens, config.max_usd, config.max_seconds),
            day=self._day,
            spend=Spend(self.store, run.id, run.journal.retries, self.clock),
            price_of=self._price,
            chair=chair,
            clock=self.clock,
        )
        retries = RetryOptions(
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
            inner = with_fallbacks([one(spelling) for spelling in chain], self.clock.monotonic_s, **retries)
            model = TimedModel(inner, budget)
            return model if tracing is None else tracing.model(run.id, model)

        if not self.embedding:
            return RunModels(models)
        budget.require_price(self.embedding)
        asking_first = self._embedder(lambda inner: BudgetedEmbedder(inner, budget, self._calibration))
        embedder: Embedder = TimedEmbedder(RetryingEmbedder(asking_first, **retries), budget)
        return RunModels(models, embedder if tracing is None else tracing.embedder(run.id, embedder))

    def close(self) -> None:
        self._calibration.save()


@dataclass(eq=False)
class CassetteSpending(Spending):
    """A cassette speaks for all: who starts a daemon with one wants no other model asked. Runs are told by their secrets.
    A call that failed after its retries fails at once."""

    cassette: ReplayModel

    def __post_init__(self) -> None:
        self.settings = self.settings.model_copy(update={"model_attempts": 1})
        super().__post_init__()

    def of_council(self, model: str) -> Models:
        return self

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        return self.cassette.run_of(run_secret).window_chars

    def second_opinion(self, run_secret: str) -> str:
        return self.settings.model if self.cassette.opinions_of(run_secret) else ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        return self.cassette.opinions_of(run_secret) or self.names((spelling,))[0]

    @property
    def embedding(self) -> str:
        return ""

    @property
    def meanings(self) -> str:
        return self.cassette.header.meanings

    def run_secret(self, task: str) -> bytes | None:
        """The calls of a cassette were asked in the words of the run that it was recorded from."""
        return self.cassette.run_secret_for(task) if task else None

    def day(self, run_secret: str) -> str | None:
        return self.cassette.run_of(run_secret).day
