"""Which runs are let go of: a table of bounds; and that letting go may be cut off anywhere."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from council.engine.ledger import Entry, Ledger, entry_of_receipt
from council.engine.receipts import IdBinding, Receipt, Receipts
from council.engine.records import FileIdentity
from council.settings import Home
from council.upkeep import retention
from council.upkeep.retention import Bounds, Retention, over
from tests.harness import make_home

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
FOREVER = Bounds(None, None, None)


class Noon:
    def now(self) -> datetime:
        return NOW

    def monotonic_s(self) -> float:
        return 0.0


def row(number: int, *, days_ago: float, size: int) -> Entry:
    ended_ns = int((NOW - timedelta(days=days_ago)).timestamp() * 1e9)
    return Entry(f"r{number}", "succeeded", "deliberate", "main", "", "", bytes=size, ended_ns=ended_ns)


ROWS = [row(1, days_ago=40, size=100), row(2, days_ago=20, size=10), row(3, days_ago=5, size=50)]


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        (FOREVER, []),
        (Bounds(41, None, None), []),
        (Bounds(39, None, None), [("r1", "keep_days")]),
        (Bounds(1, None, None), [("r1", "keep_days"), ("r2", "keep_days"), ("r3", "keep_days")]),
        (Bounds(None, 3, None), []),
        (Bounds(None, 1, None), [("r1", "keep_runs"), ("r2", "keep_runs")]),
        (Bounds(None, None, 160), []),
        (Bounds(None, None, 159), [("r1", "keep_bytes")]),
        (Bounds(None, None, 59), [("r1", "keep_bytes"), ("r2", "keep_bytes")]),
        (Bounds(30, 2, 55), [("r1", "keep_days"), ("r2", "keep_bytes")]),
        (Bounds(30, 1, 1_000), [("r1", "keep_days"), ("r2", "keep_runs")]),
    ],
)
def test_the_fewest_oldest_runs_go_until_every_bound_holds(bounds: Bounds, gone: list[tuple[str, str]]) -> None:
    assert [(due.run_id, due.by) for due in over(ROWS, 3, 160, bounds, NOW)] == gone


def test_runs_that_are_not_listed_count_as_well() -> None:
    assert [due.run_id for due in over(ROWS[:1], 3, 160, Bounds(None, 1, None), NOW)] == ["r1"]


# ── a home of its own ────────────────────────────────────────────────────────────────────────────────────────────────


def receipt(run_id: str, **values: object) -> Receipt:
    file = FileIdentity("c.json", 1, 1, "0" * 64)
    at = "2026-11-01T00:00:00Z"
    made = Receipt(run_id, "succeeded", "deliberate", file, "0" * 64, "0" * 64, at, at, lane="main", title=run_id)
    return msgspec.structs.replace(made, **values)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(make_home(tmp_path / "home"))
    home.ensure_runtime()
    (home.runtime / "active").mkdir()
    return home


class Ended:
    """Runs of a home that have ended, `r1` first; each with a journal and a blob."""

    def __init__(self, home: Home, count: int, **values: object) -> None:
        self.home = home
        self.ledger = Ledger(home.runtime / "ledger.sqlite")
        self.receipts = Receipts(home.receipts, home.runtime / "ids")
        for number in range(1, count + 1):
            folder = home.runs / f"r{number}"
            (folder / "blobs").mkdir(parents=True)
            (folder / "journal.jsonl").write_text("x" * 100)
            (folder / "blobs" / "b").write_text("y" * 100)
            told = receipt(folder.name, **values)
            self.receipts.rewrite(told, number)
            self.ledger.put(entry_of_receipt(told, folder=folder, ended_ns=number))

    def keeping(self, bounds: Bounds) -> Retention:
        return Retention(self.home, self.ledger, self.receipts, bounds, Noon())

    def folders(self) -> list[str]:
        return sorted(os.listdir(self.home.runs))


def test_what_was_pruned_says_when_and_why_and_keeps_its_place(home: Home) -> None:
    ended = Ended(home, 3)
    keeping = ended.keeping(Bounds(None, 1, None))
    gone = [one for one in keeping.prune(keeping.due()) if one is not None]
    assert [(one.run_id, one.by, one.bytes) for one in gone] == [("r1", "keep_runs", 200), ("r2", "keep_runs", 200)]
    assert ended.folders() == ["r3"]
    told = json.loads((home.receipts / "r2.json").read_bytes())["pruned"]
    assert told == {"at": "2026-11-20T12:00:00Z", "by": "keep_runs"}
    assert ended.receipts.written_ns("r2") == 2
    assert [(entry.run_id, entry.pruned, entry.bytes) for entry in ended.ledger.all()] == [
        ("r1", 1, 0), ("r2", 1, 0), ("r3", 0, 200)
    ]  # fmt: skip
    assert keeping.due() == []


@pytest.mark.parametrize("steps", range(7))
def test_a_prune_that_is_cut_off_anywhere_is_completed_by_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(retention, "_FILES_PER_STEP", 1)
    ended = Ended(home, 3)
    keeping = ended.keeping(Bounds(None, 1, None))
    pruning = keeping.prune(keeping.due())
    for _ in range(steps):
        next(pruning, None)
    pruning.close()
    again = ended.keeping(Bounds(None, 1, None))
    list(again.prune(again.due()))
    assert ended.folders() == ["r3"]
    assert [ended.receipts.read(f"r{number}").pruned is not None for number in (1, 2, 3)] == [True, True, False]  # type: ignore[union-attr]
    assert ended.ledger.kept() == (1, 200)


def test_a_run_with_a_marker_or_without_a_receipt_is_never_pruned_whatever_the_ledger_says(home: Home) -> None:
    ended = Ended(home, 4)
    (home.runtime / "active" / "r1").touch()
    (home.receipts / "r2.json").unlink()
    keeping = ended.keeping(Bounds(1, None, None))
    due = keeping.due()
    assert [one.run_id for one in due] == ["r3", "r4"]
    (home.runtime / "active" / "r3").touch()  # resumed in between
    assert [one.run_id for one in keeping.prune(due) if one is not None] == ["r4"]
    assert ended.folders() == ["r1", "r2", "r3"]


def test_what_cannot_be_removed_is_said_and_holds_up_nothing_else(home: Home) -> None:
    ended = Ended(home, 3)
    (home.runs / ".pruned-keep_runs-r1").touch()  # a file, where the folder of r1 is to go
    keeping = ended.keeping(Bounds(None, 1, None))
    assert [one.run_id for one in keeping.prune(keeping.due()) if one is not None] == ["r2"]
    assert keeping.failures == [
        "runs/.pruned-keep_runs-r1 cannot be removed: Not a directory",
        "run r1 cannot be removed: Not a directory",
    ]
    assert ended.folders() == [".pruned-keep_runs-r1", "r1", "r3"]


def test_a_folder_that_was_moved_to_another_disk_is_unlinked_not_emptied(home: Home, tmp_path: Path) -> None:
    ended = Ended(home, 2)
    elsewhere = tmp_path / "elsewhere"
    (home.runs / "r1").rename(elsewhere)
    (home.runs / "r1").symlink_to(elsewhere)
    keeping = ended.keeping(Bounds(None, 1, None))
    assert [one.run_id for one in keeping.prune(keeping.due()) if one is not None] == ["r1"]
    assert ended.folders() == ["r2"]
    assert (elsewhere / "journal.jsonl").exists()


def test_of_very_many_receipts_without_folder_and_id_the_oldest_go(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "KEPT_RECEIPTS", 2)
    ended = Ended(home, 4)
    answering = receipt("r0", id="answers")
    ended.receipts.rewrite(answering, 1)
    ended.receipts.bind(IdBinding("answers", "0" * 64, "r0"))
    ended.ledger.put(entry_of_receipt(answering, folder=home.runs / "r0", ended_ns=1))
    keeping = ended.keeping(Bounds(1, None, None))
    list(keeping.prune(keeping.due()))
    assert [path.name for path in keeping.tidy()] == ["r2.json", "r1.json"]
    assert ended.receipts.run_ids() == ["r0", "r3", "r4"]
    assert [entry.run_id for entry in ended.ledger.all()] == ["r0", "r3", "r4"]
    assert list(keeping.tidy()) == []


@pytest.mark.parametrize(
    ("days", "kept"), [(None, ["2026-08-20"]), (30, ["2026-08-20"]), (200, ["2026-08-20", "2026-08-19"])]
)
def test_spend_logs_are_kept_for_a_quarter_or_as_long_as_runs(home: Home, days: int | None, kept: list[str]) -> None:
    folder = home.runtime / "spend"
    folder.mkdir()
    for name in ("2026-08-20.jsonl", "2026-08-19.jsonl", "2025-01-01.jsonl", "notes.txt"):
        (folder / name).touch()
    list(Ended(home, 0).keeping(Bounds(days, None, None)).tidy())
    assert sorted(os.listdir(folder)) == sorted(["notes.txt", *(f"{day}.jsonl" for day in kept)])
