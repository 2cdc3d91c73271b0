"""The offline engine: quotes lines and matches patterns, without a language model and without a judgement. Here is the
`Model`; `replies` says what each reply holds, and the others read, rank and check."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Unpack

from council.llm.base import Message, Reply, RequestOptions, TurnInfo, tell
from council.llm.offline.case import build_case
from council.llm.offline.replies import extract_text, turn_text
from council.llm.providers import Provider

provider = Provider(lambda setup: OfflineModel(), local=True, summary="no language model: extracts and says so")


class OfflineModel:
    """The same request always gives the same reply, and every quote names its line. It goes by `info` and by the
    messages' `sources`; rendered text, system prompt, schema and tools are not read. Nothing is counted."""

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
    case = build_case(messages, info)
    return extract_text(case) if info.closes else turn_text(case)
