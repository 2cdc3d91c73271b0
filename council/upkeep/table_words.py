"""The rows of every room's tables, by what the tables themselves say (`storage.tables`): words are found and changed, rows
let go of with their run. `rooms` are the modules that declare them (`Core.tables`). Loads SQLAlchemy: import it late.

A `sealed` table is not touched: hashes stand on its words, so its own room changes them (`traces`, the audit).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, delete, inspect, select, true, update

from council.engine.journal_rewriting import Change, changed_words
from council.storage.store import Store, Tx
from council.storage.tables import GOES_WITH_RUN, SEALED, JsonWords, metadata, words_of
from council.upkeep.text_files import changed_text

_AT_ONCE = 100  # rows in one transaction: others write in between


def change_words(store: Store, rooms: Iterable[str], change: Change, *, run_id: str | None = None) -> int:
    """Changes the words of all rows, or of those that name a run in their column `run_id`. They are looked for beside who
    writes, and changed some at a time. The number of rows changed. Raises StorageFailed."""
    with store.reading() as tx:
        found = [(table, key) for table, key, _ in _changes(tx, rooms, change, run_id)]

    def write(tx: Tx, some: Sequence[tuple[Table, dict[str, Any]]]) -> None:
        for table, key in some:
            is_it = and_(*(column == key[column.name] for column in table.primary_key))
            for _, values in _changes_in(tx, table, change, is_it):  # as it is now
                tx.core.execute(update(table).where(is_it), values)

    for first in range(0, len(found), _AT_ONCE):
        store.write_now(partial(write, some=found[first : first + _AT_ONCE]))
    return len(found)


def count_words(tx: Tx, rooms: Iterable[str], change: Change, *, run_id: str | None = None) -> int:
    """The number of rows that `change_words` would change."""
    return sum(1 for _ in _changes(tx, rooms, change, run_id))


def words_of_run(tx: Tx, rooms: Iterable[str], run_id: str) -> Iterator[str | bytes]:
    """The words of all rows that name the run, as the file has them: those that `change_words` and `drop_rows` reach."""
    for table in _tables(tx, rooms):
        words = ", ".join(f'"{column.name}"' for column in words_of(table))
        if not table.info.get(SEALED) and words and "run_id" in table.c:
            for row in tx.execute(f'SELECT {words} FROM "{table.name}" WHERE run_id = ?', (run_id,)):  # noqa: S608  our names
                yield from (value for value in row if isinstance(value, str | bytes))


def drop_rows(tx: Tx, rooms: Iterable[str], run_id: str) -> None:
    """Deletes the rows that go with the journal of a run."""
    for table in _tables(tx, rooms):
        if table.info.get(GOES_WITH_RUN):
            tx.core.execute(delete(table).where(table.c.run_id == run_id))


def _changes(
    tx: Tx, rooms: Iterable[str], change: Change, run_id: str | None
) -> Iterator[tuple[Table, dict[str, Any], dict[str, Any]]]:
    for table in _tables(tx, rooms):
        if table.info.get(SEALED) or not words_of(table) or (run_id is not None and "run_id" not in table.c):
            continue
        for key, values in _changes_in(tx, table, change, true() if run_id is None else table.c.run_id == run_id):
            yield table, key, values


def _changes_in(
    tx: Tx, table: Table, change: Change, where: ColumnElement[bool]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The keys of rows, and what is changed in each."""
    words = words_of(table)
    rows = select(*table.primary_key, *(column for column in words if not column.primary_key)).where(where)
    for row in tx.core.execute(rows).mappings():
        values = {}
        for column in words:
            value = row[column.name]
            if isinstance(column.type, JsonWords):
                told = json.loads(value)
                after = changed_words(told, change)
                after = value if after == told else json.dumps(after, ensure_ascii=False)
            else:
                after = changed_text(value, change) if isinstance(value, bytes) else changed_words(value, change)
            if after != value:
                values[column.name] = after
        if values:
            yield {column.name: row[column.name] for column in table.primary_key}, values


def _tables(tx: Tx, rooms: Iterable[str]) -> list[Table]:
    """Those that the database has: a system may make its own with its first row."""
    for room in rooms:
        import_module(room)
    there = set(inspect(tx.core).get_table_names())
    return [table for table in metadata.sorted_tables if table.name in there]
