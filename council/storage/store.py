"""The one store of a home: a database with one writer and group commit. SQLite in WAL mode, or PostgreSQL.

`write` hands a job to the writer's thread, `write_now` waits for one, `read` looks. What waits together is one transaction
and one sync. A job that fails by itself undoes itself alone; a transaction that fails undoes all of its jobs. Statements are
SQL text in the common part of both dialects, with `?` for values. `Tx.core` gives SQLAlchemy a place in the same
transaction, and loads it; nothing else here does.

A lock is tried again, and a connection that was lost before a transaction began. StorageFailed says that nothing of the job is
there, but for a connection to PostgreSQL that was lost at the commit itself. Then the row may be there, and who writes again
looks for it first. SQLite leaves a transaction whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from council.errors import DaemonRunning, StorageFailed
from council.storage.drivers import (
    LOG_BYTES,
    MAX_LOG_BYTES,
    LookingConnection,
    MemoryDriver,
    PostgresDriver,
    SqliteDriver,
    driver_of,
    is_damage,
    is_io_error,
    is_locked,
    sqlite_failed,
    sqlite_for_reading,
)
from council.storage.files import try_flock
from council.storage.versions import DATABASE_FILE, bring_forward, make_own, schema_of

if TYPE_CHECKING:
    import asyncio

    from sqlalchemy import Connection

    from council.redaction import Redactor

log = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_TRIES = 3  # SQLite's lock is not fair: a process that hammers may win several times
_MOST_WAITING = 10_000  # records in one batch, for deferred ones to be kept while the database takes none
_LONE = 16  # after so many batches of a single job nobody is likely to join the next
_LOCK_PATIENCE_S = 6.0  # for another process that writes, or moves the log into the file
_LOCK_PAUSE_S = 0.001
_INTERRUPT_S = 0.05
_DEFERRED_S = 0.25  # what was deferred is written after so long, if nothing else is
_DAEMON_LOCK = 0x6461656D6F6E  # "daemon": PostgreSQL's advisory lock of the one who works the runs
_VACUUM_PAGES = 256  # given back to the file system at a time


class Tx:
    """A transaction under way. `execute` is the driver's, with `?` for values in both dialects."""

    def __init__(self, raw: Any, core: Callable[[], Connection], *, is_sqlite: bool) -> None:
        self._raw = raw
        self._core = core
        self.is_sqlite = is_sqlite

    def execute(self, sql: str, values: Sequence[object] = ()) -> Any:
        """The driver's cursor."""
        return self._raw.execute(sql if self.is_sqlite else sql.replace("?", "%s"), values)

    @property
    def core(self) -> Connection:
        """SQLAlchemy's view of this transaction. It neither begins nor ends it."""
        return self._core()

    def alone(self, name: int) -> None:
        """Only one process at a time goes on from here, until the transaction ends. SQLite has one writer anyway."""
        if not self.is_sqlite:
            self._raw.execute("SELECT pg_advisory_xact_lock(%s)", (name,))


@dataclass
class _Job(Generic[T]):
    """`then` is called in the loop's thread when the job is committed, also where nobody waits any more."""

    work: Callable[[Tx], T]
    durable: bool
    deferred: bool = False
    then: Callable[[T], None] | None = None
    future: asyncio.Future[T] | None = None
    result: T | None = None
    error: BaseException | None = None


