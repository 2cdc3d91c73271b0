"""Small things that are remembered between two starts, by name: when schedules fired, what a token is, pauses asked for."""

from __future__ import annotations

from council.storage.reader import Looking
from council.storage.store import Store, Tx

MARK = "SELECT value FROM marks WHERE name = ?"
SET_MARK = """INSERT INTO marks (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
DROP_MARK = "DELETE FROM marks WHERE name = ?"
MARKS = "SELECT name, value FROM marks WHERE substr(name, 1, ?) = ?"
DROP_MARKS = "DELETE FROM marks WHERE substr(name, 1, ?) = ?"


def mark(store: Looking, name: str) -> str | None:
    """The text under that name. None when nothing is remembered. Raises StorageFailed."""

    def look(tx: Tx) -> str | None:
        row = tx.execute(MARK, (name,)).fetchone()
        return None if row is None else str(row[0])

    return store.read(look)


def set_mark(store: Store, name: str, value: str | None) -> None:
    """Remembers a text; None removes it. It survives a kill; a power cut may take the last one. Raises StorageFailed."""
    statement, values = (DROP_MARK, (name,)) if value is None else (SET_MARK, (name, value))
    store.write_now(lambda tx: tx.execute(statement, values), durable=False)


def note_mark(store: Store, name: str, value: str) -> None:
    """Remembers like `set_mark`, but waits for nothing: it goes along with what is written next."""
    store.defer(lambda tx: tx.execute(SET_MARK, (name, value)))


def drop_marks(store: Store, beginning: str) -> None:
    """All whose names begin so. As `note_mark`."""
    store.defer(lambda tx: tx.execute(DROP_MARKS, (len(beginning), beginning)))
