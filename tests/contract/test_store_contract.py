"""The one store, whichever database it is: SQLite and PostgreSQL keep the same promises."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import inspect, text

from council.errors import ConfigError, DaemonRunning, DatabaseTooNew, StorageFailed
from council.storage import drivers
from council.storage.marks import SET_MARK, mark, set_mark
from council.storage.reader import looking
from council.storage.store import Store, Tx
from council.storage.versions import DATABASE_FILE, TABLES_SQLITE, VERSIONS
from council.users.notifications import notice
from tests import postgres
from tests.driver import Held, driver_error, watched

DUPLICATE = "INSERT INTO marks (name, value) VALUES (?, ?)"


@pytest.fixture
def postgres_url(empty_postgres_url: str) -> str:
    """Each of these makes its tables, as the first start does."""
    return empty_postgres_url


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    store = Store.open(tmp_path, database_url)
    yield store
    store.close()


@pytest.fixture
def other(tmp_path: Path, database_url: str | None, store: Store) -> Iterator[Store]:
    """As another process has it open."""
    other = Store.open(tmp_path, database_url)
    yield other
    other.close()


def setting(name: str, value: str = "") -> Callable[[Tx], str]:
    def work(tx: Tx) -> str:
        tx.execute(SET_MARK, (name, value))
        return name

    return work


ALL_MARKS = "SELECT name, value FROM marks ORDER BY name"


def names(store: Store) -> list[str]:
    """Of all marks but the one that says whose a server's database is."""
    return [row[0] for row in store.read(lambda tx: tx.execute(ALL_MARKS).fetchall()) if row[0] != "home"]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_waits_together_is_one_transaction_in_the_order_of_its_handing_over(store: Store) -> None:
    seen: list[str] = []
    with watched(store) as driver:
        held = Held(store)
        for name in "abc":
            store.defer(setting(f"deferred {name}"))
        jobs = [store.write(setting(name), durable=name != "b", then=seen.append) for name in "abc"]
        held.release()
        assert await asyncio.gather(*jobs) == ["a", "b", "c"]
        assert (driver.count("BEGIN"), driver.count("COMMIT")) == (2, 2)
    assert seen == ["a", "b", "c"]
    assert names(store) == ["a", "b", "c", "deferred a", "deferred b", "deferred c"]


async def test_those_who_go_on_now_and_whom_these_let_go_on_write_in_one_transaction(store: Store) -> None:
    async def write() -> Tx:
        return await store.write(lambda tx: tx)

    async def write_next() -> Tx:
        await asyncio.sleep(0)
        return await write()

    for _ in range(50):
        one, other, next_one = await asyncio.gather(write(), write(), write_next())
        assert one is other is next_one


async def test_many_write_together_again_after_one_has_written_alone_for_long(store: Store) -> None:
    async def write() -> Tx:
        return await store.write(lambda tx: tx)

    for _ in range(40):
        await write()
    together = [await asyncio.gather(*(write() for _ in range(8))) for _ in range(20)]
    assert [len(set(map(id, written))) for written in together][-10:] == [1] * 10


async def test_the_error_of_one_job_undoes_that_job_alone(store: Store) -> None:
    def fails(tx: Tx) -> None:
        tx.execute(SET_MARK, ("half", ""))
        raise ValueError("no")

    def twice(tx: Tx) -> None:
        tx.execute(SET_MARK, ("half too", ""))
        tx.execute(DUPLICATE, ("first", ""))

    held = Held(store)
    jobs = [store.write(setting("first")), store.write(fails), store.write(twice), store.write(setting("last"))]
    held.release()
    first, failed, refused, last = await asyncio.gather(*jobs, return_exceptions=True)
    assert (first, last) == ("first", "last")
    assert isinstance(failed, ValueError)
    assert isinstance(refused, StorageFailed)
    assert names(store) == ["first", "last"]


