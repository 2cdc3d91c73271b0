"""A store's own connection, watched: it notes each statement, and fails where it is told to. And a writer that is held up."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from council.storage.store import Store, Tx


class Driver:
    """Stands before the driver's writing connection of a store."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.statements: list[str] = []
        self.before: dict[str, Callable[[], None]] = {}  # called when a statement begins so
        self.after: dict[str, Callable[[], None]] = {}

    def execute(self, sql: str, values: Sequence[object] = ()) -> Any:
        self.statements.append(sql)
        self._call(self.before, sql)
        cursor = self._raw.execute(sql, values)
        self._call(self.after, sql)
        return cursor

    def count(self, beginning: str) -> int:
        return sum(statement.startswith(beginning) for statement in self.statements)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    @staticmethod
    def _call(told: dict[str, Callable[[], None]], sql: str) -> None:
        for beginning, act in list(told.items()):
            if sql.startswith(beginning):
                act()


@contextmanager
def watched(store: Store) -> Iterator[Driver]:
    """For as long as the block takes, unless the store connects anew."""
    raw = store._raw
    store._raw = driver = Driver(raw)
    try:
        yield driver
    finally:
        if store._raw is driver:
            store._raw = raw


def sqlite_error(code: int) -> Callable[[], None]:
    """Raises what SQLite's driver raises for this code."""

    def fail() -> None:
        error = sqlite3.OperationalError("injected")
        error.sqlite_errorcode = code
        raise error

    return fail


def driver_error(store: Store, code: int = sqlite3.SQLITE_IOERR) -> Callable[[], None]:
    """Raises what the store's driver raises when a statement fails and the connection goes on."""

    def fail() -> None:
        raise psycopg.OperationalError("injected")

    return sqlite_error(code) if store.is_sqlite else fail


class Held:
    """The writer is busy until `release`: what is handed over meanwhile waits together."""

    def __init__(self, store: Store) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()

        def work(tx: Tx) -> None:
            self._begun.set()
            self._go_on.wait(60)

        self.done = store.write(work)
        self._begun.wait(60)

    def release(self) -> None:
        self._go_on.set()
