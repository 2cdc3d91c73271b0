"""The subject of `client`: the real daemon over all commands of a home. Prints the CPU time of each model call, with the
number of its task, as one JSON list."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from council.app import build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.events import Event
from council.llm.base import Message, Reply
from council.llm.gemini import GeminiModel
from council.settings import Home, load_provider_keys, load_settings


def main(folder: Path, url: str) -> None:
    home = Home(folder.resolve())
    environ = {"GEMINI_API_KEY": "test-key-0123456789", "GOOGLE_GEMINI_BASE_URL": url}
    settings = load_settings(home, flags={}, environ=environ).settings
    app = build_app(home, settings, load_provider_keys(home, environ), environ=environ, systems=house())
    calls: list[dict[str, float]] = []
    task = 0
    generate = GeminiModel.generate

    async def timed(model: GeminiModel, messages: Sequence[Message], **asked: Any) -> Reply:
        started_s = time.process_time()
        try:
            return await generate(model, messages, **asked)
        finally:
            calls.append({"task": task, "cpu_s": time.process_time() - started_s})

    def count(event: Event) -> None:
        nonlocal task
        task += event.kind == "run_started"

    GeminiModel.generate = timed  # type: ignore[method-assign, assignment]
    app.events.subscribe(count)
    asyncio.run(Service(app, once=True).run())
    print(json.dumps(calls))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
