"""Copies of the database: made beside whoever writes, two kept, and taken back."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from council.budgets.spend import Reservation, Spend
from council.budgets.statements import SETTLE
from council.engine import statements as sql
from council.engine.ledger import Ledger, end_of
from council.engine.outputs import OutputEntry, note_written, written_at
from council.engine.receipts import Receipts
from council.errors import StorageFailed, UsageError
from council.ids import SystemClock
from council.settings import Home
from council.storage.drivers import RESTORING, flaw_in
from council.storage.marks import SET_MARK, mark, set_mark
from council.storage.store import Store, Tx, look_into
from council.upkeep.copies import CopyLoss, copies_of, copy_daily, copy_database, renew_copies, taken_back
from tests.rows import begun, ended, receipt

DAY = datetime(2026, 11, 20, 12, tzinfo=UTC)


def anything(tx: Tx) -> None:
    """Admits every copy."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.ensure_runtime()
    return home


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with closing(Store.open(home.runtime)) as store:
        yield store


def marks_in(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return dict(db.execute("SELECT name, value FROM marks").fetchall())


def test_a_day_has_one_copy_and_two_days_are_kept(home: Home, store: Store) -> None:
    for number in range(4):
        set_mark(store, "day", str(number))
        assert copy_daily(home, store, DAY + timedelta(days=number)) is not None
        set_mark(store, "day", "later")
        assert copy_daily(home, store, DAY + timedelta(days=number, hours=3)) is None
    assert [path.name for path in copies_of(home)] == ["council-20261123.db", "council-20261122.db"]
    assert [marks_in(path)["day"] for path in copies_of(home)] == ["3", "2"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copies_of(home)} == {0o600}
    assert sorted(path.name for path in (home.runtime / "copies").iterdir()) == sorted(
        path.name for path in copies_of(home)
    )


def test_copies_of_a_clock_that_was_ahead_give_way_to_those_of_today(home: Home, store: Store) -> None:
    for days in (0, 3650, 3651):  # the clock is ahead for two days, and is then set back
        copy_daily(home, store, DAY + timedelta(days=days))
    for number in (1, 2):
        set_mark(store, "day", str(number))
        copy = copy_daily(home, store, DAY + timedelta(days=number))
        assert copy is not None
        assert marks_in(copy)["day"] == str(number)
    assert [path.name for path in copies_of(home)] == ["council-20261122.db", "council-20261121.db"]


def test_a_copy_beside_a_writer_is_one_state_of_the_whole_database(home: Home, store: Store, tmp_path: Path) -> None:
    set_mark(store, "large", "x" * 3_000_000)
    done = threading.Event()
    both = 0

    def write() -> None:
        nonlocal both
        while not done.is_set():
            both += 1
            values = (str(both), "x" * (both % 50) * 100)
            with store.transaction() as tx:
                tx.execute(SET_MARK, ("one", values[0]))
                tx.execute(SET_MARK, (f"text {both % 50}", values[1]))
                tx.execute(SET_MARK, ("other", values[0]))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(10):
            copy = tmp_path / f"copy-{number}.db"
            copy_database(home, copy)
            told = marks_in(copy)
            assert told.get("one") == told.get("other")
            assert flaw_in(copy) == ""
    finally:
        done.set()
        writer.join(60)
    assert both > 10


def test_a_copy_is_synced_in_small_pieces_and_is_the_state_of_its_beginning_whatever_is_committed_between_two(
    home: Home, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of another process waits for a sync that is under way: the disk takes one after the other."""
    for number in range(10):
        set_mark(store, f"text {number}", "x" * 2_000_000)
    set_mark(store, "one", "before")
    sizes: list[int] = []
    fsync = os.fsync

    def write_between(fd: int) -> None:
        sizes.append(os.fstat(fd).st_size)
        assert len(sizes) < 20, "it began anew"
        fsync(fd)
        with store.transaction() as tx:
            tx.execute(SET_MARK, ("one", f"{len(sizes)}"))
            tx.execute(SET_MARK, (f"text {len(sizes)}", "changed"))

    monkeypatch.setattr(os, "fsync", write_between)
    copy_database(home, tmp_path / "copy.db")
    told = marks_in(tmp_path / "copy.db")
    assert (told["one"], {told[f"text {number}"] for number in range(10)}) == ("before", {"x" * 2_000_000})
    assert mark(store, "one") == f"{len(sizes)}"
    assert sizes[-1] > 20_000_000
    assert max(size - before for before, size in zip([0, *sizes], sizes, strict=False)) <= 6 << 20
    assert flaw_in(tmp_path / "copy.db") == ""


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The syncs and the renames of this process, in their order; what SQLite does is not among them."""
    told: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        told.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")
        fsync(fd)

    def telling(change: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def renamed(source: Path, target: Path) -> None:
            told.append(f"{Path(source).name} to {Path(target).name}")
            change(source, target)

        return renamed

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", telling(os.replace))
    monkeypatch.setattr(os, "rename", telling(os.rename))
    return told


def test_a_copy_is_on_the_disk_before_it_has_its_name_and_a_daily_one_has_it_for_good(
    home: Home, store: Store, tmp_path: Path, acts: list[str]
) -> None:
    set_mark(store, "a", "1")
    acts.clear()
    copy_database(home, tmp_path / "copy.db")
    assert acts[-2:] == ["fsync .copy.db.partial", ".copy.db.partial to copy.db"]
    acts.clear()
    copy_daily(home, store, DAY)
    name = "council-20261120.db"
    assert acts[-3:] == [f"fsync .{name}.partial", f".{name}.partial to {name}", "fsync copies"]


def test_what_is_taken_back_is_on_the_disk_before_the_mark_of_the_change_goes(
    home: Home, tmp_path: Path, acts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store.open(home.runtime)) as store:
        set_mark(store, "a", "1")
        copy_database(home, tmp_path / "copy.db")
    unlink = os.unlink

    def noted(path: Path, **options: Any) -> None:
        acts.append(f"without {Path(path).name}")
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", noted)
    acts.clear()
    taken_back(home, tmp_path / "copy.db", anything)
    restored = ".council.db.restored"
    assert [act for act in acts if not act.startswith(("council.db-wal", "council.db-shm"))] == [
        f"without {restored}",
        f"fsync {restored}",
        "fsync .council",  # the mark, before the database goes aside
        "council.db to council.db.before-restore",
        f"{restored} to council.db",
        "fsync .council",  # both names, before the mark goes
        f"without {RESTORING}",
    ]


def test_a_home_without_a_database_has_nothing_to_copy(home: Home) -> None:
    with pytest.raises(UsageError, match="no database yet"):
        copy_database(home, home.runtime / "copy.db")
    assert list(home.runtime.iterdir()) == []


def test_a_copy_that_cannot_be_made_leaves_the_one_before(
    home: Home, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    set_mark(store, "a", "1")
    copy_database(home, target)
    set_mark(store, "a", "2")

    class Full(sqlite3.Connection):
        def execute(self, *_: object) -> sqlite3.Cursor:  # type: ignore[override]
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    connect = sqlite3.connect

    def connect_to(path: Path, **options: object) -> sqlite3.Connection:
        options = {"factory": Full} if str(path).endswith(".partial") else options
        return connect(path, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", connect_to)

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(StorageFailed, match="full"):
        copy_database(home, target)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageFailed, match=os.strerror(errno.EIO)):
        copy_database(home, target)
    monkeypatch.undo()
    assert marks_in(target) == {"a": "1"}
    assert [path.name for path in tmp_path.glob("*.partial")] == []


def test_what_was_forgotten_stands_in_no_copy(home: Home, store: Store) -> None:
    set_mark(store, "a", "canary")
    for number in range(2):
        copy_daily(home, store, DAY + timedelta(days=number))
    set_mark(store, "a", "gone")
    store.sweep()
    begun(store, "forgetting")
    ended(store, "other", 1)
    renew_copies(home, DAY, without="forgetting")
    [copy] = copies_of(home)
    assert marks_in(copy) == {"a": "gone"}
    assert look_into(copy, lambda tx: tx.execute(sql.ALL_ENDS).fetchall()) == [("other", 1)]
    assert b"canary" not in b"".join(path.read_bytes() for path in home.runtime.rglob("*") if path.is_file())


def test_a_postgresql_is_not_ours_to_copy(home: Home, postgres_url: str) -> None:
    with closing(Store.open(home.runtime, postgres_url)) as store:
        assert copy_daily(home, store, DAY) is None


async def test_what_the_copy_does_not_know_is_told_and_the_database_set_aside(home: Home) -> None:
    with closing(Store.open(home.runtime)) as store:
        ended(store, "r1", 1)
        copy = copy_daily(home, store, DAY)
        assert copy is not None
        ended(store, "r2", 2)
        spend = Spend(store, "r2", 0, SystemClock())
        for call, tokens in (("one", 100), ("two", 20), ("three", 7_000)):
            await spend.reserve(Reservation(call, tokens), None)
        for call, tokens in (("one", 100), ("two", 20)):  # the third was in flight
            store.write_now(lambda tx, values=(tokens, 0.0, 1.0, "r2", call): tx.execute(SETTLE, values))  # type: ignore[misc]
    aside, unknown = taken_back(home, copy, anything)
    assert unknown == CopyLoss(("r2",), calls=2, tokens=120)
    with closing(Store.open(home.runtime)) as store:
        assert [entry.run_id for entry in Ledger(store).since()] == ["r1"]
    assert copy.exists()
    again, _ = taken_back(home, aside, anything)
    assert again != aside
    with closing(Store.open(home.runtime)) as store:
        assert [entry.run_id for entry in Ledger(store).since()] == ["r1", "r2"]


async def test_a_run_that_ended_after_the_copy_is_not_worked_again(home: Home) -> None:
    with closing(Store.open(home.runtime)) as store:
        for run_id in ("goes-on", "has-ended"):
            journal = begun(store, run_id)
            await Spend(store, run_id, 0, SystemClock()).reserve(Reservation("one", 5_000), None)
            await journal.put("first", "said", type=str)
        copy = copy_daily(home, store, DAY)
        await journal.put("second", "said", type=str)
        end = end_of(receipt("has-ended", calls=3), text_bytes=6, ended_ns=5)
        store.write_now(lambda tx: tx.execute(SETTLE, (40, 0.0, 1.0, "has-ended", "one")))
        store.write_now(lambda tx: (tx.execute(sql.END, end), tx.execute(sql.TAKEN, ("has-ended",))))
        store.write_now(lambda tx: note_written(tx, OutputEntry("artifacts/a.md", "has-ended", ("0",))))
    assert copy is not None
    _, unknown = taken_back(home, copy, anything)
    assert unknown == CopyLoss(ended=("has-ended",))
    with closing(Store.open(home.runtime)) as store:
        ledger = Ledger(store)
        assert ledger.unfinished() == ["goes-on"]
        assert [step.name for step in ledger.journal("has-ended").steps()] == ["first", "second"]
        assert Receipts(store).read("has-ended") == receipt("has-ended", calls=3)
        assert (written := written_at(store, "artifacts/a.md")) is not None
        assert written.run_id == "has-ended"


async def test_without_the_database_the_unfinished_runs_of_the_copy_are_named(home: Home) -> None:
    with closing(Store.open(home.runtime)) as store:
        begun(store, "r1")
        copy = copy_daily(home, store, DAY)
    assert copy is not None
    (home.runtime / "council.db").write_bytes(b"no database" * 1_000)
    assert taken_back(home, copy, anything)[1] == CopyLoss(unfinished=("r1",), told=False)


def test_what_a_killed_process_left_in_the_log_is_counted_and_goes_aside_with_the_database(home: Home) -> None:
    with closing(Store.open(home.runtime)) as store:
        ended(store, "r1", 1)
        copy = copy_daily(home, store, DAY)
        ended(store, "r2", 2)
        path, log = home.runtime / "council.db", home.runtime / "council.db-wal"
        killed = [path.read_bytes(), log.read_bytes()]
    path.write_bytes(killed[0])
    log.write_bytes(killed[1])
    assert copy is not None
    aside, unknown = taken_back(home, copy, anything)
    assert unknown.runs == ("r2",)
    with closing(Store.open(home.runtime)) as store:
        assert [entry.run_id for entry in Ledger(store).since()] == ["r1"]
    with closing(sqlite3.connect(aside)) as db:
        assert db.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall() == [("r1",), ("r2",)]


@pytest.mark.parametrize("damage", [b"no database" * 1_000, None])
def test_a_copy_takes_the_place_of_a_database_that_is_damaged_or_gone(home: Home, damage: bytes | None) -> None:
    with closing(Store.open(home.runtime)) as store:
        set_mark(store, "a", "1")
        copy = copy_daily(home, store, DAY)
    assert copy is not None
    path = home.runtime / "council.db"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    aside, unknown = taken_back(home, copy, anything)
    assert unknown == CopyLoss(told=False)
    with closing(Store.open(home.runtime)) as store:
        assert mark(store, "a") == "1"
    assert (aside and aside.read_bytes()) == damage


@pytest.mark.parametrize("damage", ["absent", "no database", "half of it"])
def test_what_is_no_whole_copy_is_not_taken_back(home: Home, tmp_path: Path, damage: str) -> None:
    with closing(Store.open(home.runtime)) as store:
        for number in range(50):
            set_mark(store, f"{number}", "x" * 5_000)
        copy_database(home, tmp_path / "copy.db")
    copy = tmp_path / "copy.db"
    data = copy.read_bytes()
    if damage == "absent":
        copy.unlink()
    else:
        copy.write_bytes({"no database": b"no database" * 1_000, "half of it": data[: len(data) // 2]}[damage])
    before = (home.runtime / "council.db").read_bytes()
    with pytest.raises(UsageError):
        taken_back(home, copy, anything)
    assert (home.runtime / "council.db").read_bytes() == before
