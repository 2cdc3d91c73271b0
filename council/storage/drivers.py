"""Connections to a home's database, SQLite or PostgreSQL, and what their drivers' errors mean. Imports psycopg when used."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import time
from pathlib import Path
from typing import Any

from council.errors import ConfigError, StorageFailed
from council.storage.files import as_storage_failed
from council.storage.versions import DATABASE_FILE

LOG_BYTES = (
    4 << 20
)  # an idle writer moves a longer write-ahead log into the database file; it is used again at this size
MAX_LOG_BYTES = 16 << 20  # a busy writer moves it at this one
_BUSY_TIMEOUT_MS = 2_000
# SQLite waits for nobody where two processes begin the log of a new file at once, and no longer for who closes it as the last.
_OPENING_PATIENCE_S, _OPENING_PAUSE_S = 6.0, 0.01
_CONNECT_TIMEOUT_S = 10
_STATEMENT_TIMEOUT_MS = 60_000
# A server that is cut off without a word, by a power cut or a firewall, counts as gone after 30 s. Without these options
# Linux waits for 15 minutes, or two hours where an answer is waited for, and all of the daemon with it.
_SILENCE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_PAGE_BYTES = 8_192  # 4,096 makes the file a tenth larger for steps of some kilobytes
_LOCK_FILE = "council.db.lock"  # locked while one writes; holds a word once the database was made, a byte more in doubt
_MADE = b"made\n"
_HEAD_FILE = "audit.head"  # written when a database was there
RESTORING = "council.db.restoring"  # there while a restore is under way
_LEAST_SQLITE = (3, 35)  # RETURNING


def driver_of(runtime: Path, database_url: str | None) -> SqliteDriver | PostgresDriver:
    """The home's database. Raises ConfigError, also where a server's database would begin, empty, beside a SQLite file that
    holds rows; StorageFailed."""
    path = runtime / DATABASE_FILE
    if not database_url:
        return SqliteDriver(path)
    if path.is_file() and _holds_rows(path):
        raise ConfigError(
            f"`database_url` is set, but .council/{DATABASE_FILE} has the data of this home.",
            fix=f"remove `database_url` to continue with it, or move .council/{DATABASE_FILE} and {_HEAD_FILE} away to start "
            "empty. `council journal RUN --jsonl` exports a run, and `--import` imports it",
        )
    return PostgresDriver(database_url)


class LookingConnection(sqlite3.Connection):
    """Others begin and end its transactions: SQLAlchemy's own commit and rollback do nothing."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class SqliteConnection(LookingConnection):
    """Only `Store` closes it, too."""

    def close(self) -> None: ...

    def shut(self) -> None:
        super().close()


_WRITING = (
    f"page_size = {_PAGE_BYTES}",  # this one and the next only count before the first table
    "auto_vacuum = INCREMENTAL",
    "journal_mode = WAL",
    "wal_autocheckpoint = 0",  # only the writer moves the log, when nobody waits
    f"journal_size_limit = {LOG_BYTES}",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what is deleted stands in no page
)


