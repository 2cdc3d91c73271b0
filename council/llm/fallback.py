"""`FallbackModel`: another model where the one that was asked cannot answer now, said so by name and reason. Only what
time or another provider can mend falls back: another model would only hide a refused key or a blocked text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import msgspec

from council.errors import ModelError, ModelErrorKind
from council.llm.base import AbsentModel, Message, Model, Reply, RequestOptions, restart

FALLS_BACK: frozenset[ModelErrorKind] = frozenset({"overload", "server", "rate", "network", "unreachable", "timeout"})


class FallbackModel:
    """Several models as one, asked in their order; it goes by the name of the first, and a reply names who gave it.
    `context_tokens` is that of the smallest, so that no request is too long for another."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)
        self.name = models[0].name
        self.context_tokens = min(model.context_tokens for model in models)

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """The first answer. Raises the first model's ModelError, with what the others said, when none gives one."""
        failures: list[tuple[Model, ModelError]] = []
        for model in self._models:
            if failures:
                restart(asked.get("on_text"))
            try:
                reply = await model.generate(messages, **asked)
            except ModelError as error:
                if not failures and error.kind not in FALLS_BACK:
                    raise
                failures.append((model, error))
                continue
            replaced = tuple(AbsentModel(failed.name, error.kind, error.message) for failed, error in failures)
            return msgspec.structs.replace(reply, replaced=replaced) if replaced else reply
        # The first one's error: what it says to do is what helps. A wait is as long as the shortest that anybody asks for.
        _, first = failures[0]
        if len(failures) == 1:
            raise first
        others = " ".join(f"Fallback {model.name}: {error.message}" for model, error in failures[1:])
        waits = [error.retry_after_s for _, error in failures if error.retry_after_s is not None]
        raise ModelError(
            first.kind,
            f"{first.message} {others}",
            fix=first.fix,
            retry_after_s=min(waits, default=None),
            model=first.model,
        )

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()