class Store:
    """An open database of the newest version. Safe to use from several threads; `close` once."""

    def __init__(self, driver: SqliteDriver | PostgresDriver, redactor: Redactor | None = None) -> None:
        self._driver = driver
        self._redactor = redactor
        self._lock = threading.RLock()  # of the writing connection
        self._raw: Any = driver.writer()
        self._core: Any = None
        self._reader: Any = None
        self._read_lock = threading.Lock()
        self._queue: list[_Job[Any]] = []
        self._changed = threading.Condition()
        self._wanted = False
        self._dozing = False  # the writer's thread looks again by itself, soon
        self._closing = False
        self._thread: threading.Thread | None = None
        self._durable = True
        self._lone = 0  # batches in a row in which one job alone was not deferred
        self._claimed = False
        self.damage: StorageFailed | None = None  # met in the file: nothing but a restore mends it

    @classmethod
    def open(cls, runtime: Path, database_url: str | None = None, redactor: Redactor | None = None) -> Store:
        """Makes a new database, brings an older one forward. `redactor` is for columns of words. Raises ConfigError
        (`database_too_new`, a network drive, nobody answers at `database_url`, or another home's database), StorageFailed."""
        store = cls(driver_of(runtime, database_url), redactor)

        def make(tx: Tx) -> None:
            bring_forward(tx)
            if database_url:
                make_own(tx, runtime)

        try:
            store.write_now(make)
            store._driver.note_made()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def memory(cls) -> Store:
        """A new store that no file holds: SQLite with the same tables. It ends when it is closed."""
        store = cls(MemoryDriver())
        store.write_now(bring_forward)
        return store

    @property
    def is_sqlite(self) -> bool:
        return self._driver.is_sqlite

    @property
    def where(self) -> str:
        """The database as a person knows it, without a password."""
        return self._driver.where

    def claim(self) -> None:
        """Claims the store for the process that works the runs: no other may, as long as this store is open. Raises
        DaemonRunning where copied homes share a PostgreSQL, StorageFailed. A SQLite file needs no claim, for the home's own
        lock says as much."""
        with self._lock, self._failing():
            self._claimed = True
            self._renew_claim()

    def _renew_claim(self) -> None:
        if self.is_sqlite or not self._claimed:
            return
        if not self._raw.execute("SELECT pg_try_advisory_lock(%s)", (_DAEMON_LOCK,)).fetchone()[0]:
            self._raw.shut()
            raise DaemonRunning(
                f"another daemon uses {self.where}.",
                fix="stop it: it serves a copy of this home with the same database",
                database=self.where,
            )

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(
        self,
        work: Callable[[Tx], T],
        *,
        durable: bool = True,
        now: bool = True,
        then: Callable[[T], None] | None = None,
        future: asyncio.Future[T] | None = None,
    ) -> asyncio.Future[T]:
        """A future (`future`, where one is given), done when `work` is committed; `durable`: and on the disk. `now` False: it
        goes along with what is written next, and without that soon. To be called in the loop's thread, where `then` is called
        too. `work` only executes statements: it is called a second time when another of its batch raises. Who stops
        waiting does not stop the job. The future raises what `work` raises, and StorageFailed."""
        from asyncio import get_running_loop  # not at the top: who only looks has no loop

        def begin() -> None:
            with self._changed:
                if self._queue:
                    self._wanted = True
                    self._changed.notify()

        loop = get_running_loop()
        future = loop.create_future() if future is None else future
        self._hand_over(_Job(work, durable, then=then, future=future))
        if now and self._lone < _LONE:
            # After what else the loop has at hand: others who go on now, and whom these let go on, write in the same transaction.
            loop.call_soon(loop.call_soon, begin)
        elif now:
            begin()
        return future

    def defer(self, work: Callable[[Tx], object]) -> None:
        """Goes along with what is written next, and without that soon; not synced for its own sake."""
        self._hand_over(_Job(work, durable=False, deferred=True))

    def write_now(self, work: Callable[[Tx], T], *, durable: bool = True) -> T:
        """Writes like `write`, waiting here: for doors without a loop, and for what must be on the disk before the next
        line. Raises what `work` raises, and StorageFailed."""
        job = _Job(work, durable)
        with self._lock:
            self._require_open()
            self._commit([*self._taken(), job])
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Tx]:
        """One writing transaction of the caller's: committed when the block ends, undone when it raises. What it reads
        cannot change under it. Raises StorageFailed."""
        with self._lock:
            self._require_open()
            self._commit(self._taken())
            with self._failing(), self._begun(durable=True):
                yield self._tx

    def _hand_over(self, job: _Job[Any]) -> None:
        with self._changed:
            self._require_open()
            self._queue.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
                self._thread.start()
            if not self._dozing:
                self._changed.notify()

    def _require_open(self) -> None:
        if self._closing:
            raise StorageFailed("the store is closed.", fix="report it: somebody came too late")

    def _taken(self) -> list[_Job[Any]]:
        with self._changed:
            jobs, self._queue, self._wanted = self._queue, [], False
        return jobs

    def _serve(self) -> None:
        self._dozing = True
        while True:
            with self._changed:
                while not (self._wanted or self._closing):
                    self._dozing = self._changed.wait(_DEFERRED_S if self._dozing else None)
                    if not self._dozing and self._queue:
                        break
                self._dozing = True
                closing = self._closing
            with self._lock:
                self._commit(self._taken())
                if self._driver.log_bytes() > (MAX_LOG_BYTES if self._queue else LOG_BYTES):
                    try:
                        self._checkpoint("PASSIVE")  # any other mode waits for who reads, such as a backup
                    except StorageFailed as error:
                        log.warning("the log of the database could not be shortened: %s", error)
            if closing:
                return

    def _commit(self, jobs: list[_Job[Any]], *, apart: bool = False) -> None:
        """One transaction of all `jobs`. When one raises, they are written again, each `apart`: then it undoes itself alone."""
        if not jobs:
            return
        self._lone = self._lone + 1 if sum(not job.deferred for job in jobs) == 1 else 0
        # So is a lone deferred one: it is dropped for its own error, and kept for one of the database.
        apart = apart or (len(jobs) == 1 and jobs[0].deferred)
        one_raised = False
        try:
            with self._failing(), self._begun(durable=any(job.durable for job in jobs)):
                tx = self._tx
                for job in jobs:
                    one_raised = True
                    if apart:
                        self._do_apart(job)
                    else:
                        job.result = job.work(tx)
                one_raised = False
        except BaseException as error:  # noqa: BLE001  every job of the batch is told, and nothing of any is there
            if one_raised and not apart and len(jobs) > 1 and isinstance(error, Exception):
                self._commit(jobs, apart=True)
                return
            if isinstance(error, StorageFailed) and not self._closing and len(jobs) <= _MOST_WAITING:
                with self._changed:  # nobody waits for them: they go along with what is written next
                    self._queue[:0] = [job for job in jobs if job.deferred and job.error is None]
                jobs = [job for job in jobs if not job.deferred or job.error is not None]
            for job in jobs:
                job.error = job.error or error
        _tell(jobs)

    def _do_apart(self, job: _Job[Any]) -> None:
        """Keeps its error with the job, unless it is the end of the whole transaction."""
        self._raw.execute("SAVEPOINT job")
        try:
            job.result = job.work(self._tx)
        except Exception as error:
            told = self._told(error)
            if self._driver.is_doubtful or (self.is_sqlite and not self._raw.in_transaction):
                raise
            self._raw.execute("ROLLBACK TO SAVEPOINT job")
            job.error = told
        self._raw.execute("RELEASE SAVEPOINT job")

    # ── the writing connection ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def _tx(self) -> Tx:
        def as_core() -> Connection:
            self._core = self._core or _core_of(self._raw, self.is_sqlite, self._redactor)
            return self._core  # type: ignore[no-any-return]

        return Tx(self._raw, as_core, is_sqlite=self.is_sqlite)

    @contextlib.contextmanager
    def _begun(self, *, durable: bool) -> Iterator[None]:
        """A transaction: committed when the block ends, undone when it raises. An error of the disk is noted before the next
        process may begin."""
        with self._alone():
            self._begin(durable=durable)
            try:
                yield
                self._raw.execute("COMMIT")
            except BaseException as error:
                self._told(error)
                self._roll_back()
                raise

    def _begin(self, *, durable: bool) -> None:
        if not self.is_sqlite:
            try:
                self._reconnect()
                self._raw.execute("BEGIN")
            except self._driver.errors:
                if not self._raw.closed:
                    raise
                self._reconnect()  # it was lost since: nothing had begun
                self._raw.execute("BEGIN")
            if not durable:
                self._raw.execute("SET LOCAL synchronous_commit = off")
            return
        if change := self._driver.displaced():
            # Into the file that is open, wherever it lies now: else SQLite would apply the log to the one in its place.
            self._merge("TRUNCATE")
            raise StorageFailed(
                f"the database {self.where} was {change} while it was in use.",
                fix="stop the daemon; put the file back, or run `council restore`",
            )
        if durable != self._durable:
            self._raw.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        for left in reversed(range(_BUSY_TRIES)):
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_locked(error) or not left:
                    raise

    def _reconnect(self) -> None:
        if self._raw.closed:
            self._core, self._raw = None, self._driver.writer()
            try:
                self._renew_claim()
            except DaemonRunning as error:
                raise StorageFailed(error.message, fix=error.fix) from error

    def _roll_back(self) -> None:
        with contextlib.suppress(*self._driver.errors):
            self._raw.execute("ROLLBACK")

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Driver errors become StorageFailed, without the statement and its values: they may be anybody's words."""
        try:
            yield
        except Exception as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from error

    def _told(self, error: BaseException) -> BaseException:
        cause = getattr(error, "orig", None) or error  # of SQLAlchemy's errors
        if not isinstance(cause, self._driver.errors):
            return error
        if is_io_error(cause):
            self._driver.note_doubt(True)
        told = self._driver.failed(cause)
        if is_damage(cause):
            self.damage = told
        return told

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other processes from writing, and from moving the log into the file meanwhile. SQLite before 3.51.3 can lose
        pages when both happen at once (its report "WAL-reset"). After an I/O error nothing is acknowledged before all that the
        log holds is in the database file, and synced: a frame that was lost would take every later one with it."""
        fd = self._driver.lock_fd
        if fd is None:
            yield
            return
        give_up_at = time.monotonic() + _LOCK_PATIENCE_S
        while not try_flock(fd, fcntl.LOCK_EX):
            if time.monotonic() > give_up_at:
                raise StorageFailed(f"{self.where} is locked by another process.", fix="end it; it is tried again")
            time.sleep(_LOCK_PAUSE_S)
        try:
            if self._driver.is_doubtful and not self._merge("TRUNCATE"):
                raise StorageFailed(
                    f"{self.where} met an input/output error and is being read, so its log cannot be merged.",
                    fix="end what reads it, and check the disk; it is tried again",
                )
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def _checkpoint(self, mode: str) -> bool:
        """True when all of the log came in: not while somebody reads an older state, or another process writes."""
        fd = self._driver.lock_fd
        if fd is None:
            return True
        if not try_flock(fd, fcntl.LOCK_EX):
            return False
        try:
            return self._merge(mode)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def _merge(self, mode: str) -> bool:
        with self._failing():
            busy, logged, merged = self._raw.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        whole = not busy and logged == merged
        if whole and mode == "TRUNCATE" and self._driver.is_doubtful:
            self._driver.note_doubt(False)
        return whole

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, look: Callable[[Tx], T]) -> T:
        """Returns what `look` sees of one state of the database; short, for others wait. Raises StorageFailed."""
        with self._read_lock, self._failing():
            self._require_open()
            if self._reader is not None and (self.is_sqlite or not self._reader.closed):
                try:
                    with snapshot(self._reader, is_sqlite=self.is_sqlite) as tx:
                        return look(tx)
                except self._driver.errors:
                    if self.is_sqlite or not self._reader.closed:
                        raise  # else the connection was lost since: once more over another
            self._reader = self._driver.reader()
            with snapshot(self._reader, is_sqlite=self.is_sqlite) as tx:
                return look(tx)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Tx]:
        """Reads like `read`, for as long as the block takes, on a connection of its own. The log grows meanwhile."""
        with self._failing(), contextlib.ExitStack() as stack:
            raw = self._driver.reader()
            stack.callback(raw.shut)
            yield stack.enter_context(snapshot(raw, is_sqlite=self.is_sqlite))

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def sweep(self) -> None:
        """Removes from pages and log of the file what rows held before they were changed. Where SQLite split or merged pages,
        copies of rows may stay, which only `rebuild` removes. PostgreSQL does all that in its own time. Raises StorageFailed,
        also while another process reads."""
        with self._lock:
            self._require_open()
            self._commit(self._taken())
            swept = self._checkpoint("TRUNCATE")
        if not swept:
            raise StorageFailed(
                "the database is being read, so the text cannot be removed now.",
                fix=f"end what reads .council/{DATABASE_FILE}; it is tried again",
            )

    def give_back(self) -> bool:
        """Gives some free pages back to the file system; whether there are more. Raises StorageFailed."""
        if not self.is_sqlite:
            return False
        with self._lock, self._failing():
            self._require_open()
            if self._raw.execute("PRAGMA auto_vacuum").fetchone()[0] != 2:
                return False
            with self._alone():
                self._raw.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            return bool(self._raw.execute("PRAGMA freelist_count").fetchone()[0])

    def rebuild(self) -> None:
        """Writes the file anew, without free space in its pages, so that it can shrink from now on: one of an older version
        cannot. Other writers wait. Raises StorageFailed."""
        if not self.is_sqlite:
            return
        with self._lock:
            self._require_open()
            self._commit(self._taken())
            with self._failing(), self._alone():
                self._raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._raw.execute("VACUUM")

    def close(self) -> None:
        """Writes what was handed over, then closes. A look that is under way ends with StorageFailed: its thread may go on
        although nobody waits for it any more, and a connection must not be closed under it."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._commit(self._taken())
            if self.is_sqlite:
                with contextlib.suppress(StorageFailed):
                    self._checkpoint("TRUNCATE")
            self._core = None
        while not self._read_lock.acquire(timeout=_INTERRUPT_S):
            if self._reader is not None:
                self._reader.interrupt()
        if self._reader is not None:
            self._reader.shut()
        self._read_lock.release()
        with self._lock:
            self._raw.shut()  # the last to go takes the log along, if it may write
        self._driver.close()


