"""`OfflineModel`: stands in for a language model by quoting. It never claims to have thought, weighed or decided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Unpack

from council.llm.base import Message, Reply, RequestOptions, TurnInfo, tell
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

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        # In a thread: a megabyte of documents takes seconds, and the event loop serves other runs meanwhile.
        text = await asyncio.to_thread(offline_reply, tuple(messages), asked.get("info") or TurnInfo())
        tell(asked, text)
        return Reply(text=text, finish="stop", model=self.name)

    async def aclose(self) -> None:
        """Nothing is held open."""


def offline_reply(messages: Sequence[Message], info: TurnInfo) -> str:
    """The Markdown of one reply; a pure function of its arguments."""
    case = build_case(messages, info)
    return extract_text(case) if info.purpose == "synthesis" else turn_text(case)
