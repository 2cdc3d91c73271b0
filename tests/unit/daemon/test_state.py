"""What the daemon tells of its work, also where the disk takes no new file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from council.daemon import state
from council.daemon.state import StateFile
from council.errors import StorageFailed
from council.events import Events
from council.ids import SystemClock
from council.settings import Home
from council.storage.store import Store
from tests.contract.test_admission_contract import engine_over


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[StateFile, dict[str, str], Path]]:
    home = Home(tmp_path)
    home.ensure_runtime()
    unadmitted: dict[str, str] = {}
    with closing(Store.open(home.runtime)) as store:
        engine = engine_over(store, tmp_path)
        file = StateFile(
            home,
            engine,
            Events(),
            SystemClock(),
            model="m",
            unadmitted=unadmitted,
            companions=["clock"],
            degraded={"clock": "it is late"},
        )
        file.write()
        yield file, unadmitted, home.state_file


def full(*_: object, **__: object) -> None:
    raise StorageFailed("no room.", fix="make some")


def test_on_a_full_disk_it_is_told_in_the_room_that_there_is(
    told: tuple[StateFile, dict[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, unadmitted, path = told
    inode = path.stat().st_ino
    monkeypatch.setattr(state, "write_atomic", full)
    unadmitted["a.json"] = "the disk is full"
    file.write()
    view: dict[str, Any] = json.loads(path.read_bytes())
    assert view["unadmitted"] == [{"file": "a.json", "error": "the disk is full"}]
    assert (view["degraded"], path.stat().st_ino) == ({"clock": "it is late"}, inode)
    unadmitted.clear()
    file.write()
    assert json.loads(path.read_bytes())["unadmitted"] == []


def test_what_does_not_fit_there_is_left_out_and_that_is_said(
    told: tuple[StateFile, dict[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, unadmitted, path = told
    monkeypatch.setattr(state, "write_atomic", full)
    unadmitted |= {f"{number}.json": "x" * 1_000 for number in range(os.stat(path).st_blocks)}
    file.write()
    view = json.loads(path.read_bytes())
    assert view["unadmitted"] == []
    assert "the list of runs is left out" in view["degraded"]["state.json"]