class SqliteDriver:
    is_sqlite = True
    errors: tuple[type[BaseException], ...] = (sqlite3.Error,)
    _is_doubtful = False

    def __init__(self, path: Path) -> None:
        """Raises ConfigError, StorageFailed."""
        self._path = path
        self._log = f"{path}-wal"
        self.where = f"{path.parent.name}/{path.name}"
        if sqlite3.sqlite_version_info < _LEAST_SQLITE:
            fix = f"install one from {'.'.join(map(str, _LEAST_SQLITE))} on, or set `database_url`"
            raise ConfigError(f"SQLite {sqlite3.sqlite_version} is too old for Council.", fix=fix)
        network = network_file_system(path.parent)
        if network:
            fix = "move the home to a local disk, or set `database_url` to a PostgreSQL database"
            raise ConfigError(f"the home is on a network drive ({network}), where SQLite loses data.", fix=fix)
        self.lock_fd: int | None = _opened(path.with_name(_LOCK_FILE))
        require_there(path)
        if path.is_symlink() or not path.exists():
            make_private(path)  # NOTE: closing a descriptor of one in use would drop this process's locks on it

    def note_made(self) -> None:
        """Notes that the database was made: one that is gone is not begun anew in silence."""
        if self.lock_fd is not None and not os.fstat(self.lock_fd).st_size:
            os.write(self.lock_fd, _MADE)

    @property
    def is_doubtful(self) -> bool:
        """True after an I/O error, of whatever process: what the log holds may not be on the disk. A byte more in the lock file
        tells it to every writer. It needs no sync: what is doubtful is lost with the memory that holds it."""
        return self._is_doubtful or (self.lock_fd is not None and os.fstat(self.lock_fd).st_size > len(_MADE))

    def note_doubt(self, is_doubtful: bool) -> None:
        self._is_doubtful = is_doubtful
        with contextlib.suppress(OSError):  # of the same disk: then this process alone knows
            if self.lock_fd is not None and os.fstat(self.lock_fd).st_size:
                os.ftruncate(self.lock_fd, len(_MADE) + is_doubtful)

    def writer(self) -> Any:
        raw = self._connect("", *_WRITING)
        self._file = _file_at(self._path)
        return raw

    def displaced(self) -> str:
        """Tells how the file under our name came to be another than the one that is open; empty while it is that one."""
        there = _file_at(self._path)
        return "" if there == self._file else "removed" if there is None else "replaced"

    def reader(self) -> Any:
        return self._connect("?mode=ro", "query_only = ON")

    def _connect(self, mode: str, *pragmas: str) -> Any:
        return self._connected(f"{self._path.absolute().as_uri()}{mode}", *pragmas)

    def _connected(self, uri: str, *pragmas: str) -> Any:
        try:
            raw = sqlite3.connect(
                uri,
                uri=True,
                timeout=_BUSY_TIMEOUT_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
                factory=SqliteConnection,
            )
            left, give_up_at = list(pragmas), time.monotonic() + _OPENING_PATIENCE_S
            while left:
                try:
                    raw.execute(f"PRAGMA {left[0]}")
                    del left[0]
                except sqlite3.OperationalError as error:
                    if not is_locked(error) or time.monotonic() > give_up_at:
                        raise
                    time.sleep(_OPENING_PAUSE_S)
        except sqlite3.Error as error:
            raise self.failed(error) from error
        return raw

    def failed(self, error: BaseException) -> StorageFailed:
        return sqlite_failed(error, self._path)

    def log_bytes(self) -> int:
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0

    def close(self) -> None:
        if self.lock_fd is not None:
            os.close(self.lock_fd)


class MemoryDriver(SqliteDriver):
    """A database that no file holds, and that ends with its store: to try things with the real statements."""

    def __init__(self) -> None:
        self.where = "memory"
        self.lock_fd = None  # only one process ever sees it
        self._path = Path(self.where)
        self._uri = f"file:council-{secrets.token_hex(8)}?mode=memory&cache=shared"

    def writer(self) -> Any:
        return self._connected(self._uri, "foreign_keys = ON")

    def displaced(self) -> str:
        return ""

    def reader(self) -> Any:
        return self._connected(self._uri, "query_only = ON", "read_uncommitted = ON")  # it has no snapshots, and locks

    def log_bytes(self) -> int:
        return 0


class PostgresDriver:
    is_sqlite = False
    lock_fd = None
    is_doubtful = False

    def __init__(self, database_url: str) -> None:
        """Raises ConfigError."""
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            message = f"`database_url` names a PostgreSQL database, but psycopg cannot be used here ({error})."
            fix = "pip install 'council[postgres]'; leave it out for SQLite in the home"
            raise ConfigError(message, fix=fix) from None
        self.errors: tuple[type[BaseException], ...] = (psycopg.Error,)
        url = database_url.replace("postgres://", "postgresql://", 1)
        try:
            parts = conninfo_to_dict(url) if url.startswith("postgresql://") else None
        except psycopg.Error:
            parts = None
        if parts is None:
            fix = "write postgresql://user@host/name; leave it out for SQLite in the home"
            raise ConfigError("`database_url` is not the address of a PostgreSQL database.", fix=fix)
        self._url = url
        self._silence: dict[str, Any] = {name: value for name, value in _SILENCE.items() if name not in parts}
        self.where = f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"

        class Connection(psycopg.Connection[Any]):
            """A connection like `SqliteConnection`."""

            def commit(self) -> None: ...

            def rollback(self) -> None: ...

            def close(self) -> None: ...

            def interrupt(self) -> None:
                with contextlib.suppress(psycopg.Error):  # its connection is lost: that ends what it does, too
                    self.cancel_safe(timeout=_CONNECT_TIMEOUT_S)

            def shut(self) -> None:
                super().close()

        self._connection = Connection

    def writer(self) -> Any:
        options = f"-c statement_timeout={_STATEMENT_TIMEOUT_MS} -c lock_timeout={_STATEMENT_TIMEOUT_MS}"
        try:
            return self._connection.connect(
                self._url,
                autocommit=True,
                connect_timeout=_CONNECT_TIMEOUT_S,
                options=options,
                application_name="council",
                **self._silence,
            )
        except self.errors as error:
            raise self.failed(error) from error

    reader = writer

    def note_made(self) -> None: ...

    def note_doubt(self, is_doubtful: bool) -> None: ...

    def displaced(self) -> str:
        return ""

    def log_bytes(self) -> int:
        return 0

    def close(self) -> None: ...

    def failed(self, error: BaseException) -> StorageFailed:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return StorageFailed(
            f"the database {self.where} failed: {reason}.",
            fix="check that the server runs, and what `database_url` says",
        )


