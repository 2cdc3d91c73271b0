"""The reference of `turns`: three AutoGen assistant agents that speak in turn, their state saved after each turn.

Runs in AutoGen's own environment: `python turns_autogen.py turns FOLDER TURNS TEXT` or `… restore FOLDER MESSAGES`. Every
turn hands the agent what its colleagues said since it last spoke; `save_state` is written beside and renamed, unsynced, as
its documentation shows it. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    UserMessage,
)


class AtOnce(ChatCompletionClient):  # type: ignore[misc, unused-ignore]
    """Says one text, without delay."""

    component_type = "model"

    def __init__(self, text: str) -> None:
        self._text = text

    async def create(self, messages: Sequence[LLMMessage], **_: Any) -> CreateResult:
        return CreateResult(
            finish_reason="stop",
            content=self._text,
            usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
            cached=False,
        )

    async def create_stream(self, messages: Sequence[LLMMessage], **_: Any) -> AsyncGenerator[str | CreateResult, None]:
        yield await self.create(messages)

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, messages: Sequence[LLMMessage], **_: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Sequence[LLMMessage], **_: Any) -> int:
        return 1_000_000

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=False, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
        )


def save(state: Mapping[str, Any], path: Path) -> None:
    path.with_suffix(".tmp").write_text(json.dumps(state))
    os.replace(path.with_suffix(".tmp"), path)


async def turns(folder: Path, count: int, text: str) -> dict[str, Any]:
    agents = [AssistantAgent(name, AtOnce(text), system_message="Be concise.") for name in ("one", "two", "three")]
    inbox: list[list[TextMessage]] = [[TextMessage(content="Which engine?", source="user")] for _ in agents]
    noted = []
    for number in range(count):
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        at = number % len(agents)
        response = await agents[at].on_messages(inbox[at], CancellationToken())
        inbox[at] = []
        for other in range(len(agents)):
            if other != at:
                inbox[other].append(TextMessage(content=response.chat_message.content, source=agents[at].name))
        save(await agents[at].save_state(), folder / f"{agents[at].name}.json")
        noted.append({"cpu_s": time.process_time() - started_cpu_s, "wall_s": time.perf_counter() - started_s})
    return {"turns": noted}


async def restore(folder: Path, count: int, text: str) -> dict[str, Any]:
    agent = AssistantAgent("one", AtOnce(text), system_message="Be concise.")
    for number in range(count):
        message = (
            UserMessage(content=text, source="user") if number % 2 else AssistantMessage(content=text, source="one")
        )
        await agent._model_context.add_message(message)
    save(await agent.save_state(), folder / "one.json")
    noted = []
    for _ in range(25):
        fresh = AssistantAgent("one", AtOnce(text), system_message="Be concise.")
        started_s = time.process_time()
        await fresh.load_state(json.loads((folder / "one.json").read_text()))
        noted.append(time.process_time() - started_s)
    return {"restore_s": noted}


if __name__ == "__main__":
    what, where, number, said = sys.argv[1:5]
    work = {"turns": turns, "restore": restore}[what]
    print(json.dumps(asyncio.run(work(Path(where), int(number), said))))
