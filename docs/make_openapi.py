"""Writes docs/openapi.json from the routes themselves: `python docs/make_openapi.py`. A test fails when it is stale."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from council.desk.desk import Desk
from council.events import Events
from council.ids import SystemClock
from council.settings import Home
from council.web.asgi import build_application
from council.web.live_updates import Broadcast, Floor
from council.world.world_store import Book

TARGET = Path(__file__).parent / "openapi.json"


def document() -> str:
    """The whole file. The program's version is left out: a release changes no route."""
    with tempfile.TemporaryDirectory() as empty:
        desk, events = Desk(Home(Path(empty)), {}), Events()
        floor = Floor(events)
        app = build_application(desk, desk.settings, Book(desk.store, SystemClock()), Broadcast(events, "none"), floor)
        told = app.openapi()
    told["info"]["version"] = ""
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
