"""The run ledger: a list of thousands that can be lost and made again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from council.engine.ledger import Entry, Ledger
from council.errors import StorageFailed
from tests.harness import command, drop_command, make_home, receipts, run_cli


def entry(number: int, **values: object) -> Entry:
    row = Entry(
        run_id=f"20261120-0000{number:02}-aaaaaaaa", status="succeeded", type="deliberate", lane="main",
        title=f"Task {number}", created="2026-11-20T00:00:00Z", finished="2026-11-20T00:01:00Z", ended_ns=1_000 - number,
    )  # fmt: skip
    return msgspec.structs.replace(row, **values)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_the_newest_ended_run_is_the_one_that_ended_last_not_the_one_that_began_last(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        ledger.put(entry(number))
    assert [row.title for row in ledger.newest(2, ended_only=True)] == ["Task 1", "Task 2"]
    assert [row.title for row in ledger.newest(2)] == ["Task 3", "Task 2"]


def test_a_row_is_replaced_by_a_later_word_on_the_same_run(ledger: Ledger) -> None:
    ledger.put(entry(1, status="queued", finished="", ended_ns=0))
    ledger.put(entry(1))
    assert [row.status for row in ledger.newest(5)] == ["succeeded"]
    assert ledger.count() == 1


def test_runs_are_found_by_the_beginning_of_their_id(ledger: Ledger) -> None:
    for number in (1, 2, 13):
        ledger.put(entry(number))
    assert [row.title for row in ledger.starting_with("20261120-00000", 9)] == ["Task 1", "Task 2"]


def test_a_pruned_run_keeps_its_row_and_is_no_longer_listed_for_pruning(ledger: Ledger) -> None:
    ledger.put(entry(1))
    ledger.put(entry(2))
    ledger.mark_pruned(entry(2).run_id)
    assert [row.title for row in ledger.ended()] == ["Task 1"]
    assert ledger.count() == 2


def test_what_is_kept_is_counted_and_bare_receipts_are_listed_beyond_the_newest(ledger: Ledger) -> None:
    for number in range(6):
        ledger.put(entry(number, bytes=10 * number, pruned=int(number < 4), command_id="id" if number == 3 else ""))
    ledger.put(entry(9, status="queued", ended_ns=0, bytes=999))
    assert ledger.kept() == (2, 90)
    assert ledger.bare(beyond=1, count=9) == [entry(1).run_id, entry(2).run_id]  # a lower number ended later
    ledger.remove(entry(1).run_id)
    assert ledger.bare(beyond=1, count=9) == [entry(2).run_id]


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is no database" * 100)
    path.with_name("ledger.sqlite-wal").write_bytes(b"of the damaged file" * 100)
    ledger = Ledger(path)
    assert ledger.count() == 0
    assert ledger.is_incomplete
    assert (tmp_path / "ledger.sqlite.damaged").exists()
    ledger.put(entry(1))
    assert ledger.is_incomplete  # what was lost is still to be filled in
    assert ledger.rebuild([entry(1), entry(2)]) == 2
    assert not ledger.is_incomplete


def with_spoilt_rows(path: Path) -> Path:
    """A ledger whose first page still opens, and whose others hold nothing that SQLite can read."""
    whole = Ledger(path)
    whole.rebuild([entry(number) for number in range(1, 200)])
    whole.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x7f" * (len(data) - 4096))
    return path


def test_rows_that_cannot_be_read_count_as_lost(tmp_path: Path) -> None:
    ledger = Ledger(with_spoilt_rows(tmp_path / "ledger.sqlite"))
    assert ledger.is_incomplete
    assert (tmp_path / "ledger.sqlite.damaged").exists()
    ledger.put(entry(7))
    assert [row.title for row in ledger.all()] == ["Task 7"]


def test_a_rebuild_takes_the_place_of_rows_that_cannot_be_read(tmp_path: Path) -> None:
    ledger = Ledger(with_spoilt_rows(tmp_path / "ledger.sqlite"))
    assert ledger.flaw()
    assert ledger.rebuild([entry(1), entry(2)]) == 2
    assert (ledger.flaw(), ledger.count()) == ("", 2)
    ledger.close()
    assert [found.name for found in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_who_only_looks_mends_nothing_and_is_told_what_does(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(StorageFailed, match="council repair"):
        Ledger(path, read_only=True).count()
    assert [found.name for found in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_a_rebuild_that_fails_leaves_the_rows_as_they_were(ledger: Ledger) -> None:
    ledger.put(entry(1))

    def entries() -> Iterator[Entry]:
        yield entry(2)
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        ledger.rebuild(entries())
    assert [row.title for row in ledger.all()] == ["Task 1"]
    ledger.put(entry(3))
    assert ledger.count() == 2


def test_rows_that_a_power_cut_took_are_there_again_after_the_next_start(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "scripted:script.yaml"\n')
    (home / "script.yaml").write_text('default: {text: "Nothing to add."}\n')
    for number in (1, 2):
        drop_command(home, command(f"Task number {number} of two.", output_artifact_path=f"artifacts/{number}.md"))
        assert run_cli("run", "--once", cwd=home).returncode == 0
    assert run_cli("retry", "last", cwd=home).returncode == 0
    assert run_cli("run", "--once", cwd=home).returncode == 0
    before = run_cli("status", "--json", cwd=home).stdout
    with contextlib.closing(sqlite3.connect(home / ".council" / "ledger.sqlite", isolation_level=None)) as db:
        db.execute("DELETE FROM runs WHERE type = 'retry'")
        db.execute("UPDATE runs SET status = 'queued', ended_ns = 0 WHERE artifact = 'artifacts/1.md'")
    assert len(json.loads(run_cli("status", "--json", cwd=home).stdout)["recent"]) == 1
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert json.loads(run_cli("status", "--json", cwd=home).stdout)["recent"] == json.loads(before)["recent"]
    assert run_cli("repair", "--dry-run", cwd=home).stdout == "Everything is in order.\n"


def test_a_lost_ledger_is_filled_again_from_receipts_at_the_next_start(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "scripted:script.yaml"\n')
    (home / "script.yaml").write_text('default: {text: "Nothing to add."}\n')
    for number in (1, 2):
        drop_command(home, command(f"Task number {number} of two.", output_artifact_path=f"artifacts/{number}.md"))
        assert run_cli("run", "--once", cwd=home).returncode == 0
    for path in (home / ".council").glob("ledger.sqlite*"):
        path.unlink()
    assert json.loads(run_cli("status", "--json", cwd=home).stdout)["recent"] == []
    assert run_cli("run", "--once", cwd=home).returncode == 0
    recent = json.loads(run_cli("status", "--json", cwd=home).stdout)["recent"]
    assert [run["artifact"] for run in recent] == ["artifacts/2.md", "artifacts/1.md"]
    assert {run["run_id"] for run in recent} == {receipt["run_id"] for receipt in receipts(home)}
