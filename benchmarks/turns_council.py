"""The subject of `turns`: the real daemon over one command of `max_rounds` rounds, with a model that answers at once.

Prints one JSON object: for each turn of the run the wall and CPU time since the one before it, the synced transactions made
in it; beside them what is no part of a turn's price: the prompt's body, rendering the growing artifact,
start.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import council.deliberation.task  # noqa: F401  a daemon loads it with its first run, and turns are measured here
from council.app import build_app
from council.daemon.service import Service
from council.deliberation.prompts import Discussion
from council.desk.all_systems import house
from council.events import Event
from council.settings import Home, load_provider_keys, load_settings
from council.storage.store import Store
from council.turns.growing_page import GrowingPage


class Clocks:
    """What the process spent and synced, noted whenever a turn is durable."""

    def __init__(self) -> None:
        self.turns: list[dict[str, float]] = []
        self.syncs = 0
        self.beside_s = 0.0
        self.rendered_s: list[float] = []
        self.body_s: list[float] = []
        self._wall_ns, self._cpu_ns, self._syncs = 0, 0, 0

    def count_syncs(self) -> None:
        begin = Store._begin

        def counted(store: Store, *, durable: bool) -> None:
            self.syncs += durable
            begin(store, durable=durable)

        Store._begin = counted  # type: ignore[method-assign, assignment]

    def aside(self, work: Callable[..., Any], spent_s: list[float]) -> Callable[..., Any]:
        """`work`, its CPU time on another account than the turn's in which it happens."""

        def timed(*arguments: Any) -> Any:
            started = time.thread_time()
            try:
                return work(*arguments)
            finally:
                spent_s.append(time.thread_time() - started)
                self.beside_s += spent_s[-1]

        return timed

    def note(self, event: Event) -> None:
        if event.kind not in ("turn_ended", "round"):
            return
        wall_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        if event.kind == "turn_ended" and self._wall_ns:
            self.turns.append({
                "wall_s": (wall_ns - self._wall_ns) / 1e9 - self.beside_s,
                "cpu_s": (cpu_ns - self._cpu_ns) / 1e9 - self.beside_s,
                "syncs": self.syncs - self._syncs,
            })  # fmt: skip
        self.beside_s = 0.0
        self._syncs = self.syncs
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.process_time_ns()


def main(folder: Path) -> None:
    home = Home(folder.resolve())
    app = build_app(
        home,
        load_settings(home, flags={}, environ={}).settings,
        load_provider_keys(home, {}),
        environ={},
        systems=house(),
    )
    clocks = Clocks()
    clocks.count_syncs()
    GrowingPage.show = clocks.aside(GrowingPage.show, clocks.rendered_s)  # type: ignore[method-assign]
    Discussion.message = clocks.aside(Discussion.message, clocks.body_s)  # type: ignore[method-assign]
    app.events.subscribe(clocks.note)
    started_s = time.process_time()
    asyncio.run(Service(app, once=True).run())
    whole_s = time.process_time() - started_s
    beside = {"rendered_s": clocks.rendered_s, "body_s": clocks.body_s}
    print(json.dumps({"turns": clocks.turns, **beside, "whole_cpu_s": whole_s}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
