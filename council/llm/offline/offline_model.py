"""`OfflineModel`: stands in for a language model by quoting. It never claims to have thought, weighed or decided."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from council.llm.base import Message, OnText, Reply, ToolSpec, TurnInfo
from council.llm.offline.case import build_case
from council.llm.offline.extract import extract_text
from council.llm.offline.turns import turn_text


class OfflineModel:
    """A `Model` without a model: the same request always gives the same reply, and every quote names its line.

    It goes by `info` and by the messages' `sources`; rendered text, system prompt, schema and tools are not read.
    `usage` is None: nothing was counted, and nothing cost anything. `generate` raises no ModelError.
    """

    name = "offline"
    context_tokens = 1_000_000  # no window; large enough that nothing folds a transcript on its account

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolSpec] = (),
        on_text: OnText | None = None,
        max_output_tokens: int | None = None,
        temperature: float | None = None,
        info: TurnInfo | None = None,
    ) -> Reply:
        # In a thread: a megabyte of documents takes seconds, and the event loop serves other runs meanwhile.
        text = await asyncio.to_thread(offline_reply, tuple(messages), info or TurnInfo())
        if on_text is not None:
            on_text(text)
        return Reply(text=text, finish="stop", model=self.name)

    async def aclose(self) -> None:
        """Nothing is held open."""


def offline_reply(messages: Sequence[Message], info: TurnInfo) -> str:
    """The Markdown of one reply; a pure function of its arguments."""
    case = build_case(messages, info)
    return extract_text(case) if info.purpose == "synthesis" else turn_text(case)
