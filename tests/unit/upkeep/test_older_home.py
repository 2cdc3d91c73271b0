"""Homes of versions that kept runs in files."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from council.desk.recurring_folder import Pause, load_pauses
from council.engine.ledger import Ledger
from council.settings import Home
from council.storage.marks import mark
from council.storage.reader import is_older
from council.storage.store import Store
from council.upkeep.older_home import bring_over
from tests.rows import receipt


def test_ended_runs_keep_the_order_in_which_they_ended_when_the_files_were_copied_in_another(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure_runtime()
    folder = home.runtime / "receipts"
    folder.mkdir()
    (home.runtime / "runs").mkdir()
    for run_id, second in (("r-first", 1), ("r-last", 3), ("r-middle", 2)):
        told = receipt(run_id, finished=f"2026-11-20T00:00:0{second}Z")
        (folder / f"{run_id}.json").write_bytes(msgspec.json.encode(told))
    (folder / "r-odd.json").write_bytes(msgspec.json.encode(receipt("r-odd", finished="notatime")))
    with closing(Store.open(home.runtime)) as store:
        imported = bring_over(home, store)
        newest = [entry.run_id for entry in Ledger(store).newest(9, ended_only=True)]
    assert newest == ["r-last", "r-middle", "r-first"]
    assert imported.unread == ["receipts/r-odd.json"]


def test_a_file_that_cannot_be_read_is_named_and_keeps_back_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure_runtime()
    files = {
        "receipts/r-good.json": msgspec.json.encode(receipt("r-good")),
        "ids/torn.json": b'{"id": "a", ',
        "ids/odd.json": b'{"id": 5}',
        "outputs/odd.json": b"[]",
        "spend/2026-11-20.jsonl": b'[1]\n{"run_id": "r-good", "call": "d", "t": "end", "tokens": 7}\n{"run',
        "pauses/odd": b"\xff",
        "schedules.json": b'{"brief.json": ',
        "calibration.json": b"",
        "runs/r-torn": b"no folder",
    }
    for name, data in files.items():
        (home.runtime / name).parent.mkdir(exist_ok=True)
        (home.runtime / name).write_bytes(data)
    with closing(Store.open(home.runtime)) as store:
        imported = bring_over(home, store)
        assert [entry.run_id for entry in Ledger(store).newest(9, ended_only=True)] == ["r-good"]
        assert mark(store, "schedules") is None
    assert imported.calls == 1
    assert sorted(imported.unread) == [
        "calibration.json", "ids/odd.json", "ids/torn.json", "outputs/odd.json", "pauses/odd", "schedules.json",
        "spend/2026-11-20.jsonl: line 1",
    ]  # fmt: skip
    assert [name for name in files if (home.runtime / name).exists()] == []


def test_a_pause_of_a_schedule_holds_on_and_a_resumed_one_counts_from_then(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure_runtime()
    folder = home.runtime / "schedules"
    folder.mkdir()
    for name in ("both.json.paused", "both.json.resumed", "resumed.yaml.resumed"):
        (folder / name).write_text("2026-11-20T07:00:00+00:00" if name.endswith(".paused") else "2026-11-21T07:00:00Z")
    (folder / "odd.md.paused").write_text("yesterday")
    assert is_older(home.runtime)
    with closing(Store.open(home.runtime)) as store:
        assert bring_over(home, store).unread == ["schedules/odd.md.paused"]
        assert load_pauses(store) == {
            "both.json": Pause(holds=True, since=datetime(2026, 11, 20, 7, tzinfo=UTC)),
            "odd.md": Pause(holds=True),
            "resumed.yaml": Pause(holds=False, since=datetime(2026, 11, 21, 7, tzinfo=UTC)),
        }
    assert not is_older(home.runtime)
