"""The run ledger: one row per run, for lists of thousands. An index, not the truth: `rebuild` makes it again.

SQLite from the standard library, without syncs: what a crash costs here is found again in journals and receipts.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from council.engine.folders import never_began
from council.engine.journal import FileJournal
from council.engine.receipts import Receipt, Receipts
from council.engine.records import RunHeader, RunStatus
from council.errors import JournalDamaged, StorageFailed

log = logging.getLogger(__name__)

_SCHEMA_VERSION = 3
_OPEN_PATIENCE_S = 5.0
_WRITE_PATIENCE_MS = 50  # in which all runs stand still
_UNLOCK = "end what writes to .council/ledger.sqlite, then try again"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, status TEXT NOT NULL, type TEXT NOT NULL, lane TEXT NOT NULL, title TEXT NOT NULL,
    created TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '', file TEXT NOT NULL, command_id TEXT NOT NULL DEFAULT '',
    artifact TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', calls INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0, cost_usd REAL,
    bytes INTEGER NOT NULL DEFAULT 0, pruned INTEGER NOT NULL DEFAULT 0, ended_ns INTEGER NOT NULL DEFAULT 0,
    model TEXT NOT NULL DEFAULT '', tokens_cached INTEGER NOT NULL DEFAULT 0, unknown_calls INTEGER NOT NULL DEFAULT 0,
    took_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_end ON runs (ended_ns);
"""
_COLUMNS = (
    "run_id", "status", "type", "lane", "title", "created", "finished", "file", "command_id", "artifact", "error", "calls",
    "tokens_in", "tokens_out", "cost_usd", "bytes", "pruned", "ended_ns", "model", "tokens_cached", "unknown_calls", "took_ms",
)  # fmt: skip


class Entry(msgspec.Struct, frozen=True):
    """A row. `finished`, `artifact` and `error` are empty until there is one; `bytes` is the run folder's size at its end;
    `pruned`: the run has no folder (any more); `took_ms` as in its receipt; `ended_ns` orders what ended within one second,
    0 while the run goes on."""

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
    bytes: int = 0
    pruned: int = 0
    ended_ns: int = 0
    model: str = ""
    tokens_cached: int = 0
    unknown_calls: int = 0
    took_ms: int | None = None


