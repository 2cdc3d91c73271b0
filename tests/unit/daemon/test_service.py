"""The daemon's loop, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.app import App, build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.engine.records import Record
from council.errors import DaemonRunning
from council.llm.base import Message, Model, ModelAround, Reply
from council.settings import Home, load_provider_keys, load_settings
from council.storage.files import FileLock
from tests.harness import command, drop_command, make_home
from tests.rows import header

RUN_ID = "20261120-000001-aaaaaaaa"


@dataclass
class Witness:
    """A companion that notes which runs the engine has when it begins, and ends the daemon."""

    service: Service | None = None
    name: str = "witness"
    seen: list[list[str]] = field(default_factory=list)

    async def run(self) -> None:
        assert self.service is not None
        self.seen.append(list(self.service.engine.active))
        self.service.stop()
        await asyncio.Event().wait()


def app_of(home: Home, around: Callable[[Model], Model] = lambda model: model) -> App:
    settings = load_settings(home, flags={}, environ={}).settings
    return build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house(), around=around)


async def test_a_companion_begins_once_and_after_the_unfinished_runs_of_an_older_version_were_taken_up(
    tmp_path: Path,
) -> None:
    home = Home(make_home(tmp_path / "home", settings='model = "offline"\n'))
    home.ensure_runtime()
    for folder in (f"runs/{RUN_ID}", "active"):
        (home.runtime / folder).mkdir(parents=True)
    record: Record = header(RUN_ID, command=command(), output_path="artifacts/out.md")
    line = msgspec.json.encode(record)
    (home.runtime / "runs" / RUN_ID / "journal.jsonl").write_bytes(b'{"c":"%08x","r":%b}\n' % (zlib.crc32(line), line))
    (home.runtime / "active" / RUN_ID).touch()
    witness = Witness()
    witness.service = Service(app_of(home), once=False, companions=[witness])
    await asyncio.wait_for(witness.service.run(), 60)
    assert witness.seen == [[RUN_ID]]


async def test_companions_are_told_to_stop_first_while_calls_of_runs_still_end(tmp_path: Path) -> None:
    asked, told, running = asyncio.Event(), asyncio.Event(), list[int]()

    class Slow(ModelAround):
        async def generate(self, messages: Sequence[Message], **options: Any) -> Reply:
            asked.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), 5)
            return await self._inner.generate(messages, **options)

    class Leaving(Witness):
        async def run(self) -> None:
            assert self.service is not None
            await asked.wait()
            self.service.stop()
            try:
                await asyncio.Event().wait()
            finally:
                running.append(self.service.engine.running)
                told.set()

    home = Home(make_home(tmp_path / "home", settings='model = "offline"\n'))
    drop_command(home.root, command())
    leaving = Leaving()
    leaving.service = Service(app_of(home, around=Slow), once=False, companions=[leaving])
    await asyncio.wait_for(leaving.service.run(), 60)
    assert running == [1]


async def test_a_daemon_waits_for_a_process_that_leaves_says_so_once_and_what_drains_is_refused(
    tmp_path: Path,
) -> None:
    home = Home(make_home(tmp_path / "home", settings='model = "offline"\n'))
    home.ensure_runtime()
    drainer = FileLock(home.lock_file)
    drainer.acquire({"leaves": True})
    drains = app_of(home)
    with pytest.raises(DaemonRunning, match="until one piece of work is done") as refused:
        await Service(drains, once=True).run()
    assert refused.value.fix == "try again when that process has ended"
    await drains.aclose()

    class LeavesOnceTold(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())
            assert not witness.seen
            asyncio.get_running_loop().call_later(0.3, drainer.release)  # after several tries more

    witness, told = Witness(), list[str]()
    witness.service = Service(app_of(home), once=False, companions=[witness])
    heard = LeavesOnceTold(logging.WARNING)
    logging.getLogger("council.daemon.service").addHandler(heard)
    try:
        await asyncio.wait_for(witness.service.run(), 60)
    finally:
        logging.getLogger("council.daemon.service").removeHandler(heard)
    assert witness.seen == [[]]
    [line] = told
    assert line.endswith("until one piece of work is done. The daemon starts when that process has ended.")


async def test_a_daemon_beside_another_one_is_refused_at_once(tmp_path: Path) -> None:
    home = Home(make_home(tmp_path / "home", settings='model = "offline"\n'))
    home.ensure_runtime()
    other = FileLock(home.lock_file)
    other.acquire()
    app = app_of(home)
    with pytest.raises(DaemonRunning) as refused:
        await Service(app, once=False).run()
    assert "use the one that runs" in refused.value.fix
    await app.aclose()
    other.release()
