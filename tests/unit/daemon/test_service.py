"""The daemon's loop, in this process."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from council.app import build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.engine.records import Record
from council.settings import Home, load_provider_keys, load_settings
from tests.harness import command, make_home
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
    settings = load_settings(home, flags={}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house())
    witness = Witness()
    witness.service = Service(app, once=False, companions=[witness])
    await asyncio.wait_for(witness.service.run(), 60)
    assert witness.seen == [[RUN_ID]]
