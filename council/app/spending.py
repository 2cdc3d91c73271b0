"""The models of all runs, and what those may spend."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

from council.app.models import (
    build_embedding_model,
    embedder_with_retry,
    embedding_name,
    model_price,
    output_limit,
    with_retry,
)
from council.budgets.budget import Budget, BudgetLimits
from council.budgets.calibration import Calibration
from council.budgets.metering import BudgetedEmbedder, BudgetedModel, TimedEmbedder, TimedModel
from council.budgets.prices import Price
from council.budgets.spend import Spend
from council.commands.models import BudgetConfig
from council.engine.runs import Run
from council.events import Events
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import Embedder, RecordedSearch
from council.llm.fallback import FallbackModel
from council.llm.pool import ModelPool
from council.llm.replay import ReplayModel
from council.settings import Home, ProviderKeys, Settings
from council.storage.store import Store
from council.turns.equipment import Models, RunModels

if TYPE_CHECKING:
    from council.telemetry.tracing import Tracing


log = logging.getLogger(__name__)


class OneModel:
    """The known models, except that all calls go to one."""

    def __init__(self, known: Models, model: Model) -> None:
        self._known = known
        self.embedding, self.meanings = known.embedding, known.meanings
        self.chain, self.names = known.chain, known.names
        self.price, self.window_chars = known.price, known.window_chars
        self.second_opinion, self.opinion_name = known.second_opinion, known.opinion_name
        self.close = known.close
        self._model = model

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        return RunModels(lambda chain: self._model, self._known.models_for(run, config, chair).embedder)


class Spending:
    """The models of all runs, and what those may spend: one calibration and one day for all of them."""

    def __init__(
        self,
        home: Home,
        store: Store,
        settings: Settings,
        keys: ProviderKeys,
        pool: ModelPool,
        events: Events,
        clock: Clock,
        cassette: ReplayModel | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """`cassette`: the model of the council, where it is one."""
        self._cassette = cassette
        self._tracing = tracing
        self._home = home
        self._store = store
        self._settings = settings
        self._keys = keys
        self._pool = pool
        self._events = events
        self._clock = clock
        self._calibration = Calibration(store)
        self._day = BudgetLimits(
            settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd, settings.day_max_seconds
        )
        self._prices: dict[str, Price | None] = {}

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """Which models speak for an agent: the command's, else what settings say for its role, else its manifest's, else
        the council's; behind a single one those that settings let stand in for any. A cassette and the offline engine
        speak for all: who starts a daemon with one wants no other model asked."""
        settings = self._settings
        if self._cassette is not None or settings.model == "offline":
            return (settings.model,)
        wanted = (command,) if command else settings.agent_models.get(role) or manifest or (settings.model,)
        if len(wanted) > 1 or wanted == ("offline",):
            return tuple(wanted)
        return tuple(dict.fromkeys((*wanted, *settings.fallback_models)))

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """The names of these models on receipts and pages. Raises ConfigError for one that cannot be had."""
        return tuple(self._pool.get(spelling).name for spelling in chain)

    def price(self, name: str) -> Price | None:
        """None when nobody knows it. Looked up when first asked for: the bundled table is large."""
        if name not in self._prices:
            self._prices[name] = model_price(self._settings, name)
        return self._prices[name]

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        """The characters that the smallest context among these models holds, as far as is known now."""
        if self._cassette is not None:
            return self._cassette.window_chars_of(run_secret)
        models = {spelling: self._pool.get(spelling) for chain in chains for spelling in chain}
        return min(self._calibration.chars(model.name, model.context_tokens) for model in models.values())

    def second_opinion(self, run_secret: str) -> str:
        """The spelling of the model that a run's guardrails ask as well, empty for none: a cassette repeats what was said in
        the recorded run with this secret."""
        if self._cassette is not None:
            return self._settings.model if self._cassette.opinions_of(run_secret) else ""
        return self._settings.guardrail_model or ""

    def opinion_name(self, spelling: str, run_secret: str) -> str:
        """Its name on pages. Raises ConfigError for one that cannot be had."""
        recorded = self._cassette.opinions_of(run_secret) if self._cassette is not None else ""
        return recorded or self.names((spelling,))[0]

    @property
    def embedding(self) -> str:
        """The name of the model that embeds; empty without one, and for a cassette and the offline engine: who starts a
        daemon with one wants no other model asked."""
        return self._embedder(lambda inner: inner).name if self._embeds else ""

    @property
    def meanings(self) -> str:
        """Under which name the vectors lie that questions are answered by; of a cassette, those of its recorded run."""
        recorded = self._cassette.meanings if self._cassette is not None else None
        return embedding_name(self._settings) if recorded is None else recorded

    def require_embedder(self) -> None:
        """Raises ConfigError where it cannot be had: better now than at the first question."""
        log.debug("questions are embedded by %s", self.embedding or "nobody")

    @property
    def _embeds(self) -> bool:
        quiet = self._cassette is not None or self._settings.model == "offline"
        return self._settings.embedding_model is not None and not quiet

    def _embedder(self, around: Callable[[Embedder], Embedder]) -> Embedder:
        make = partial(build_embedding_model, self._home, self._settings, self._keys)
        return self._pool.embedder(self._settings.embedding_model or "", make, around)

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models by chain: retried, and asked for their worst case before each call. Using one raises ConfigError
        when a limit in dollars is set and its price is not known; that of the embedding model is asked for at once."""
        budget = Budget(
            command=BudgetLimits(config.max_calls, config.max_tokens, config.max_usd, config.max_seconds),
            day=self._day,
            spend=Spend(self._store, run.id, run.journal.retries, self._clock),
            price_of=self.price,
            chair=chair,
            clock=self._clock,
        )

        @cache
        def one(spelling: str) -> Model:
            output_tokens = output_limit(self._settings, spelling)

            def asking(model: Model) -> Model:
                budget.require_price(model.name)
                return BudgetedModel(model, budget, self._calibration, max_output_tokens=output_tokens)

            return with_retry(self._pool.get(spelling, asking), self._settings, self._events, run)

        def models(chain: tuple[str, ...]) -> Model:
            model = TimedModel(FallbackModel([one(spelling) for spelling in chain]), budget)
            return model if self._tracing is None else self._tracing.model(run.id, model)

        recall = None if self._cassette is None else partial(_recall, self._cassette, budget)
        return RunModels(models, self._embedder_for(run, budget) if self._embeds else None, recall)

    def _embedder_for(self, run: Run, budget: Budget) -> Embedder:
        budget.require_price(self.embedding)
        asking = self._embedder(lambda inner: BudgetedEmbedder(inner, budget, self._calibration))
        embedder = TimedEmbedder(embedder_with_retry(asking, self._settings, self._events, run), budget)
        return embedder if self._tracing is None else self._tracing.embedder(run.id, embedder)

    def close(self) -> None:
        self._calibration.save()


async def _recall(
    cassette: ReplayModel, budget: Budget, role: str, round_no: int, scope: str, question: str
) -> RecordedSearch | None:
    """As `ReplayModel.recall`; what the search took counts as it did."""
    found = cassette.recall(role, round_no, scope, question)
    for call in found.calls if found is not None else ():
        await budget.charge(call.model, call.usage)
    return found
