"""`JsonModeModel`: asks for JSON by schema where a model takes that, and without it where its server refuses to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, restart

WITHOUT_SCHEMA = "without_schema"  # in the data of an error: the provider itself has asked without one already


class JsonModeModel(ModelAround):
    """A Model whose requests with a `schema` are repeated once without it when they are refused (kind `request`). A server
    that then takes one is not asked by schema again in this process; the prompt says what shape is wanted in any
    case."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._refuses = False

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        if asked.get("schema") is None or self._refuses:
            asked["schema"] = None
            return await self._inner.generate(messages, **asked)
        try:
            return await self._inner.generate(messages, **asked)
        except ModelError as error:
            if error.kind != "request" or error.data.get(WITHOUT_SCHEMA):
                raise
        restart(asked.get("on_text"))
        asked["schema"] = None
        reply = await self._inner.generate(messages, **asked)
        self._refuses = True
        return reply
