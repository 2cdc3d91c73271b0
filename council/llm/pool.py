"""`ModelPool`: the models of a process by their spelling (`provider:id`), each made once, one bucket per provider."""

from __future__ import annotations

from collections.abc import Callable

from council.errors import ConfigError
from council.llm.base import Model
from council.llm.embeddings import Embedder, LimitedEmbedder
from council.llm.provider_limits import Bucket, KeptPauses, LimitedModel

MAX_MODELS = 64  # in one process: a council has a handful


class ModelPool:
    """`make` builds a model from its spelling and raises ConfigError; `bucket` makes that of a provider."""

    def __init__(self, make: Callable[[str], Model], bucket: Callable[[str], Bucket], pauses: KeptPauses) -> None:
        self._make = make
        self._bucket = bucket
        self._pauses = pauses
        self._models: dict[str, Model] = {}
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
            self._models[spelling] = self._make(spelling)
        return LimitedModel(around(self._models[spelling]), self._bucket_of(spelling))

    def embedder(
        self, spelling: str, make: Callable[[str], Embedder], around: Callable[[Embedder], Embedder]
    ) -> Embedder:
        """An embedding model, made once, in the bucket of its provider; `around` as in `get`. Raises ConfigError."""
        if spelling not in self._embedders:
            self._embedders[spelling] = make(spelling)
        return LimitedEmbedder(around(self._embedders[spelling]), self._bucket_of(spelling))

    def _bucket_of(self, spelling: str) -> Bucket:
        provider = spelling.partition(":")[0]
        if provider not in self._buckets:
            self._buckets[provider] = self._bucket(provider)
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
