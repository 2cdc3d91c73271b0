"""The versions of the database that this program knows. Makes a new one, and brings an older one forward."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.errors import ConfigError, DatabaseTooNew
from council.storage.files import write_atomic

if TYPE_CHECKING:
    from council.storage.store import Tx

DATABASE_FILE = "council.db"
HOME_FILE = "home-id"  # which home a database on a server belongs to
_MIGRATION_LOCK = 0x636F756E63696C  # "council": the number of PostgreSQL's advisory lock
# Oldest first. Each added tables and views. One that changes a table brings its statements to `bring_forward`.
VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
TABLES_SQLITE = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
_TABLES_POSTGRES = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"  # and views
NOW_MS = "CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT)"  # PostgreSQL's word for the present moment
_TELL = "INSERT INTO notifications (notification_id, user_id, text, created_ms, read_ms) VALUES (?, ?, ?, ?, ?)"
_IN_SQLITE = {  # SQLite's words for those of PostgreSQL in `schema.sql`
    "BYTEA": "BLOB",
    "BIGSERIAL": "INTEGER",  # SQLite numbers rows itself only in a column of this very type
    ' COLLATE "C"': "",  # SQLite compares byte by byte anyway
    NOW_MS: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}
_TABLE = re.compile(r"^CREATE (?:TABLE|VIEW|(?:UNIQUE )?INDEX \w+ ON) (\w+)", re.MULTILINE)
_LENT = re.compile(r"^CREATE (TABLE|VIEW)", re.MULTILINE)  # an empty table needs no index


def database_too_new(version: str) -> DatabaseTooNew:
    return DatabaseTooNew(
        f"the database has version {version[:32]}; this program knows versions up to {VERSIONS[-1]}.",
        fix="use the version of Council that wrote it, or a newer one; nothing was changed",
        version=version,
    )


def await_making(tx: Tx) -> None:
    """Waits for who makes the tables or the home's file: until its commit, neither fits the other."""
    tx.alone(_MIGRATION_LOCK)


def bring_forward(tx: Tx) -> None:
    """Brings the tables forward in one transaction with the write lock: two processes make one database."""
    await_making(tx)
    version = version_of(tx)
    if version == VERSIONS[-1]:
        return
    there: set[str] = set()
    if version is not None:
        if version not in VERSIONS:
            raise database_too_new(version)
        there = {row[0] for row in tx.execute(TABLES_SQLITE if tx.is_sqlite else _TABLES_POSTGRES).fetchall()}
        tx.execute("DELETE FROM alembic_version")
    told: list[Sequence[Any]] = []
    if "notifications" in there and version in VERSIONS[:9]:  # they referred to `users`, where the steward is no row
        told = tx.execute("SELECT notification_id, user_id, text, created_ms, read_ms FROM notifications").fetchall()
        tx.execute("DROP TABLE notifications")
        there.remove("notifications")
    for statement in _lacking(there, is_sqlite=tx.is_sqlite):
        tx.execute(statement)
    for row in told:
        tx.execute(_TELL, tuple(row))


def lend_tables(raw: sqlite3.Connection, there: Collection[str]) -> None:
    """Lends an older database what it lacks beside the tables and views that are `there`: empty, for this connection alone."""
    for statement in _lacking(there, is_sqlite=True):
        if lent := _LENT.search(statement):
            raw.execute(f"CREATE TEMP {statement[lent.start(1) :]}")


def _lacking(there: Collection[str], *, is_sqlite: bool) -> Iterator[str]:
    for statement in schema_of(is_sqlite=is_sqlite):
        made = _TABLE.search(statement)
        if made is None or made[1] not in there:
            yield statement


def is_own(tx: Tx, runtime: Path) -> bool:
    """False for a server's database that nobody has used, where this home has used none either. It belongs to the home that
    used it first. Raises ConfigError, also for one that was emptied, and DatabaseTooNew."""
    path = runtime / HOME_FILE
    known = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    version = version_of(tx)
    if version is not None and version not in VERSIONS:
        raise database_too_new(version)
    if version in VERSIONS[:-1]:
        fix = "`council repair` upgrades it"
        raise ConfigError("the database at `database_url` was made by an older version.", fix=fix)
    row = tx.execute("SELECT value FROM marks WHERE name = 'home'").fetchone() if version is not None else None
    if row is not None and row[0] != known:
        fix = f"create a database for this home; if you moved the home, .council/{HOME_FILE} must move with it"
        raise ConfigError("the database at `database_url` belongs to another home.", fix=fix)
    if row is None and known:
        message = "the database at `database_url` no longer contains this home: it was dropped or emptied."
        fix = f"restore it with the server's own tools; to start empty, remove .council/{HOME_FILE}"
        raise ConfigError(message, fix=fix)
    return row is not None


def make_own(tx: Tx, runtime: Path) -> None:
    """A server's database of the newest version belongs to this home from now on. Raises as `is_own`, StorageFailed."""
    await_making(tx)
    if not is_own(tx, runtime):
        known = secrets.token_hex(16)
        tx.execute("INSERT INTO marks (name, value) VALUES ('home', ?)", (known,))
        write_atomic(runtime / HOME_FILE, f"{known}\n".encode())


def schema_of(*, is_sqlite: bool) -> list[str]:
    """The statements that make a new database."""
    text = (files("council.storage") / "schema.sql").read_text(encoding="utf-8")
    for word, in_sqlite in _IN_SQLITE.items() if is_sqlite else ():
        text = text.replace(word, in_sqlite)
    return [statement for statement in text.split(";\n") if statement.strip()]


def version_of(tx: Tx) -> str | None:
    """The version of a database. None for one without tables of ours."""
    there = (
        "SELECT 1 FROM sqlite_master WHERE name = ?" if tx.is_sqlite else "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
    )
    if tx.execute(there, ("alembic_version",)).fetchone() is None:
        return None
    row = tx.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])