class Ledger:
    """The rows of one home. A damaged file is moved aside and a new one begun: the next start, or `council repair`, fills
    it again. What it does not take because another process has it locked comes with the next row, or is found again at the
    next start: nobody waits for an index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """`read_only`: for who does not hold the home's lock. Nothing is mended then. Raises StorageFailed."""
        self._path = path
        self._damaged = path.with_name(f"{path.name}.damaged")
        self._columns: tuple[str, ...] = _COLUMNS
        self._behind = path.with_name(f"{path.name}.behind")  # there while rows are missing
        self._is_behind = False
        self._late: dict[str, Entry] = {}
        if read_only:
            with self._failing("read"):
                self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
                there = {row[1] for row in self._db.execute("PRAGMA table_info(runs)")}
            # One that an older version wrote lacks some; the next start builds it anew.
            self._columns = tuple(column for column in _COLUMNS if column in there) or _COLUMNS
            return
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._begin_anew()

    def _opened(self) -> sqlite3.Connection:
        db = None
        try:
            db = sqlite3.connect(self._path, timeout=_OPEN_PATIENCE_S, isolation_level=None)
            _prepare(db)
            db.execute(f"PRAGMA busy_timeout = {_WRITE_PATIENCE_MS}")
        except sqlite3.Error as error:
            if db is not None:
                db.close()  # at once: later it would take away the -wal of the file that comes in its place
            if isinstance(error, sqlite3.OperationalError):
                fix = _UNLOCK if _is_locked(error) else "make room on the disk"
                raise StorageFailed(f"cannot open the run ledger: {error}.", fix=fix) from error
            raise
        return db

    def _begin_anew(self) -> None:
        log.error("the run ledger was damaged and is begun anew; the next start fills it again")
        for ending in ("-wal", "-shm"):  # they belong to the damaged file: SQLite would apply them to the new one
            self._path.with_name(f"{self._path.name}{ending}").unlink(missing_ok=True)
        self._path.replace(self._damaged)
        self._db = self._opened()

    @property
    def is_incomplete(self) -> bool:
        """True when it was begun anew, and not filled since. A file that cannot be read through is begun anew by this.
        Raises StorageFailed."""
        if self._damaged.exists() or self._behind.exists():
            return True
        if not self.flaw():
            return self.count() == 0
        self._db.close()
        self._begin_anew()
        return True

    def flaw(self) -> str:
        """What is wrong with the file itself, empty when nothing is. Raises StorageFailed when it cannot be looked at."""
        with self._failing("read"):
            try:
                said = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                return str(error)
        return "" if said == "ok" else str(said)

    def put(self, entry: Entry) -> None:
        """Raises StorageFailed."""
        self._late[entry.run_id] = entry
        with self._failing("write"):
            try:
                self._insert_late()
            except sqlite3.OperationalError as error:
                if not _is_locked(error):
                    self._late.clear()
                    raise
                if not self._is_behind:
                    log.warning("the run ledger is locked by another process; its rows come later")
                    self._behind.touch()
                    self._is_behind = True

    def _insert_late(self) -> None:
        if not self._late:
            return
        try:
            self._insert_all()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._db.close()
            self._begin_anew()
            self._insert_all()
        self._late.clear()
        if self._is_behind:
            self._behind.unlink(missing_ok=True)
            self._is_behind = False

    def _insert_all(self) -> None:
        for entry in self._late.values():
            self._insert(entry)

    def _insert(self, entry: Entry) -> None:
        marks = ", ".join("?" * len(_COLUMNS))
        self._db.execute(
            f"INSERT OR REPLACE INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})",  # noqa: S608  our own names
            [getattr(entry, column) for column in _COLUMNS],
        )

    def newest(self, count: int, *, ended_only: bool = False) -> list[Entry]:
        """The newest runs, newest first; of ended ones the one that ended last comes first."""
        order = "WHERE ended_ns > 0 ORDER BY ended_ns DESC, run_id DESC" if ended_only else "ORDER BY run_id DESC"
        return self._select(f"{order} LIMIT ?", count)

    def starting_with(self, prefix: str, count: int) -> list[Entry]:
        """Runs whose id begins so, oldest first."""
        return self._select("WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT ?", prefix, prefix + "~", count)

    def all(self) -> list[Entry]:
        """Every row, in the order of the ids."""
        return self._select("ORDER BY run_id")

    def since(self, created: str) -> list[Entry]:
        """Rows of what was admitted at that time (RFC 3339, UTC) or later, in the order of the ids; "" for all."""
        return self._select("WHERE created >= ? ORDER BY run_id", created)

    @property
    def is_outdated(self) -> bool:
        """Opened to read, it was written by an older version and lacks columns."""
        return self._columns != _COLUMNS

    def ended(self, count: int = -1) -> list[Entry]:
        """Ended runs that still have their folder, oldest first; all of them, or the first `count`."""
        return self._select("WHERE ended_ns > 0 AND pruned = 0 ORDER BY ended_ns, run_id LIMIT ?", count)

    def kept(self) -> tuple[int, int]:
        """How many ended runs still have their folder, and how many bytes all those folders hold."""
        with self._failing("read"):
            row = self._db.execute(
                "SELECT count(*), coalesce(sum(bytes), 0) FROM runs WHERE ended_ns > 0 AND pruned = 0"
            ).fetchone()
        return int(row[0]), int(row[1])

    def bare(self, *, beyond: int, count: int) -> list[str]:
        """Ids of ended runs without folder and without a command id, the newest `beyond` of them left out."""
        clause = "WHERE ended_ns > 0 AND pruned = 1 AND command_id = '' ORDER BY ended_ns DESC, run_id DESC"
        return [entry.run_id for entry in self._select(f"{clause} LIMIT ? OFFSET ?", count, beyond)]

    def ended_ids(self) -> set[str]:
        """Of all runs that ended, pruned or not. Raises StorageFailed."""
        with self._failing("read"):
            return {row[0] for row in self._db.execute("SELECT run_id FROM runs WHERE ended_ns > 0")}

    def count(self) -> int:
        with self._failing("read"):
            return int(self._db.execute("SELECT count(*) FROM runs").fetchone()[0])

    def mark_pruned(self, run_id: str) -> None:
        with self._failing("write"):
            self._insert_late()
            self._db.execute("UPDATE runs SET pruned = 1, bytes = 0 WHERE run_id = ?", (run_id,))

    def remove(self, run_id: str) -> None:
        with self._failing("write"):
            self._insert_late()
            self._db.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def rebuild(self, entries: Iterable[Entry]) -> int:
        """Replaces everything by `entries`; how many there are."""
        found = list(entries)
        with self._failing("write"):
            try:
                self._replace_all(found)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._db.close()
                self._begin_anew()
                self._replace_all(found)
        self._damaged.unlink(missing_ok=True)
        self._late.clear()
        self._behind.unlink(missing_ok=True)
        return len(found)

    def _replace_all(self, entries: list[Entry]) -> None:
        try:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM runs")
            for entry in entries:
                self._insert(entry)
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def change_texts(self, change: Callable[[str], str], move: Callable[[str], str]) -> None:
        """Applies `change` to titles and names in all rows, `move` to paths; an id that it would change goes. What they
        said before is in no free page of the file or its log either. Raises StorageFailed, also while another process
        reads."""
        columns = {"title": "changed", "file": "changed", "command_id": "kept", "artifact": "moved"}
        with self._failing("write"):
            self._insert_late()
            self._db.create_function("changed", 1, change)
            self._db.create_function("kept", 1, lambda value: value if change(value) == value else "")
            self._db.create_function("moved", 1, move)
            sets = ", ".join(f"{column} = {function}({column})" for column, function in columns.items())
            where = " OR ".join(f"{function}({column}) != {column}" for column, function in columns.items())
            self._db.execute(f"UPDATE runs SET {sets} WHERE {where}")  # noqa: S608  our own names
            self._db.execute("VACUUM")
            busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StorageFailed(
                "the run ledger is being read, so what it said cannot be removed now.",
                fix="end what reads .council/ledger.sqlite; it is tried again",
            )

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # then the next start finds them again
            self._insert_late()
        self._db.close()

    def _select(self, clause: str, *values: object) -> list[Entry]:
        with self._failing("read"):
            rows = self._db.execute(f"SELECT {', '.join(self._columns)} FROM runs {clause}", values).fetchall()  # noqa: S608  our own clauses
        try:
            return [msgspec.convert(dict(zip(self._columns, row, strict=True)), Entry) for row in rows]
        except msgspec.ValidationError as error:
            raise _damaged(error) from error

    @contextlib.contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _is_damage(error):
                raise _damaged(error) from error
            fix = _UNLOCK if _is_locked(error) else "make room on the disk, and give this user access to .council/"
            raise StorageFailed(f"cannot {what} the run ledger: {error}.", fix=fix) from error


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")
    if db.execute("PRAGMA user_version").fetchone()[0] not in (0, _SCHEMA_VERSION):
        db.execute("DROP TABLE IF EXISTS runs")
    db.executescript(_SCHEMA)
    db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")