def require_there(path: Path) -> None:
    """Raises StorageFailed where there was a database, and is none any more: it is not begun anew in silence."""
    if path.with_name(RESTORING).exists():
        fix = "run `council restore` again"
        raise StorageFailed(f"a restore of {path.parent.name}/{path.name} was not completed.", fix=fix)
    if path.exists() and not path.is_file():
        fix = "move it away; then run `council restore`"
        raise StorageFailed(f"{path.parent.name}/{path.name}, the place of the database, is not a file.", fix=fix)
    is_gone = not (path.exists() and path.stat().st_size)
    if is_gone and any(
        there.exists() and there.stat().st_size for there in map(path.with_name, (_LOCK_FILE, _HEAD_FILE))
    ):
        fix = f"run `council restore`; to start empty, remove {_LOCK_FILE} and {_HEAD_FILE} there"
        raise StorageFailed(f"the database {path.parent.name}/{path.name} is gone or empty.", fix=fix)


def sqlite_failed(error: BaseException, path: Path) -> StorageFailed:
    """Says of a driver's error what it means for this file, and what mends it."""
    code = _code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        fix = "end what writes to it, then try again"
    elif is_damage(error) or "decode to UTF-8" in str(error):  # such bytes in one row are no damage of the file
        fix = "`council doctor` names the copies there are, and `council restore` restores one"
    elif code == sqlite3.SQLITE_FULL:
        fix = "free some space on the disk"
    elif code == sqlite3.SQLITE_IOERR:
        fix = "check the disk and its free space"
    elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        fix = "give this user access to .council/ and the files in it"
    else:
        fix = "report it, with the log"
    reason = str(error) if isinstance(error, sqlite3.Error) else type(error).__name__
    return StorageFailed(f"the database {path.parent.name}/{path.name} failed: {reason}.", fix=fix, sqlite_code=code)


def is_locked(error: sqlite3.Error) -> bool:
    return _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_io_error(error: BaseException) -> bool:
    return _code_of(error) == sqlite3.SQLITE_IOERR


def is_damage(error: BaseException) -> bool:
    return _code_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _holds_rows(path: Path) -> bool:
    """True also for a file that cannot be read."""
    try:
        with contextlib.closing(sqlite_for_reading(path)) as raw:
            tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables = [name for name in tables if name != "alembic_version"]
            return any(raw.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in tables)  # noqa: S608  a table's name
    except sqlite3.Error:
        return True


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # not `path.stat`: asked for each transaction
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _code_of(error: BaseException) -> int:
    """SQLite's primary result code; 0 for an error that has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def flaw_in(path: Path) -> str:
    """The flaw that SQLite's `quick_check` finds in a file, empty for none. Changes nothing. Raises StorageFailed."""
    try:
        with contextlib.closing(sqlite_for_reading(path)) as raw:
            said = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        if is_damage(error):
            return str(error)
        raise sqlite_failed(error, path) from error
    return "" if said == "ok" else str(said)


def sqlite_for_reading(path: Path) -> sqlite3.Connection:
    """`immutable` where the folder takes no file beside the database, and so nobody writes either. A transaction that a
    kill cut off while the file was made is rolled back first, which a connection that only reads cannot."""

    def opened(mode: str) -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        raw = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_TIMEOUT_MS / 1000, isolation_level=None, factory=LookingConnection
        )
        try:
            raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error:
            raw.close()
            raise
        return raw

    if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        return opened("ro&immutable=1")
    try:
        return opened("ro")
    except sqlite3.OperationalError as error:
        if _code_of(error) != sqlite3.SQLITE_READONLY:
            raise
    opened("rw").close()
    return opened("ro")


def make_private(path: Path) -> None:
    """Makes the file for its owner only: those that SQLite makes beside it take its mode. Raises StorageFailed."""
    os.close(_opened(path))


def _opened(path: Path) -> int:
    with as_storage_failed(f"Cannot open {path}"):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # a space, a tab, a newline, a backslash
# Without what a virtual machine shares with its own host (virtiofs, 9p, vboxsf, drvfs): 9p is also the root of sandboxes.
_OVER_THE_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "davfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.ceph-fuse", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.davfs2",
})  # fmt: skip


def network_file_system(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The kind of network file system that holds `folder`; empty for a local one, and where nobody says (proc(5))."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    place = folder.resolve()
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind if kind in _OVER_THE_NETWORK else ""
