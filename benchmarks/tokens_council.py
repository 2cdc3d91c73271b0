"""The subject of `tokens`: the real daemon over all commands of a home. Prints the characters sent to the model per task,
as one JSON list in the order of the tasks."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from council.app import build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.events import Event
from council.llm.base import Message, Reply
from council.llm.scripted import ScriptedModel
from council.settings import Home, load_provider_keys, load_settings


def main(folder: Path) -> None:
    home = Home(folder.resolve())
    app = build_app(
        home,
        load_settings(home, flags={}, environ={}).settings,
        load_provider_keys(home, {}),
        environ={},
        systems=house(),
    )
    tasks: list[int] = []
    answer = ScriptedModel.generate

    async def counting(model: ScriptedModel, messages: Sequence[Message], **asked: Any) -> Reply:
        tasks[-1] += len(asked["system"]) + sum(len(message.text) for message in messages)
        return await answer(model, messages, **asked)

    def begin(event: Event) -> None:
        if event.kind == "run_started":
            tasks.append(0)

    ScriptedModel.generate = counting  # type: ignore[method-assign, assignment]
    app.events.subscribe(begin)
    asyncio.run(Service(app, once=True).run())
    print(json.dumps(tasks))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
