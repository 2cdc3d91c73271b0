"""`Failures`: how a model behind a network says that a call to it failed. What a failed exchange means is not decided
here: that is `http_failures`, and each provider's own errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from council.errors import ModelError, ModelErrorKind
from council.llm.http_failures import brief
from council.redaction import Redactor, Secret


class Failures:
    """Makes the errors of one model, by its name. Its key stands in none of them."""

    def __init__(self, model: str, key: Secret | None, fix_of: Callable[[ModelErrorKind], str]) -> None:
        """`fix_of` says what to do about a kind of failure, where the error itself does not suggest anything."""
        self.model = model
        self._redactor = Redactor([key] if key is not None else [])
        self._fix_of = fix_of

    def error(
        self, kind: ModelErrorKind, message: str, *, fix: str = "", retry_after_s: float | None = None, **data: object
    ) -> ModelError:
        return ModelError(
            kind,
            self._redactor.redact(message),
            fix=fix or self._fix_of(kind),
            retry_after_s=retry_after_s,
            model=self.model,
            **data,
        )

    def quote(self, words: str) -> str:
        """A server's words, safe to show. The key goes first: cut through its middle, it would not be found."""
        return brief(self._redactor.redact(words))

    def require_sendable(self, key: str) -> None:
        """Raises ModelError for a key that does not fit into a header."""
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise self.error("auth", f"{self.model} was not called: the API key holds characters no key can hold.")

    @asynccontextmanager
    async def whole_call(self, timeout_s: float, lacking: str = "gave no whole answer") -> AsyncIterator[None]:
        """A call, from its first byte to its last. Raises ModelError when it takes longer than `timeout_s`; `lacking`
        says what the model did not do by then."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise  # a listener's own
            raise self.error("timeout", f"{self.model} {lacking} within {timeout_s:g} s.") from None