async def test_one_job_of_very_many_that_raises_costs_the_others_one_transaction_more(store: Store) -> None:
    def fails(tx: Tx) -> None:
        tx.execute(DUPLICATE, ("500", ""))

    with watched(store) as driver:
        held = Held(store)
        jobs = [store.write(setting(f"{number:03}")) for number in range(1000)]
        jobs.insert(700, store.write(fails))
        held.release()
        told = await asyncio.gather(*jobs, return_exceptions=True)
        assert (driver.count("BEGIN"), driver.count("COMMIT")) == (
            3,
            2,
        )  # one of them for the job that holds the writer
    assert [number for number, one in enumerate(told) if isinstance(one, StorageFailed)] == [700]
    assert names(store) == [f"{number:03}" for number in range(1000)]


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "RELEASE"])
async def test_an_error_of_the_driver_in_the_middle_tells_all_of_the_batch_and_the_next_one_goes_on(
    store: Store, statement: str
) -> None:
    then: list[str] = []
    with watched(store) as driver:
        held = Held(store)
        driver.before[statement] = driver_error(store, code=1)
        jobs = [store.write(setting(name), then=then.append) for name in "ab"]
        if statement == "RELEASE":
            jobs.append(store.write(lambda tx: tx.execute("no statement")))
        held.release()
        if statement == "COMMIT":  # of the job that holds the writer, too
            with pytest.raises(StorageFailed):
                await held.done
        errors = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(error) for error in errors] == [StorageFailed] * len(jobs)
        assert (then, names(store)) == ([], [])
        driver.before.clear()
        assert await store.write(setting("c")) == "c"
    assert names(store) == ["c"]


async def test_who_stops_waiting_does_not_stop_the_job_and_its_end_is_told_all_the_same(store: Store) -> None:
    told = asyncio.Event()

    async def wait() -> None:
        await store.write(setting("a"), then=lambda _: told.set())

    held = Held(store)
    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    held.release()
    await asyncio.wait([task])
    await asyncio.wait_for(told.wait(), 60)
    assert task.cancelled()
    assert names(store) == ["a"]


async def test_what_was_deferred_is_written_before_what_is_written_next(store: Store) -> None:
    store.defer(setting("a", "deferred"))
    store.write_now(setting("a", "now"))
    assert mark(store, "a") == "now"
    store.defer(setting("b", "deferred"))
    with store.transaction() as tx:
        assert tx.execute("SELECT value FROM marks WHERE name = 'b'").fetchone()[0] == "deferred"


async def test_what_was_deferred_while_the_database_takes_nothing_goes_along_with_what_it_takes_next(
    store: Store,
) -> None:
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=1)
        store.defer(setting("deferred"))
        with pytest.raises(StorageFailed):
            store.write_now(setting("refused"))
        assert names(store) == []
        driver.before.clear()
        store.write_now(setting("taken"))
    assert names(store) == ["deferred", "taken"]


async def test_what_was_deferred_keeps_its_order_where_one_job_raises_and_the_disk_fails(store: Store) -> None:
    def fails(tx: Tx) -> None:
        raise ValueError("no")

    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=1)
        for value in "123":
            store.defer(setting("deferred", value))
        with pytest.raises(ValueError, match="no"):
            store.write_now(fails)
        driver.before.clear()
        store.write_now(setting("taken"))
    assert mark(store, "deferred") == "3"


