"""What SQLite and the disk below it can do to a home's database: a named error, nothing torn, nothing acknowledged too early."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from council.engine import statements as sql
from council.errors import ConfigError, StorageFailed
from council.storage import drivers
from council.storage.marks import SET_MARK, mark, set_mark
from council.storage.reader import Reader
from council.storage.store import Store, Tx
from council.storage.versions import DATABASE_FILE
from tests.driver import Held, sqlite_error, watched

CHECKPOINT = "PRAGMA wal_checkpoint"


@contextmanager
def locked_by_another_process(folder: Path, operation: int) -> Iterator[None]:
    fd = os.open(folder / "council.db.lock", os.O_RDWR)
    fcntl.flock(fd, operation | fcntl.LOCK_NB)
    try:
        yield
    finally:
        os.close(fd)


# ── the disk ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_after_an_io_error_nothing_is_acknowledged_before_the_whole_log_is_in_the_file(
    store: Store, tmp_path: Path
) -> None:
    store.write_now(lambda tx: tx.execute(SET_MARK, ("before", "")))
    with watched(store) as driver:
        driver.before["COMMIT"] = sqlite_error(sqlite3.SQLITE_IOERR)
        with pytest.raises(StorageFailed, match="injected"):
            await store.write(lambda tx: tx.execute(SET_MARK, ("refused", "")))
        driver.before = {CHECKPOINT: sqlite_error(sqlite3.SQLITE_IOERR)}
        driver.statements.clear()
        for _ in range(2):
            with pytest.raises(StorageFailed, match="injected"):
                await store.write(lambda tx: tx.execute(SET_MARK, ("too early", "")))
            with pytest.raises(StorageFailed, match="injected"), store.transaction():
                pass
        assert driver.count("BEGIN") == 0
        driver.before.clear()
        driver.statements.clear()
        await store.write(lambda tx: tx.execute(SET_MARK, ("after", "")))
        assert driver.statements[0] == f"{CHECKPOINT}(TRUNCATE)"
        await store.write(lambda tx: tx.execute(SET_MARK, ("later", "")))
        assert driver.count(CHECKPOINT) == 1
    marks = store.read(lambda tx: tx.execute("SELECT name FROM marks ORDER BY name").fetchall())
    assert [name for (name,) in marks] == ["after", "before", "later"]


def test_after_an_io_error_no_other_process_acknowledges_before_that_either(tmp_path: Path) -> None:
    """Neither one that had opened the database before, nor one that does so when the first has died."""
    with closing(Store.open(tmp_path)) as beside:
        failed = Store.open(tmp_path)
        with watched(failed) as driver:
            driver.before["COMMIT"] = driver.before[CHECKPOINT] = sqlite_error(sqlite3.SQLITE_IOERR)
            with pytest.raises(StorageFailed, match="injected"):
                set_mark(failed, "a", "1")
            with watched(beside) as other:
                other.before[CHECKPOINT] = sqlite_error(sqlite3.SQLITE_IOERR)
                with pytest.raises(StorageFailed, match="injected"):
                    set_mark(beside, "b", "1")
                assert other.count("BEGIN") == 0
            failed.close()  # without a checkpoint
        with closing(Store(drivers.driver_of(tmp_path, None))) as later, watched(later) as driver:
            set_mark(later, "c", "1")
            assert driver.statements[0] == f"{CHECKPOINT}(TRUNCATE)"
        assert [mark(beside, name) for name in "abc"] == [None, None, "1"]
        with closing(Store(drivers.driver_of(tmp_path, None))) as later, watched(later) as driver:
            set_mark(later, "d", "1")
            assert driver.count(CHECKPOINT) == 0


def in_a_transaction_of_its_own(store: Store, name: str) -> None:
    with store.transaction() as tx:
        tx.execute(SET_MARK, (name, ""))


def written_at_once(store: Store, name: str) -> None:
    set_mark(store, name, "")


@pytest.mark.parametrize("fails", [written_at_once, in_a_transaction_of_its_own])
@pytest.mark.parametrize("waits", [written_at_once, in_a_transaction_of_its_own])
def test_who_waits_while_another_process_meets_an_io_error_acknowledges_nothing_before_that_either(
    tmp_path: Path, fails: Callable[[Store, str], None], waits: Callable[[Store, str], None]
) -> None:
    began, wrote = threading.Event(), threading.Event()

    with (
        closing(Store.open(tmp_path)) as failing,
        closing(Store.open(tmp_path)) as waiting,
        watched(failing) as driver,
        watched(waiting) as other,
        ThreadPoolExecutor() as pool,
    ):

        def fail() -> None:
            failing._raw.execute("ROLLBACK")  # as SQLite does by itself when a COMMIT fails
            assert not wrote.wait(0.3)
            sqlite_error(sqlite3.SQLITE_IOERR)()

        driver.before["COMMIT"] = fail
        driver.after["BEGIN IMMEDIATE"] = began.set
        failed = pool.submit(fails, failing, "a")
        began.wait(60)
        other.after["COMMIT"] = wrote.set
        done = pool.submit(waits, waiting, "b")
        with pytest.raises(StorageFailed, match="injected"):
            failed.result(60)
        done.result(60)
        assert [one for one in other.statements if not one.startswith(("INSERT", "PRAGMA synchronous"))] == [
            f"{CHECKPOINT}(TRUNCATE)",
            "BEGIN IMMEDIATE",
            "COMMIT",
        ]
        assert (mark(waiting, "a"), mark(waiting, "b")) == (None, "")


async def test_an_io_error_of_one_job_among_others_is_one_too(store: Store) -> None:
    with watched(store) as driver:
        driver.before["SELECT"] = sqlite_error(sqlite3.SQLITE_IOERR)
        held = Held(store)
        jobs = [store.write(lambda tx: tx.execute("SELECT 1")), store.write(lambda tx: None)]
        held.release()
        told = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(one) for one in told] == [StorageFailed, StorageFailed]
        assert driver.count("COMMIT") == 1  # of the job that held the writer
        driver.before.clear()
        driver.statements.clear()
        store.write_now(lambda tx: None)
        assert driver.statements[0] == f"{CHECKPOINT}(TRUNCATE)"


def test_after_an_io_error_who_reads_is_waited_for(store: Store) -> None:
    with watched(store) as driver:
        set_mark(store, "a", "1")
        driver.before["COMMIT"] = sqlite_error(sqlite3.SQLITE_IOERR)
        with pytest.raises(StorageFailed):
            set_mark(store, "b", "1")
        driver.before.clear()
        with store.reading() as tx:
            tx.execute("SELECT * FROM marks")
            store._raw.execute(SET_MARK, ("c", ""))
            with pytest.raises(StorageFailed, match="input/output"):
                set_mark(store, "b", "1")
        set_mark(store, "b", "2")
    assert mark(store, "b") == "2"


async def test_a_full_disk_tells_every_job_that_did_not_fit_and_the_store_goes_on_when_there_is_room(
    store: Store,
) -> None:
    pages = store._raw.execute("PRAGMA page_count").fetchone()[0]
    store._raw.execute(f"PRAGMA max_page_count = {pages}")
    large = "x" * 1_000_000
    held = Held(store)
    jobs = [
        store.write(lambda tx, name=name: tx.execute(SET_MARK, (name, large)))  # type: ignore[misc]
        for name in ("large", "too large")
    ]
    held.release()
    errors = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(error) for error in errors] == [StorageFailed, StorageFailed]
    assert "free some space on the disk" in str(errors[0])
    assert (mark(store, "large"), mark(store, "too large")) == (None, None)
    store._raw.execute("PRAGMA max_page_count = 1000000")
    await store.write(lambda tx: tx.execute(SET_MARK, ("large", large)))
    assert mark(store, "large") == large
    assert drivers.flaw_in(store._driver._path) == ""


# ── others that work in it ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "_BUSY_TIMEOUT_MS", 20)


@pytest.mark.usefixtures("impatient")
def test_a_lock_is_tried_again_and_then_named(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store, closing(sqlite3.connect(tmp_path / "council.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with watched(store) as driver:
            with pytest.raises(StorageFailed, match="locked") as caught:
                set_mark(store, "a", "1")
            tries = driver.count("BEGIN IMMEDIATE")
            assert tries > 1
            assert "end what writes to it" in caught.value.fix

            def let_go() -> None:
                if driver.count("BEGIN IMMEDIATE") == tries + 2:
                    other.rollback()

            driver.before["BEGIN IMMEDIATE"] = let_go
            set_mark(store, "a", "2")
        assert mark(store, "a") == "2"


def test_while_a_transaction_is_written_no_other_process_can_move_the_log(store: Store, tmp_path: Path) -> None:
    seen = []

    def try_lock() -> None:
        with pytest.raises(BlockingIOError), locked_by_another_process(tmp_path, fcntl.LOCK_EX):
            pass
        seen.append(True)

    with watched(store) as driver:
        driver.before["COMMIT"] = try_lock
        set_mark(store, "a", "1")
        with store.transaction():
            pass
    assert len(seen) == 2
    with locked_by_another_process(tmp_path, fcntl.LOCK_EX):
        pass


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_idle_writer_alone_moves_a_long_log_into_the_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = asyncio.Event()
    loop = asyncio.get_running_loop()
    with watched(store) as driver:
        driver.after[CHECKPOINT] = lambda: loop.call_soon_threadsafe(moved.set)  # type: ignore[assignment,return-value]
        set_mark(store, "a", "x" * 100_000)
        await store.write(lambda tx: None)
        assert driver.count(CHECKPOINT) == 0  # it is short
        monkeypatch.setattr("council.storage.store.LOG_BYTES", 50_000)
        await store.write(lambda tx: tx.execute(SET_MARK, ("b", "")))
        await asyncio.wait_for(moved.wait(), 60)
    without_log = f"file:{tmp_path}/council.db?immutable=1"
    with closing(sqlite3.connect(without_log, uri=True)) as file:
        assert file.execute("SELECT name FROM marks ORDER BY name").fetchall() == [("a",), ("b",)]
    assert store._raw.execute("PRAGMA wal_autocheckpoint").fetchone()[0] == 0


async def test_a_log_that_was_moved_into_the_file_is_filled_anew_before_it_is_moved_again(store: Store) -> None:
    moved = asyncio.Event()
    loop = asyncio.get_running_loop()
    with watched(store) as driver:
        driver.after[CHECKPOINT] = lambda: loop.call_soon_threadsafe(moved.set)  # type: ignore[assignment,return-value]
        await store.write(lambda tx: tx.execute(SET_MARK, ("a", "x" * drivers.LOG_BYTES)))
        await asyncio.wait_for(moved.wait(), 60)
        for number in range(20):
            await store.write(lambda tx, number=number: tx.execute(SET_MARK, (f"{number}", "")))  # type: ignore[misc]
        assert driver.count(CHECKPOINT) == 1


async def test_a_long_look_keeps_the_log_long_and_holds_up_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a backup by another process."""
    monkeypatch.setattr(drivers, "_BUSY_TIMEOUT_MS", 600_000)
    moved = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def write(text: str) -> None:
        await store.write(lambda tx: tx.execute(SET_MARK, ("a", text)))
        await asyncio.wait_for(moved.wait(), 60)
        moved.clear()

    with closing(Store.open(tmp_path)) as store, closing(Store.open(tmp_path)) as other, watched(store) as driver:
        driver.after[CHECKPOINT] = lambda: loop.call_soon_threadsafe(moved.set)  # type: ignore[assignment,return-value]
        with other.reading() as tx:
            tx.execute("SELECT name FROM marks").fetchall()
            for letter in "xy":
                await write(letter * drivers.LOG_BYTES)
        assert store._driver.log_bytes() > 2 * drivers.LOG_BYTES
        await write("once more")
        await store.write(lambda tx: tx.execute(SET_MARK, ("a", "and from its beginning")))
        assert store._driver.log_bytes() == drivers.LOG_BYTES


