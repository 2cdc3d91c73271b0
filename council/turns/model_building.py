"""Language and embedding models by their names in settings: providers, limits, retries.

A run asks its model through these, outermost first. `ModelPool` builds the inner five; `metered_models` adds the rest.

    Tracing.model     a span around the whole call, its retries and its stand-ins
    TimedModel        the run's seconds: a call ends when they are spent
    FallbackModel     the next model of a chain of several, where one cannot answer
    RetryingModel     another attempt after a wait; each is an event and a line in the journal
    LimitedModel      the provider's bucket: a call waits for its turn
    BudgetedModel     the worst case is asked for before the call, its use is charged after it
    `outermost`       what the caller of `build_app` puts around each provider's model
    JsonModeModel     the same request without a schema, where the server refuses one
    BoundedModel      whole characters, bounded replies, plausible counts
    the provider's model
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from council.budgets.prices import Price, price_of
from council.errors import ConfigError
from council.ids import Clock
from council.llm.base import Model
from council.llm.embeddings import REQUEST_TIMEOUT_S, Embedder, EmbedderAround
from council.llm.provider_limits import Bucket, KeptPauses, LimitedModel
from council.llm.providers import LIMITS, Provider, Setup, build, build_embedder, find_provider
from council.llm.reply_limits import BoundedModel
from council.llm.retry import JsonModeModel
from council.safety.untrusted import plain_line
from council.settings import Home, ProviderKeys, Settings
from council.storage.store import Store

MAX_MODELS = 64  # in one process: a council has a handful


class ModelPool:
    """The models of a process by their spelling (`provider:id`), each made once, and one bucket per provider. `own` is the
    model that settings name. `outermost` is put around each provider's model, inside everything that is the house's own."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        keys: ProviderKeys,
        store: Store,
        clock: Clock,
        outermost: Callable[[Model], Model],
        own: Model,
    ) -> None:
        self._home, self._settings, self._keys, self._clock = home, settings, keys, clock
        self._outermost = outermost
        self._pauses = KeptPauses(store, clock)
        self._models = {settings.model: self._whole(own)}
        self._embedders: dict[str, Embedder] = {}
        self._buckets: dict[str, Bucket] = {}

    def get(self, spelling: str, around: Callable[[Model], Model] = lambda model: model) -> Model:
        """The model, in its provider's bucket. `around` is put around it where its turn there has come: it sees the calls that
        are made. Raises ConfigError: no such provider, no key, or more than MAX_MODELS of them."""
        if spelling not in self._models:
            if len(self._models) >= MAX_MODELS:
                raise ConfigError(
                    f"{spelling} would be model {MAX_MODELS + 1} of this process.",
                    fix="restart the daemon, or name fewer",
                )
            self._models[spelling] = self._whole(build_model(self._home, self._settings, self._keys, spelling))
        return LimitedModel(around(self._models[spelling]), self._bucket_of(spelling))

    def embedder(self, spelling: str, around: Callable[[Embedder], Embedder]) -> Embedder:
        """An embedding model, made once, in the bucket of its provider; `around` as in `get`. Raises ConfigError."""
        if spelling not in self._embedders:
            self._embedders[spelling] = build_embedding_model(self._home, self._settings, self._keys, spelling)
        return EmbedderAround(around(self._embedders[spelling]), self._bucket_of(spelling))

    def _whole(self, model: Model) -> Model:
        return self._outermost(JsonModeModel(BoundedModel(model)))

    def _bucket_of(self, spelling: str) -> Bucket:
        provider, settings = spelling.partition(":")[0], self._settings
        if provider not in self._buckets:
            self._buckets[provider] = Bucket(
                self._clock,
                max_concurrent=settings.max_provider_calls,
                max_per_minute=settings.max_calls_per_minute,
                max_pause_s=settings.max_inline_wait_s,
                pause_s=self._pauses.left_s(provider),
                on_pause=partial(self._pauses.note, provider),
            )
        return self._buckets[provider]

    def lift_pauses(self) -> None:
        """The next call asks its provider, whatever that said before. Raises StorageFailed."""
        self._pauses.lift()
        for bucket in self._buckets.values():
            bucket.lift()

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()
        for embedder in self._embedders.values():
            await embedder.aclose()


def build_model(home: Home, settings: Settings, keys: ProviderKeys, name: str = "") -> Model:
    """Only its provider's module is imported, and only now. Raises ConfigError."""
    provider, setup = provider_of(home, settings, keys, name or settings.model)
    return build(provider, setup)


def build_embedding_model(home: Home, settings: Settings, keys: ProviderKeys, name: str) -> Embedder:
    provider, setup = provider_of(home, settings, keys, name)
    return build_embedder(provider, replace(setup, request_timeout_s=min(setup.request_timeout_s, REQUEST_TIMEOUT_S)))


def embedding_name(settings: Settings) -> str:
    """The name under which vectors are kept: those of another model, or of another size, mean nothing beside them."""
    if settings.embedding_model is None:
        return ""
    size = settings.embedding_dimensions
    return settings.embedding_model if size is None else f"{settings.embedding_model} ({size} dimensions)"


def provider_of(home: Home, settings: Settings, keys: ProviderKeys, name: str) -> tuple[Provider, Setup]:
    """The provider of a model `provider:id`, and what it gets to build it from. Raises ConfigError."""
    provider_name, _, model_id = name.partition(":")
    tables = {table: setting.options() for table, setting in settings.providers.items()}
    if provider_name == "gemini":  # whose settings are older than the tables
        own = {"base_url": settings.gemini_base_url, "api_version": settings.gemini_api_version}
        known = {key: value for key, value in own.items() if value is not None}
        tables[provider_name] = {**tables.get(provider_name, {}), **known}
    provider, options = find_provider(provider_name, tables), tables.get(provider_name, {})
    limits: dict[str, Any] = {}
    for key in LIMITS:  # the nearest word counts: the table, then what was set for all, then the provider's own default
        said = getattr(settings, key)
        limits[key] = options.get(key, said if key in settings.model_fields_set else provider.defaults.get(key, said))
    return provider, Setup(
        provider=provider_name,
        model_id=model_id,
        home=home.root,
        options=options,
        key=keys.get,
        variable=keys.variable,
        embedding_dimensions=settings.embedding_dimensions,
        **limits,
    )


def model_price(settings: Settings, model: str) -> Price | None:
    overrides = {}
    for name, set_ in settings.prices.items():
        cached = Decimal(str(set_.cached)) if set_.cached is not None else None
        overrides[name] = Price(Decimal(str(set_.input)), Decimal(str(set_.output)), cached)
    return price_of(model, overrides)


def overruled(asked: str | None, chain: Sequence[str]) -> str:
    """Says that others speak in the place of the model that a command asks for; empty where it speaks itself."""
    if asked is None or asked == chain[0]:
        return ""
    return f"The command asks for {plain_line(asked, 100)}, but {chain[0]} speaks for every agent in this home"
