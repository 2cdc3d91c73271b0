"""`ModelPool`: the models of a process by their spelling (`provider:id`), each made once, one bucket per provider."""

from __future__ import annotations

from collections.abc import Callable

from council.errors import ConfigError
from council.llm.base import Model
from council.llm.limits import Bucket, LimitedModel

MAX_MODELS = 64  # in one process: a council has a handful


class ModelPool:
    """`make` builds a model from its spelling and raises ConfigError; `bucket` makes the bucket of one provider."""

    def __init__(self, make: Callable[[str], Model], bucket: Callable[[], Bucket]) -> None:
        self._make = make
        self._bucket = bucket
        self._models: dict[str, Model] = {}
        self._buckets: dict[str, Bucket] = {}

    def get(self, spelling: str) -> Model:
        """Raises ConfigError: no such provider, no key, or more than MAX_MODELS of them."""
        if spelling not in self._models:
            if len(self._models) >= MAX_MODELS:
                raise ConfigError(
                    f"{spelling} would be model {MAX_MODELS + 1} of this process.",
                    fix="restart the daemon, or name fewer",
                )
            provider = spelling.partition(":")[0]
            bucket = self._buckets.setdefault(provider, self._bucket())
            self._models[spelling] = LimitedModel(self._make(spelling), bucket)
        return self._models[spelling]

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()