def _is_locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_damage(error: sqlite3.Error) -> bool:
    """SQLITE_CORRUPT and SQLITE_NOTADB are the two that have no class of their own."""
    return type(error) is sqlite3.DatabaseError


def _damaged(error: Exception) -> StorageFailed:
    fix = "`council repair` builds it anew from receipts and journals"
    return StorageFailed(f"the run ledger is damaged: {error}.", fix=fix)


def entry_of_header(header: RunHeader, status: RunStatus) -> Entry:
    """The row of a run that has not ended."""
    return Entry(
        run_id=header.run_id,
        status=status,
        type=header.type,
        lane=header.lane,
        title=header.title,
        created=header.created,
        file=header.file.name,
        command_id=header.command.get("id") or "",
    )


def entry_of_receipt(receipt: Receipt, *, folder: Path, ended_ns: int) -> Entry:
    """The row of an ended run."""
    return Entry(
        run_id=receipt.run_id,
        status=receipt.status,
        type=receipt.type,
        lane=receipt.lane,
        title=receipt.title,
        created=receipt.created,
        finished=receipt.finished,
        file=receipt.command_file.name,
        command_id=receipt.id or "",
        artifact=receipt.artifact.path if receipt.artifact else "",
        error=receipt.error.code if receipt.error else "",
        calls=receipt.calls,
        tokens_in=receipt.tokens.input,
        tokens_out=receipt.tokens.output,
        cost_usd=receipt.cost_usd,
        bytes=folder_bytes(folder),
        pruned=0 if folder.is_dir() else 1,
        ended_ns=ended_ns,
        model=receipt.model,
        tokens_cached=receipt.tokens.cached,
        unknown_calls=receipt.tokens.unknown_calls,
        took_ms=receipt.took_ms,
    )


def folder_bytes(folder: Path) -> int:
    """The size of all files below `folder`; 0 when there is none."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def found_on_disk(runs: Path, active: Path, receipts: Receipts) -> Iterator[Entry]:
    """Every run of a home, from its receipts, journals and markers alone; not what a start removes because it never began."""
    seen = set()
    for run_id in receipts.run_ids():
        receipt = receipts.read(run_id)
        if receipt is not None:
            seen.add(run_id)
            folder = runs / run_id
            yield entry_of_receipt(receipt, folder=folder, ended_ns=receipts.written_ns(run_id))
    for folder in sorted(runs.iterdir()):
        if folder.name in seen or folder.name.startswith(".") or not (folder / "journal.jsonl").exists():
            continue
        with contextlib.suppress(JournalDamaged, StorageFailed):
            journal = FileJournal.read(folder / "journal.jsonl")
            if (active / folder.name).exists() or not never_began(journal):
                yield entry_of_header(journal.header, "queued")
