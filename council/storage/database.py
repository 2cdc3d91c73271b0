"""The database of a home: SQLAlchemy Core over SQLite (`.council/council.db`) or, by `database_url`, PostgreSQL.

Import this module only where a database is used: it loads SQLAlchemy. Every room declares its tables on `metadata`; who
opens a database names those rooms. A new database is made from the tables as they are; an older one is brought forward by
Alembic's migrations, under the database's own write lock; a newer one is refused. No mapped classes, no sessions.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from council.errors import ConfigError, StorageFailed
from council.storage.database_version import DATABASE_FILE, VERSIONS, database_too_new

BUSY_TIMEOUT_S = 5.0  # how long a write waits for another process's
CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 10.0
_POOL_SIZE = 2
_STATEMENT_TIMEOUT_MS = 60_000
_BEGIN = "council_begin"  # an execution option: how a transaction of SQLite begins
_MIGRATION_LOCK = 0x636F756E63696C  # "council": the number of PostgreSQL's advisory lock
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=_NAMES)
_version = Table(  # as Alembic itself makes it
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def url_of(database_url: str | None, runtime: Path) -> URL:
    """Where the database is: PostgreSQL by `database_url`, else SQLite in the home's run-time folder. Raises ConfigError."""
    if not database_url:
        return URL.create("sqlite+pysqlite", database=str(runtime / DATABASE_FILE))
    try:
        url = make_url(database_url.replace("postgres://", "postgresql://", 1))
    except ArgumentError:
        raise _not_postgres() from None
    if url.get_backend_name() != "postgresql":
        raise _not_postgres()
    return url.set(drivername="postgresql+psycopg")


def _not_postgres() -> ConfigError:
    return ConfigError(
        "`database_url` is no address of a PostgreSQL database.",
        fix="write postgresql://user@host/name; leave it out for SQLite in the home",
    )


class Database:
    """An open database of the newest version. Safe to use from several threads; `close` once."""

    def __init__(self, url: URL, engine: Engine) -> None:
        self.url = url
        self._engine = engine

    @classmethod
    def open(cls, url: URL) -> Database:
        """Makes a new database, brings an older one forward. Raises ConfigError (`database_too_new`, or nobody answers at
        `database_url`), StorageFailed."""
        database = cls(url, _engine(url))
        try:
            if url.get_backend_name() == "sqlite":
                _make_private(Path(str(url.database)))
            with database.begin() as connection:
                _bring_forward(connection)
        except BaseException:
            database.close()
            raise
        return database

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """One writing transaction: committed when the block ends, rolled back when it raises. In SQLite it holds the write
        lock from its beginning, so that what it reads cannot change under it. Raises StorageFailed."""
        with self._failing(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and sees one state of the database from its beginning to its end. Raises
        StorageFailed."""
        with self._failing(), self._engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    def sweep(self) -> None:
        """What rows held before they were changed stands in no free page and no log of the file any more. PostgreSQL does
        that by itself, in its own time. Raises StorageFailed, also while another process reads."""
        if not self.is_sqlite:
            return
        with self._failing():
            raw = self._engine.raw_connection()
            try:
                raw.driver_connection.execute("VACUUM")  # type: ignore[union-attr]
                busy = raw.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]  # type: ignore[union-attr]
            except sqlite3.Error as error:
                raise StorageFailed(f"the database cannot be swept: {error}.", fix="try again") from error
            finally:
                raw.close()
        if busy:
            raise StorageFailed(
                "the database is being read, so what it said cannot be removed now.",
                fix=f"end what reads .council/{DATABASE_FILE}; it is tried again",
            )

    def close(self) -> None:
        self._engine.dispose()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            raise self._failed(error) from error
        except SQLAlchemyError as error:  # its text may hold what was to be written
            raise StorageFailed(
                f"the database refused what it was asked ({type(error).__name__}).", fix="report it, with the log"
            ) from error

    def _failed(self, error: SQLAlchemyError) -> StorageFailed:
        """Without the statement and its values: they may be anybody's words."""
        where = f".council/{DATABASE_FILE}" if self.is_sqlite else self.url.render_as_string(hide_password=True)
        cause = getattr(error, "orig", None)
        if isinstance(cause, sqlite3.OperationalError):
            reason = str(cause)
            locked = cause.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            fix = "end what writes to it" if locked else "make room on the disk, and give this user access to .council/"
        elif isinstance(cause, sqlite3.DatabaseError):
            reason, fix = str(cause), f"restore {DATABASE_FILE} from a backup"
        else:
            reason = (str(cause).strip().splitlines() or [type(error).__name__])[0][:300]
            fix = "check that the server runs, and what `database_url` says"
        return StorageFailed(f"the database {where} does not take this: {reason}.", fix=fix)


def _engine(url: URL) -> Engine:
    pool: dict[str, Any] = {"pool_size": _POOL_SIZE, "max_overflow": 4, "pool_timeout": _POOL_TIMEOUT_S}
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None}, **pool)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    options = f"-c statement_timeout={_STATEMENT_TIMEOUT_MS} -c lock_timeout={_STATEMENT_TIMEOUT_MS}"
    arguments = {"connect_timeout": CONNECT_TIMEOUT_S, "options": options, "application_name": "council"}
    return create_engine(url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True, **pool)


def _prepare_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """The driver's own transactions begin late, and leave DDL outside."""
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def _make_private(path: Path) -> None:
    """For its owner only, before SQLite makes it: the files beside it take its mode. Raises StorageFailed."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StorageFailed(
            f"cannot open {path}: {error.strerror}.", fix="give this user access to .council/"
        ) from error


def _bring_forward(connection: Connection) -> None:
    """In one transaction that holds the write lock: two processes that start at once make one database."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    version = _version_of(connection)
    newest = VERSIONS[-1]
    if version == newest:
        return
    if version is None:
        metadata.create_all(connection)
        _version.create(connection)
        connection.execute(_version.insert().values(version_num=newest))
        return
    if version not in VERSIONS:
        raise database_too_new(version)
    from council.storage.migrations import upgrade

    upgrade(connection)


def _version_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_version.name):
        return None
    return connection.execute(select(_version.c.version_num)).scalar()
