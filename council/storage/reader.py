"""A look into a home's database by who does not hold its lock: nothing is made, mended or brought forward."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from council.errors import ConfigError
from council.storage.drivers import driver_of, require_there, sqlite_failed, sqlite_for_reading
from council.storage.store import Store, Tx, empty_database, snapshot
from council.storage.versions import (
    DATABASE_FILE,
    TABLES_SQLITE,
    VERSIONS,
    await_making,
    database_too_new,
    is_own,
    lend_tables,
)

T = TypeVar("T")


class Looking(Protocol):
    """`Store` and `Reader` have this in common."""

    def read(self, look: Callable[[Tx], T]) -> T:
        """Returns what `look` sees of one state of the database. Raises StorageFailed."""

    def reading(self) -> AbstractContextManager[Tx]:
        """Reads like `read`, for as long as the block takes."""


class Reader:
    """The SQLite file of a home; where there is none, a database without rows. Each look opens and closes it."""

    def __init__(self, runtime: Path) -> None:
        """Raises StorageFailed."""
        self._path = runtime / DATABASE_FILE
        require_there(self._path)

    def read(self, look: Callable[[Tx], T]) -> T:
        with self.reading() as tx:
            return look(tx)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Tx]:
        try:
            with contextlib.closing(self._opened()) as raw, snapshot(raw, is_sqlite=True) as tx:
                yield tx
        except sqlite3.Error as error:
            raise sqlite_failed(error, self._path) from error

    def _opened(self) -> Any:
        """A file without a table: a process makes it in this instant, or died while it did. An older one has empty tables in
        place of those that came later. Raises DatabaseTooNew."""
        if not self._path.exists():
            return empty_database()
        raw = sqlite_for_reading(self._path)
        tables = {row[0] for row in raw.execute(TABLES_SQLITE)}
        if not tables:
            raw.close()
            return empty_database()
        row = raw.execute("SELECT version_num FROM alembic_version").fetchone() if "alembic_version" in tables else None
        if row is not None and row[0] not in VERSIONS:
            raw.close()
            raise database_too_new(row[0])
        if row is not None and row[0] != VERSIONS[-1]:
            lend_tables(raw, tables)
        return raw


def is_older(runtime: Path) -> bool:
    """True when the runs of a home, or its pauses of schedules, still lie in files, as older versions kept them."""
    return (runtime / "runs").is_dir() or (runtime / "schedules").is_dir()


class NotBegun(Reader):
    """A database on a server: without rows until this home has begun it."""

    def __init__(self, store: Store, runtime: Path) -> None:
        self._path = Path(DATABASE_FILE)
        self._store = store
        self._runtime = runtime
        self._begun = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[Tx]:
        self._begun = self._begun or _is_begun(self._store, self._runtime)
        with self._store.reading() if self._begun else super().reading() as tx:
            yield tx

    def _opened(self) -> Any:
        return empty_database()


def looking(runtime: Path, database_url: str | None) -> Looking:
    """Opens a store for a door that only looks. Raises ConfigError, also for a home of an older version, and
    StorageFailed."""
    require_brought_over(runtime)
    if not database_url:
        return Reader(runtime)
    store = Store(driver_of(runtime, database_url))
    return store if _is_begun(store, runtime) else NotBegun(store, runtime)


def _is_begun(store: Store, runtime: Path) -> bool:
    store.read(await_making)
    return store.read(lambda tx: is_own(tx, runtime))


def require_brought_over(runtime: Path) -> None:
    """Raises ConfigError for a home whose database does not hold its runs yet."""
    if is_older(runtime):
        fix = "`council repair` converts them once (so does the next `council run`)"
        raise ConfigError("an older version made this home: some of what it keeps is in files.", fix=fix)