def test_the_log_stays_while_another_process_has_the_lock(store: Store, tmp_path: Path) -> None:
    set_mark(store, "a", "1")
    with watched(store) as driver:
        with locked_by_another_process(tmp_path, fcntl.LOCK_EX), pytest.raises(StorageFailed):
            store.sweep()
        assert driver.count(CHECKPOINT) == 0
        store.sweep()
        assert driver.count(CHECKPOINT) == 1


def test_a_closed_store_leaves_one_file_that_says_everything(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        set_mark(store, "a", "1")
        assert mark(store, "a") == "1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["council.db", "council.db.lock"]
    with closing(sqlite3.connect(tmp_path / "council.db")) as other:
        assert other.execute("SELECT value FROM marks").fetchall() == [("1",)]


# ── a file that does not open ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["no database", "the first page", "half of it"])
def test_a_damaged_file_is_named_and_never_replaced(tmp_path: Path, damage: str) -> None:
    with closing(Store.open(tmp_path)) as store:
        for number in range(50):
            set_mark(store, f"{number}", "x" * 5_000)
    path = tmp_path / "council.db"
    whole = path.read_bytes()
    spoilt = {
        "no database": b"this is no database" * 1_000,
        "the first page": whole[:100] + b"\x7f" * 8_092 + whole[8192:],
        "half of it": whole[: len(whole) // 2 // 8192 * 8192],
    }[damage]
    path.write_bytes(spoilt)
    with pytest.raises(StorageFailed) as caught, closing(Store.open(tmp_path)) as store:
        store.read(lambda tx: tx.execute("SELECT * FROM marks").fetchall())
    assert "council restore" in caught.value.fix
    assert path.read_bytes() == spoilt
    assert drivers.flaw_in(path)


def test_a_database_that_is_gone_is_not_begun_anew_in_silence(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "council.db").unlink()
    with pytest.raises(StorageFailed):
        Store.open(tmp_path)
    assert not (tmp_path / "council.db").exists()


def test_a_database_that_is_replaced_under_its_writer_is_left_alone(tmp_path: Path) -> None:
    path, store = tmp_path / "council.db", Store.open(tmp_path)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        store._raw.backup(copy)
    set_mark(store, "a", "x" * 100_000)  # in the log alone
    path.rename(tmp_path / "old.db")
    (tmp_path / "copy.db").rename(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"council\.db was replaced while it was in use"):
            set_mark(store, "b", "1")
    store.close()
    assert path.read_bytes() == before
    assert (drivers.flaw_in(path), drivers.flaw_in(tmp_path / "old.db")) == ("", "")
    with closing(Store.open(tmp_path)) as other:
        assert (mark(other, "a"), mark(other, "b")) == (None, None)
    with closing(sqlite3.connect(tmp_path / "old.db")) as old:  # nothing that was acknowledged is lost
        assert old.execute("SELECT name FROM marks").fetchall() == [("a",)]


def test_a_database_that_is_removed_under_its_writer_is_named_until_it_is_back(store: Store, tmp_path: Path) -> None:
    set_mark(store, "a", "1")
    (tmp_path / "council.db").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="was removed"):
        set_mark(store, "b", "1")
    (tmp_path / "elsewhere").rename(tmp_path / "council.db")
    set_mark(store, "c", "1")
    assert [mark(store, name) for name in "abc"] == ["1", None, "1"]


def test_damage_that_is_met_is_remembered(store: Store) -> None:
    assert store.damage is None
    with watched(store) as driver:
        driver.before["INSERT"] = sqlite_error(sqlite3.SQLITE_CORRUPT)
        with pytest.raises(StorageFailed):
            set_mark(store, "a", "1")
    assert store.damage is not None
    assert "council restore" in store.damage.fix


def test_what_is_no_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "council.db").mkdir()
    for asked in (Store.open, Reader):
        with pytest.raises(StorageFailed, match=r"council\.db, the place of the database, is not a file") as refused:
            asked(tmp_path)
        assert "move it away" in refused.value.fix
    (tmp_path / "council.db").rmdir()
    (tmp_path / "council.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match=r"council\.db"):
        Store.open(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_cannot_be_made_is_named_with_its_own_fix(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match=r"Cannot open .*/absent/council\.db\.lock: No such file") as caught:
        Store.open(tmp_path / "absent")
    assert caught.value.fix == "create the folder first"


def test_its_files_are_for_their_owner_alone(store: Store, tmp_path: Path) -> None:
    set_mark(store, "a", "1")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("council.db*")}
    assert set(modes.values()) == {0o600}
    assert modes.keys() >= {"council.db", "council.db-wal", "council.db.lock"}


def test_a_network_drive_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "network_file_system", lambda folder: "nfs4")
    with pytest.raises(ConfigError, match="nfs4"):
        Store.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_sqlite_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigError, match="too old"):
        Store.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (sqlite3.SQLITE_BUSY, "end what writes"),
        (sqlite3.SQLITE_CORRUPT, "council restore"),
        (sqlite3.SQLITE_NOTADB, "council restore"),
        (sqlite3.SQLITE_FULL, "free some space"),
        (sqlite3.SQLITE_IOERR | 4 << 8, "check the disk"),
        (sqlite3.SQLITE_READONLY, "give this user access"),
        (sqlite3.SQLITE_READONLY | 3 << 8, "give this user access"),
        (sqlite3.SQLITE_CANTOPEN, "give this user access"),
    ],
)
def test_each_trouble_has_a_fix_of_its_own(store: Store, code: int, fix: str) -> None:
    with watched(store) as driver:
        driver.before["INSERT"] = sqlite_error(code)
        with pytest.raises(StorageFailed) as caught:
            set_mark(store, "a", "1")
    assert fix in caught.value.fix