async def test_a_deferred_record_is_dropped_for_its_own_error_and_kept_for_the_databases(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    undone = threading.Event()

    def fail() -> None:
        if not store.is_sqlite:
            driver.shut()  # the connection is lost in the middle
        driver_error(store)()

    set_mark(store, "a", "1")
    with watched(store) as driver:
        driver.after["ROLLBACK"] = undone.set
        store.defer(lambda tx: tx.execute(DUPLICATE, ("a", "2")))
        assert await asyncio.to_thread(undone.wait, 60)
        store.write_now(setting("b"))
        assert driver.count("INSERT") == 2
    assert "a deferred record was not written" in caplog.text
    undone.clear()
    with watched(store) as driver:
        driver.before["INSERT"], driver.before["ROLLBACK"] = fail, undone.set
        store.defer(setting("c"))
        assert await asyncio.to_thread(undone.wait, 60)
        driver.before.clear()
        store.write_now(setting("d"))
    assert names(store) == ["a", "b", "c", "d"]


async def test_what_was_deferred_is_written_without_anything_else_and_at_the_end(
    store: Store, tmp_path: Path, database_url: str | None
) -> None:
    written = threading.Event()
    with watched(store) as driver:
        driver.after["COMMIT"] = written.set
        store.defer(setting("a"))
        assert await asyncio.to_thread(written.wait, 60)
    assert names(store) == ["a"]
    last = Store.open(tmp_path, database_url)
    last.defer(setting("b"))
    last.close()
    assert names(store) == ["a", "b"]


def test_only_what_must_be_on_the_disk_is_synced(store: Store) -> None:
    """The database itself says, within a transaction, how it will commit it."""

    def syncs(tx: Tx) -> str:
        asked = "PRAGMA synchronous" if tx.is_sqlite else "SHOW synchronous_commit"
        return str(tx.execute(asked).fetchone()[0])

    def in_transaction() -> str:
        with store.transaction() as tx:
            return syncs(tx)

    full, normal = ("2", "1") if store.is_sqlite else ("on", "off")
    assert in_transaction() == full
    assert store.write_now(syncs) == full
    for durable in (in_transaction, partial(store.write_now, syncs)):
        assert store.write_now(syncs, durable=False) == normal
        assert durable() == full


def test_a_transaction_is_committed_at_its_end_and_undone_when_it_raises(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute(SET_MARK, ("a", ""))
    with pytest.raises(ValueError, match="no"), store.transaction() as tx:  # noqa: PT012
        tx.execute(SET_MARK, ("b", ""))
        raise ValueError("no")
    with pytest.raises(StorageFailed), store.transaction() as tx:  # noqa: PT012
        tx.execute(SET_MARK, ("c", ""))
        tx.execute(DUPLICATE, ("a", ""))
    assert names(store) == ["a"]


def test_two_who_count_up_in_a_transaction_lose_nothing(store: Store, other: Store) -> None:
    set_mark(store, "count", "0")

    def count(own: Store) -> None:
        for _ in range(50):
            with own.transaction() as tx:
                tx.alone(7)
                value = int(tx.execute("SELECT value FROM marks WHERE name = 'count'").fetchone()[0])
                tx.execute(SET_MARK, ("count", str(value + 1)))

    threads = [threading.Thread(target=count, args=(own,)) for own in (store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert mark(store, "count") == "100"


async def test_a_closed_store_takes_nothing_more(tmp_path: Path, database_url: str | None) -> None:
    store = Store.open(tmp_path, database_url)
    last = store.write(setting("a"))
    store.close()
    assert await last == "a"
    with pytest.raises(StorageFailed, match="closed"):
        store.write(setting("b"))
    with pytest.raises(StorageFailed):
        store.write_now(setting("c"))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_reads_sees_one_state_and_holds_up_no_writer(store: Store, other: Store) -> None:
    set_mark(store, "a", "1")
    with other.reading() as tx:
        before = tx.execute(ALL_MARKS).fetchall()
        store.write_now(setting("b"))
        assert tx.execute(ALL_MARKS).fetchall() == before
    assert names(other) == ["a", "b"]
    with store.transaction() as tx:
        tx.execute(SET_MARK, ("c", ""))
        assert names(other) == names(store) == ["a", "b"]


def test_a_look_that_nobody_waits_for_ends_with_the_store(tmp_path: Path, database_url: str | None) -> None:
    store = Store.open(tmp_path, database_url)
    looking, failures = threading.Event(), []

    def look(tx: Tx) -> None:
        while True:
            endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
            looking.set()
            tx.execute(endless)

    def read() -> None:
        for _ in range(2):
            try:
                store.read(look)
            except StorageFailed as failure:
                failures.append(str(failure))

    thread = threading.Thread(target=read)
    thread.start()
    looking.wait(60)
    store.close()
    thread.join(60)
    assert len(failures) == 2
    assert "the store is closed" in failures[1]


def test_who_reads_changes_nothing(store: Store) -> None:
    with pytest.raises(StorageFailed):
        store.read(setting("a"))
    with pytest.raises(StorageFailed), store.reading() as tx:
        setting("a")(tx)
    assert names(store) == []


# ── SQLAlchemy's place in it ─────────────────────────────────────────────────────────────────────────────────────────


async def test_core_statements_are_part_of_the_writers_transaction(store: Store) -> None:
    def core(name: str, *, fails: bool) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            tx.execute(SET_MARK, (f"{name} by text", ""))
            tx.core.execute(text("INSERT INTO marks (name, value) VALUES (:name, '')"), {"name": f"{name} by core"})
            if fails:
                raise ValueError

        return work

    for fails in (False, True):
        held = Held(store)
        jobs = [store.write(core(f"{name}{fails}", fails=fails)) for name in "ab"]
        held.release()
        await asyncio.gather(*jobs, return_exceptions=True)
        with contextlib.suppress(ValueError), store.transaction() as tx:
            core(f"c{fails}", fails=fails)(tx)
    assert names(store) == [f"{name}False by {how}" for name in "abc" for how in ("core", "text")]
    with store.reading() as tx:
        assert tx.core.execute(text("SELECT count(*) FROM marks WHERE name <> 'home'")).scalar() == 6


async def test_an_error_of_a_core_statement_is_told_without_its_values(store: Store) -> None:
    def twice(tx: Tx) -> None:
        for _ in range(2):
            statement = text("INSERT INTO marks (name, value) VALUES ('a', :value)")
            tx.core.execute(statement, {"value": "somebody's words"})

    held = Held(store)
    jobs = [store.write(twice), store.write(setting("b"))]
    held.release()
    error, _ = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(error, StorageFailed)
    with pytest.raises(StorageFailed) as caught:
        store.write_now(twice)
    assert "somebody" not in f"{error}{caught.value}"
    assert names(store) == ["b"]


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shape(store: Store) -> dict[str, object]:
    """Tables with their columns, keys and constraints, as the database tells them."""
    with store.reading() as tx:
        found = inspect(tx.core)
        return {
            table: {
                "columns": {
                    column["name"]: (str(column["type"]), column["nullable"], column["default"])
                    for column in found.get_columns(table)
                },
                "primary": found.get_pk_constraint(table),
                "unique": sorted(map(str, found.get_unique_constraints(table))),
                "foreign": sorted(map(str, found.get_foreign_keys(table))),
                "indexes": sorted(map(index_as_told, found.get_indexes(table))),
                "checks": sorted(str(check["name"]) for check in found.get_check_constraints(table)),
            }
            for table in found.get_table_names()
        } | {
            view: {"columns": [column["name"] for column in found.get_columns(view)]} for view in found.get_view_names()
        }


def index_as_told(index: Any) -> str:
    where = [str(condition) for condition in index.get("dialect_options", {}).values()]
    return f"{index['name']} {index['column_names']} {index['unique']} {where}"


FIRST = {"audit_chain", "audit_records", "alembic_version"}
TABLES_OF = {"0001": FIRST, "0002": FIRST | {"users", "roles"}, "0003": FIRST | {"users", "roles", "user_credentials"}}
NEWEST = ("dynamic_", "specialist_", "task_telemetry", "sign_ins")
SINCE = {  # the tables that came after a version begin so
    "0004": ("plan", "world", "api_keys", "workspace_", "notifications", *NEWEST),
    "0005": ("workspace_", "notifications", "world_mechanisms", *NEWEST),
    "0006": ("world_mechanisms", *NEWEST),
    "0007": NEWEST,
    "0008": ("sign_ins",),
    "0009": (),
}


NOTIFICATIONS_OF_0009 = (
    """CREATE TABLE notifications (
    notification_id VARCHAR(64) NOT NULL,
    user_id VARCHAR(64) NOT NULL,
    text TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    read_ms BIGINT,
    CONSTRAINT pk_notifications PRIMARY KEY (notification_id),
    CONSTRAINT fk_notifications_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
    )""",
    "CREATE INDEX ix_notifications_user_id ON notifications (user_id)",
)


def begin_anew(store: Store, version: str) -> None:
    """The database as that version made it, without rows."""
    with store.transaction() as tx:
        for view in inspect(tx.core).get_view_names():
            tx.execute(f"DROP VIEW {view}")
        found = inspect(tx.core).get_sorted_table_and_fkc_names()
        for table in [name for name, _ in reversed(found) if name]:  # `roles` before `users`, to which it refers
            if table.startswith(SINCE[version]) if version in SINCE else table not in TABLES_OF[version]:
                tx.execute(f"DROP TABLE {table}")
        if "0006" <= version <= "0009":
            tx.execute("DROP TABLE notifications")
            for statement in NOTIFICATIONS_OF_0009:
                tx.execute(statement)
        tx.execute("UPDATE alembic_version SET version_num = ?", (version,))


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_an_older_database_comes_forward_with_its_rows(
    store: Store, tmp_path: Path, database_url: str | None, version: str
) -> None:
    newest = shape(store)
    assert {"runs", "steps", "audit_records", "marks"} <= newest.keys()
    begin_anew(store, version)
    with store.transaction() as tx:
        tx.execute("INSERT INTO audit_chain (id, chain, seq, mac) VALUES (1, ?, 0, ?)", ("chain", "mac"))
    if version in TABLES_OF:
        (tmp_path / "home-id").unlink(missing_ok=True)  # none of those made one
    with contextlib.closing(Store.open(tmp_path, database_url)) as again:
        assert shape(again) == newest
        chain = again.read(lambda tx: tx.execute("SELECT chain FROM audit_chain").fetchone()[0])
        assert chain == "chain"
        again.write_now(setting("a"))


def test_the_notifications_of_an_older_database_stay_and_the_steward_can_have_one(
    store: Store, tmp_path: Path, database_url: str | None
) -> None:
    begin_anew(store, "0009")
    asked = "SELECT notification_id, user_id, text, created_ms, read_ms FROM notifications ORDER BY notification_id"
    rows = [("a", "anna", "You are invited.", 1, None), ("b", "anna", "It is yours.", 2, 3)]
    with store.transaction() as tx:
        tx.execute("INSERT INTO users (user_id, name, created) VALUES ('anna', 'Anna', '2026-11-01')")
        for row in rows:
            tx.execute("INSERT INTO notifications VALUES (?, ?, ?, ?, ?)", row)
    with contextlib.closing(Store.open(tmp_path, database_url)) as again:
        again.write_now(lambda tx: tx.core.execute(notice("c", "steward", "It is eligible.", 4)))
        found = again.read(lambda tx: [tuple(row) for row in tx.execute(asked).fetchall()])
    assert found == [*rows, ("c", "steward", "It is eligible.", 4, None)]


@pytest.mark.parametrize("version", VERSIONS[:-2])  # the newest one added no table
def test_a_look_finds_tables_that_came_later_empty_and_an_older_file_stays_as_it_is(
    tmp_path: Path, version: str
) -> None:
    with contextlib.closing(Store.open(tmp_path)) as store:
        newest = names_in(store)
        begin_anew(store, version)
        older = names_in(store)
    counts = looking(tmp_path, None).read(
        lambda tx: {name: tx.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in newest}
    )
    assert counts == {name: int(name == "alembic_version") for name in newest}
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as file:
        assert {row[0] for row in file.execute(TABLES_SQLITE)} == older != newest


def names_in(store: Store) -> set[str]:
    return {row[0] for row in store.read(lambda tx: tx.execute(TABLES_SQLITE).fetchall())}


def test_a_newer_database_is_refused_and_left_alone(store: Store, tmp_path: Path, database_url: str | None) -> None:
    store.write_now(lambda tx: tx.execute("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew, match="9999"):
        Store.open(tmp_path, database_url)
    assert store.read(lambda tx: tx.execute("SELECT version_num FROM alembic_version").fetchone()[0]) == "9999"


OPENER = """
import sys
from pathlib import Path
from council.storage.marks import SET_MARK
from council.storage.store import Store
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(Path(sys.argv[1]), sys.argv[2] or None)
store.write_now(lambda tx: tx.execute(SET_MARK, (sys.argv[3], "")))
store.close()
"""


def test_processes_that_start_at_once_make_one_database(tmp_path: Path, database_url: str | None) -> None:
    arguments = [sys.executable, "-c", OPENER, str(tmp_path), database_url or ""]
    openers = [
        subprocess.Popen([*arguments, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(5)
    ]
    for process in openers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in openers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in openers:
        process.communicate(timeout=60)
    assert [process.returncode for process in openers] == [0] * 5
    with contextlib.closing(Store.open(tmp_path, database_url)) as store:
        assert names(store) == ["0", "1", "2", "3", "4"]
        assert store.read(lambda tx: tx.execute("SELECT count(*) FROM alembic_version").fetchone()[0]) == 1


def test_who_opens_a_file_that_another_process_locks_for_a_moment_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "_BUSY_TIMEOUT_MS", 1)
    Store.open(tmp_path).close()
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")  # so that the opener has to begin the log
        other.execute("BEGIN EXCLUSIVE")
        with ThreadPoolExecutor() as threads:
            opening = threads.submit(Store.open, tmp_path)
            with pytest.raises(FutureTimeout):
                opening.result(0.3)
            other.execute("COMMIT")
            opening.result(30).close()


def test_a_servers_database_belongs_to_the_home_that_used_it_first(tmp_path: Path, postgres_url: str) -> None:
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        home.mkdir()
    Store.open(homes[0], postgres_url).close()
    with pytest.raises(ConfigError, match="another home"):
        Store.open(homes[1], postgres_url)
    homes[0].rename(tmp_path / "moved")
    Store.open(tmp_path / "moved", postgres_url).close()


def test_a_servers_database_that_was_dropped_or_emptied_is_not_begun_anew_in_silence(
    tmp_path: Path, postgres_url: str
) -> None:
    with contextlib.closing(Store.open(tmp_path, postgres_url)) as store:
        store.write_now(lambda tx: tx.execute("DELETE FROM marks"))
    refused = "dropped or emptied"
    with pytest.raises(ConfigError, match=refused) as emptied:
        Store.open(tmp_path, postgres_url)
    assert ".council/home-id" in emptied.value.fix
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        for asked in (lambda: Store.open(tmp_path, postgres_url), lambda: looking(tmp_path, postgres_url)):
            with pytest.raises(ConfigError, match=refused):
                asked()
        assert connection.execute("SELECT to_regclass('runs')").fetchone() == (None,)
    (tmp_path / "home-id").unlink()
    Store.open(tmp_path, postgres_url).close()


def test_a_look_at_a_new_servers_database_makes_nothing(tmp_path: Path, postgres_url: str) -> None:
    runtime = tmp_path / "not there yet"
    first = looking(runtime, postgres_url)
    assert mark(first, "a") is None
    assert not runtime.exists()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute("SELECT to_regclass('marks')").fetchone() == (None,)
    runtime.mkdir()
    with contextlib.closing(Store.open(runtime, postgres_url)) as store:
        set_mark(store, "a", "1")
        assert (runtime / "home-id").read_text().strip() == mark(store, "home")
    assert (mark(first, "a"), mark(looking(runtime, postgres_url), "a")) == ("1", "1")


def test_a_servers_database_does_not_begin_beside_a_file_with_rows(tmp_path: Path, postgres_url: str) -> None:
    Store.open(tmp_path).close()
    Store.open(tmp_path, postgres_url).close()  # without rows: nothing is left behind
    with contextlib.closing(Store.open(tmp_path)) as store:
        set_mark(store, "a", "1")
    for asked in (lambda: Store.open(tmp_path, postgres_url), lambda: looking(tmp_path, postgres_url)):
        with pytest.raises(ConfigError, match=r"council\.db has the data of this home") as refused:
            asked()
        assert "remove `database_url`" in refused.value.fix
    (tmp_path / "council.db").rename(tmp_path / "kept.db")
    Store.open(tmp_path, postgres_url).close()


def test_of_copied_homes_one_daemon_works_a_servers_database(tmp_path: Path, postgres_url: str) -> None:
    with contextlib.closing(Store.open(tmp_path, postgres_url)) as second:
        with contextlib.closing(Store.open(tmp_path, postgres_url)) as first:
            first.claim()
            with pytest.raises(DaemonRunning, match="another daemon"):
                second.claim()
            end_connections(postgres_url)
            set_mark(first, "a", "1")  # it connects anew, and claims anew
            with pytest.raises(StorageFailed, match="another daemon"):
                set_mark(second, "b", "2")
        set_mark(second, "b", "3")
        assert names(second) == ["a", "b"]


def test_a_sqlite_file_is_claimed_by_the_homes_own_lock(tmp_path: Path) -> None:
    with contextlib.closing(Store.open(tmp_path)) as store:
        store.claim()
        set_mark(store, "a", "1")
        assert names(store) == ["a"]


# ── a PostgreSQL that goes away ──────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_stops_is_a_named_failure_and_the_store_goes_on_when_it_is_back(
    postgres_programs: Path, tmp_path: Path
) -> None:
    with postgres.server(postgres_programs) as server, contextlib.closing(Store.open(tmp_path, server.url)) as store:
        store.write_now(setting("a", "1"))
        assert mark(store, "a") == "1"
        assert store.write_now(lambda tx: tx.core.execute(text("SELECT 1")).scalar()) == 1
        server.stop()
        for _ in range(2):
            with pytest.raises(StorageFailed):
                store.write_now(setting("b", "2"))
            with pytest.raises(StorageFailed):
                mark(store, "a")
        server.start()
        set_mark(store, "c", "3")
        values = "SELECT value FROM marks WHERE name <> 'home' ORDER BY name"
        assert store.write_now(lambda tx: tx.core.execute(text(values)).scalars().all()) == ["1", "3"]
        assert (mark(store, "b"), mark(store, "c")) == (None, "3")


def end_connections(url: str) -> None:
    """As an administrator does, or a firewall."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert ended


def test_a_connection_that_was_lost_between_two_transactions_costs_nobody_anything(
    tmp_path: Path, postgres_url: str
) -> None:
    with contextlib.closing(Store.open(tmp_path, postgres_url)) as store:
        for number in range(3):
            set_mark(store, f"{number}", "1")
            assert mark(store, f"{number}") == "1"
            end_connections(postgres_url)
            assert mark(store, f"{number}") == "1"
        assert names(store) == ["0", "1", "2"]


def test_a_connection_that_is_lost_at_its_commit_is_a_named_failure(tmp_path: Path, postgres_url: str) -> None:
    with contextlib.closing(Store.open(tmp_path, postgres_url)) as store:
        lose_at_commit(store, lambda: set_mark(store, "a", "1"))
        assert mark(store, "a") == "1"  # it was committed, and nobody heard of it
        set_mark(store, "b", "2")
        assert names(store) == ["a", "b"]


def lose_at_commit(store: Store, write: Callable[[], Any]) -> None:
    def lose() -> None:
        driver.shut()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with watched(store) as driver:
        driver.after["COMMIT"] = lose
        with pytest.raises(StorageFailed):
            write()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has these options under these names")
def test_a_server_that_falls_silent_is_given_up_after_half_a_minute_or_as_its_url_says(
    tmp_path: Path, postgres_url: str
) -> None:
    """No test here can cut a cable: what the kernel was told of it is read from the sockets."""

    def told(url: str) -> tuple[int, int, int]:
        asked = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        with (
            contextlib.closing(Store.open(tmp_path, url)) as store,
            watched(store) as driver,
            socket.socket(fileno=os.dup(driver.fileno())) as end,
        ):
            idle, interval, count, unanswered_ms = (end.getsockopt(socket.IPPROTO_TCP, option) for option in asked)
        return idle, idle + interval * count, unanswered_ms

    with by_tcp(postgres_url) as url:
        assert told(url) == (15, 30, 30_000)
        assert told(f"{url}?keepalives_idle=60&tcp_user_timeout=90000") == (60, 75, 90_000)


@contextlib.contextmanager
def by_tcp(url: str) -> Iterator[str]:
    """The URL of a port that hands everything on to the socket of a server."""
    parts = conninfo_to_dict(url)

    class HandOn(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as behind:
                behind.connect(f"{parts['host']}/.s.PGSQL.5432")
                ends = {self.request: behind, behind: self.request}
                while True:
                    for end in select.select(list(ends), [], [], 60)[0]:
                        if not (data := end.recv(65_536)):
                            return
                        ends[end].sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HandOn) as relay:
        relay.daemon_threads = True
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        yield f"postgresql://{parts['user']}@127.0.0.1:{relay.server_address[1]}/{parts['dbname']}"
        relay.shutdown()


def test_a_password_in_a_url_is_never_told(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as caught:
        Store.open(tmp_path, "postgresql://somebody:hunter2hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError) as refused:
        Store.open(tmp_path, "mysql://somebody:hunter2hunter2@127.0.0.1/none")
    assert "hunter2" not in str(refused.value)
