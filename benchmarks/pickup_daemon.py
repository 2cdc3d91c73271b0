"""The subject of `pickup`: the real daemon, `Service` over `build_app`, with two clocks in it and runs that end at once.

Prints one JSON line per command: when its bytes were read (before they are parsed), and when its run had been created,
which is after record 0 was synced.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from council.app import App, build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.engine.engine import Engine
from council.engine.records import RunHeader, RunStatus
from council.engine.runs import ActiveRun, Finish, Outcome, Premises
from council.events import Event
from council.settings import Home, load_provider_keys, load_settings
from council.storage.paths import ConfinedRoot, FileBytes


class TimedRoot(ConfinedRoot):
    """Notes when each command's bytes had been read for the first time."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read_ns: dict[str, int] = {}

    def read(self, relative: str, *, max_bytes: int = 1 << 20) -> FileBytes:
        found = super().read(relative, max_bytes=max_bytes)
        self.read_ns.setdefault(relative.removeprefix("commands/"), time.monotonic_ns())
        return found


class TimedEngine(Engine):
    """Tells when record 0 was on the disk."""

    async def _create(self, header: RunHeader, id_: str | None, drop: str) -> ActiveRun:
        run = await super()._create(header, id_, drop)
        synced_ns = time.monotonic_ns()
        name, root = header.file.name, self._premises.root
        assert isinstance(root, TimedRoot)
        print(json.dumps({"name": name, "read_ns": root.read_ns[name], "synced_ns": synced_ns}), flush=True)
        return run


class EndsAtOnce:
    """Its runs have nothing to do, so that the next drop meets an idle daemon."""

    async def work(self) -> None:
        pass

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("succeeded", b"# Nothing was done\n")


@dataclass(frozen=True)
class TimedApp(App):
    """With the clocks put in."""

    def engine(self, on_ended: Callable[[ActiveRun, RunStatus], None]) -> Engine:
        premises = Premises(self.home, self.settings, self.store, self.root)
        handlers = {"deliberate": lambda run: EndsAtOnce()}
        events, clock = self.events, self.clock
        return TimedEngine(
            self.store, premises, self.commands, handlers, events, clock, audit=self.audit, redactor=self.redactor,
            on_ended=on_ended, controls={},
        )  # fmt: skip


def timed_app(home: Home) -> App:
    """The app as `council run --model offline` builds it, with the clocks put in."""
    settings = load_settings(home, flags={"model": "offline"}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house())
    return TimedApp(**{**vars(app), "root": TimedRoot(home.root)})


def main(folder: Path) -> None:
    app = timed_app(Home(folder.resolve()))

    def tell_ready(event: Event) -> None:
        if event.kind == "idle":
            print("{}", flush=True)
            unsubscribe()

    unsubscribe = app.events.subscribe(tell_ready)
    asyncio.run(Service(app, once=False).run())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