# ── forgetting, and giving back ──────────────────────────────────────────────────────────────────────────────────────


def test_what_was_changed_and_swept_stands_in_no_raw_file(store: Store, tmp_path: Path) -> None:
    def files() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    for number in range(200):
        set_mark(store, f"{number}", f"canary-{number:04} " * (number * 10))
    store.write_now(lambda tx: tx.execute("UPDATE marks SET value = 'gone' WHERE name <> '7'"))
    store.write_now(lambda tx: tx.execute("DELETE FROM marks WHERE name = '7'"))
    assert b"canary" in files()
    store.sweep()
    assert b"canary" not in files()


def test_who_reads_an_older_state_makes_a_sweep_wait(tmp_path: Path, impatient: None) -> None:
    with closing(Store.open(tmp_path)) as store, closing(Store.open(tmp_path)) as other:
        set_mark(store, "a", "canary")
        with other.reading() as tx:
            tx.execute("SELECT * FROM marks").fetchall()
            set_mark(store, "a", "gone")
            with pytest.raises(StorageFailed, match="being read"):
                store.sweep()
        store.sweep()
    assert b"canary" not in (tmp_path / "council.db").read_bytes()


def test_free_pages_are_given_back_in_slices(store: Store, tmp_path: Path) -> None:
    for number in range(40):
        set_mark(store, f"{number}", "x" * 200_000)
    store.sweep()
    large = (tmp_path / "council.db").stat().st_size
    store.write_now(lambda tx: tx.execute("DELETE FROM marks"))
    slices = 1
    while store.give_back():
        slices += 1
    store.sweep()
    assert slices > 1
    assert (tmp_path / "council.db").stat().st_size < large / 5


def test_in_a_file_that_was_written_anew_no_page_holds_what_was_deleted(tmp_path: Path) -> None:
    """Where SQLite brings two pages together, copies of rows stay behind that it does not overwrite when those go."""
    rng = random.Random(0)

    def keep(tx: Tx) -> None:
        for number in range(80):
            owner = number % 2 if number < 60 else 0
            words = (b"heliotrope ", b"cinnabar.. ")[owner] * rng.randint(5, 80)
            tx.execute(sql.KEEP, (f"owner {owner}", f"{number:03}", words))

    with closing(Store.open(tmp_path)) as store:
        store.write_now(keep)
        store.write_now(lambda tx: tx.execute("DELETE FROM kept WHERE owner = 'owner 0'"))
        store.rebuild()
        store.sweep()
        data = (tmp_path / DATABASE_FILE).read_bytes()
        assert (b"heliotrope" in data, b"cinnabar" in data) == (False, True)