def _tell(jobs: Sequence[_Job[Any]]) -> None:
    """Tells each loop once, in its thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in jobs:
        if job.future is not None:
            by_loop.setdefault(job.future.get_loop(), []).append(job)
        elif job.deferred and job.error is not None:
            log.error("a deferred record was not written: %s", job.error)
    for loop, told in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_resolve, told)


def _resolve(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        assert job.future is not None
        if job.error is None and job.then is not None:
            job.then(job.result)
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


@contextlib.contextmanager
def snapshot(raw: Any, *, is_sqlite: bool) -> Iterator[Tx]:
    """A transaction that only reads, and sees one state of the database from its beginning to its end."""
    raw.execute("BEGIN" if is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield Tx(raw, lambda: _core_of(raw, is_sqlite), is_sqlite=is_sqlite)
    finally:
        raw.execute("ROLLBACK")


def tx_over(connection: Connection) -> Tx:
    """The same transaction for whoever is only given SQLAlchemy's view of it."""
    raw = connection.connection.driver_connection
    return Tx(raw, lambda: connection, is_sqlite=connection.dialect.name == "sqlite")


def _core_of(raw: Any, is_sqlite: bool, redactor: Redactor | None = None) -> Connection:
    from council.storage.tables import connection_over  # not at the top: sqlalchemy

    return connection_over(raw, is_sqlite=is_sqlite, redactor=redactor)


def look_into(path: Path, look: Callable[[Tx], T]) -> T:
    """Returns what `look` sees in a SQLite file that is not opened as a store: nothing is made, mended or brought forward. Raises
    StorageFailed."""
    try:
        with contextlib.closing(sqlite_for_reading(path)) as raw, snapshot(raw, is_sqlite=True) as tx:
            return look(tx)
    except sqlite3.Error as error:
        raise sqlite_failed(error, path) from error


def empty_database() -> sqlite3.Connection:
    """A database without rows, in memory."""
    raw = sqlite3.connect(":memory:", isolation_level=None, factory=LookingConnection)
    for statement in schema_of(is_sqlite=True):
        raw.execute(statement)
    return raw
