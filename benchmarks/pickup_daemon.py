"""The subject of `pickup`: the real daemon, `Service` over `build_app`, with two clocks in it and runs that end at once.

Prints one JSON line per command: when its bytes were read (before they are parsed), and when its run had been created,
which is after record 0 was synced.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from council.app import App, build_app
from council.commands.models import DeliberateCommand
from council.daemon.service import Service
from council.engine.engine import Engine
from council.engine.records import RunHeader
from council.engine.runs import Admission, Finish, Handler, Outcome, Run
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

    async def _create(self, header: RunHeader, id_: str | None) -> Run:
        run = await super()._create(header, id_)
        synced_ns = time.monotonic_ns()
        name, root = header.file.name, self._root
        assert isinstance(root, TimedRoot)
        print(json.dumps({"name": name, "read_ns": root.read_ns[name], "synced_ns": synced_ns}), flush=True)
        return run


@dataclass(frozen=True)
class EndsAtOnce:
    """Admits as the real handler does; the run then has nothing to do, so that the next drop meets an idle daemon."""

    real: Handler

    def admit(self, command: DeliberateCommand) -> Admission:
        return self.real.admit(command)

    def begin(self, run: Run) -> EndsAtOnce:
        return self

    async def work(self) -> None:
        pass

    def conclude(self, finish: Finish) -> Outcome:
        return Outcome("succeeded", b"# Nothing was done\n")


def timed_app(home: Home) -> App:
    """The app as `council run --model offline` builds it, with the clocks put in."""
    settings = load_settings(home, flags={"model": "offline"}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={})
    app.root = TimedRoot(home.root)
    app.engine = TimedEngine(
        app.store,
        app.root,
        {"deliberate": EndsAtOnce(app.engine._handlers["deliberate"])},
        app.events,
        app.clock,
        max_parallel_runs=settings.max_parallel_runs,
        max_wait_s=settings.max_wait_s,
        max_attempts=settings.max_attempts,
        storage_retry_s=settings.storage_retry_s,
    )
    return app


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
