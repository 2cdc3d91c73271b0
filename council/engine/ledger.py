"""The runs of a home, from the table `runs`: lists of thousands, journals to read, who has not ended."""

from __future__ import annotations

import msgspec

from council.engine import statements as sql
from council.engine.receipts import Receipt
from council.engine.records import Record, RunHeader, RunStatus
from council.engine.run_records import JournalRow, RunRecords, header_of, record_of, rows_of
from council.errors import RunNotFound
from council.ids import STEWARD
from council.storage.reader import Looking
from council.storage.store import Tx
from council.typed_json import decode_json

_ALL = 1 << 60


class RunEntry(msgspec.Struct, frozen=True):
    """A row. `finished`, `artifact` and `error` are empty until there is one. `text_bytes` counts what was recorded.
    `pruned` is a `PruneMark` as JSON, empty while the journal is there. `took_ms` is that of its receipt. `ended_ns` orders
    what ended within one second; None while the run goes on."""

    run_id: str
    status: RunStatus
    type: str
    lane: str
    title: str
    created: str
    finished: str = ""
    file: str = ""
    command_id: str = ""
    artifact: str = ""
    error: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    text_bytes: int = 0
    pruned: str = ""
    ended_ns: int | None = None
    model: str = ""
    tokens_cached: int = 0
    unknown_calls: int = 0
    took_ms: int | None = None


class Ledger:
    """The rows of one home, to be looked at. Everything raises StorageFailed."""

    def __init__(self, store: Looking) -> None:
        self._store = store

    def newest(self, count: int, *, ended_only: bool = False) -> list[RunEntry]:
        """The newest runs, newest first; of ended ones the one that ended last comes first. No control commands."""
        return self._entries(sql.NEWEST_ENDED if ended_only else sql.NEWEST, count)

    def starting_with(self, prefix: str, count: int) -> list[RunEntry]:
        """Runs whose id begins so, oldest first."""
        return self._entries(sql.STARTING_WITH, prefix, prefix + "~", count)

    def since(self, created: str = "") -> list[RunEntry]:
        """Runs admitted at that time (RFC 3339, UTC) or later, in the order of the ids; all without one."""
        return self._entries(sql.SINCE, created)

    def in_lane(self, lane: str) -> list[RunEntry]:
        """The runs of a lane, newest first."""
        return self._entries(sql.IN_LANE, lane)

    def header(self, run_id: str) -> RunHeader:
        """Record 0. Raises RunNotFound without one, JournalDamaged."""
        row = self._store.read(lambda tx: tx.execute(sql.HEADER, (run_id,)).fetchone())
        if row is None:
            raise _no_journal(run_id)
        return header_of(row[1], run_id)

    def of_user(self, user: str, created: str = "") -> list[RunEntry]:
        """Finds like `since`, of the runs that somebody ordered as this user. A pruned run is nobody's."""
        rows = self._store.read(lambda tx: tx.execute(sql.MAYBE_OF_USER, (created, naming(user))).fetchall())
        return [RunEntry(*row[:-1]) for row in rows if _user_of(row[-1]) == user]

    def user_of(self, run_id: str) -> str:
        """The one for whom a run works. Empty for one that is pruned or unknown: it is nobody's."""
        row = self._store.read(lambda tx: tx.execute(sql.HEADER, (run_id,)).fetchone())
        return "" if row is None else _user_of(row[1])

    def ended(self, count: int = _ALL) -> list[RunEntry]:
        """Ended runs that still have their journal, oldest first; all of them, or the first `count`."""
        return self._entries(sql.ENDED, count)

    def kept(self) -> tuple[int, int]:
        """The number of ended runs that still have their journal, and the bytes of all those journals."""
        row = self._store.read(lambda tx: tx.execute(sql.KEPT).fetchone())
        return int(row[0]), int(row[1])

    def bare(self, *, beyond: int, count: int) -> list[str]:
        """Ids of control commands, and of ended runs without journal and command id, the newest `beyond` of them left out."""
        return self._store.read(lambda tx: [row[0] for row in tx.execute(sql.BARE, (count, beyond)).fetchall()])

    def unfinished(self) -> list[str]:
        """Ids of the runs that have not ended, in the order of their admission."""
        return self._store.read(lambda tx: [row[0] for row in tx.execute(sql.UNFINISHED).fetchall()])

    def newest_finish(self) -> str:
        """The time at which the last run was finished (RFC 3339, UTC); empty where none has ended."""
        row = self._store.read(lambda tx: tx.execute(sql.NEWEST_FINISH).fetchone())
        return "" if row is None else str(row[0])

    def first_created(self) -> str:
        """The time at which the first run was admitted (RFC 3339, UTC); empty where there is none."""
        row = self._store.read(lambda tx: tx.execute(sql.FIRST_CREATED).fetchone())
        return "" if row is None else str(row[0])

    def count(self) -> int:
        return int(self._store.read(lambda tx: tx.execute(sql.COUNT).fetchone()[0]))

    def has_journal(self, run_id: str) -> bool:
        return self._store.read(lambda tx: tx.execute(sql.HEADER, (run_id,)).fetchone()) is not None

    def journal(self, run_id: str) -> RunRecords:
        """The run's journal, to be read. Raises RunNotFound without one, JournalDamaged."""
        header, *records = self.records(run_id)
        assert isinstance(header, RunHeader)
        return RunRecords(header, records)

    def records(self, run_id: str) -> list[Record]:
        """Record 0 and all others, in their order. Raises as `journal`."""

        def look(tx: Tx) -> tuple[str, list[tuple[int, JournalRow]]] | None:
            found = tx.execute(sql.HEADER, (run_id,)).fetchone()
            return None if found is None else (found[1], rows_of(tx, found[0]))

        found = self._store.read(look)
        if found is None:
            raise _no_journal(run_id)
        return [header_of(found[0], run_id), *(record_of(row, run_id) for _, row in found[1])]

    def _entries(self, statement: str, *values: object) -> list[RunEntry]:
        rows = self._store.read(lambda tx: tx.execute(statement, values).fetchall())
        return [RunEntry(*row) for row in rows]


def naming(user: str) -> str:
    """The pattern of every record 0 that may be of this person's command."""
    return '%"user":null%' if user == STEWARD.id else f'%"user":"{user}"%'


def _user_of(header: str) -> str:
    return decode_json(header)["command"].get("user") or STEWARD.id


def _no_journal(run_id: str) -> RunNotFound:
    return RunNotFound(f"the run {run_id!r} has no journal here.", fix="`council runs` lists all runs")


def entry_of(tx: Tx, run_id: str) -> RunEntry:
    """The row of a run that there is."""
    return RunEntry(*tx.execute(sql.STARTING_WITH, (run_id, run_id + "~", 1)).fetchone())


def end_of(receipt: Receipt, *, text_bytes: int, ended_ns: int) -> tuple[object, ...]:
    """The values of the statement END, in their order."""
    return (
        receipt.status,
        receipt.title,
        receipt.finished,
        receipt.artifact.path if receipt.artifact else "",
        receipt.error.code if receipt.error else "",
        receipt.calls,
        receipt.tokens.input,
        receipt.tokens.output,
        receipt.tokens.cached,
        receipt.tokens.unknown_calls,
        receipt.cost_usd,
        receipt.model,
        receipt.took_ms,
        text_bytes,
        msgspec.json.encode(receipt).decode(),
        ended_ns,
        receipt.run_id,
    )
