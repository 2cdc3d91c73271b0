"""The daily copies of a home's database: made beside a working daemon, two kept, taken back by `council restore`.

They protect against a damaged file and a slip of the hand, not against a lost disk: `council backup FILE` is for that.
PostgreSQL has backups of its own.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from council.budgets import statements as spent
from council.engine import statements as sql
from council.errors import StorageFailed, UsageError
from council.settings import Home
from council.storage.drivers import RESTORING, flaw_in, make_private, require_there, sqlite_failed, sqlite_for_reading
from council.storage.files import as_storage_failed, fsync_dir
from council.storage.store import Store, Tx, look_into, snapshot
from council.storage.versions import DATABASE_FILE, VERSIONS, version_of

COPIES = "copies"
KEPT = 2
_BLOCK_BYTES, _OVERLAP_BYTES = 256 << 10, 4 << 10
CHANGING = threading.Lock()  # a daily copy of before a text was forgotten must not come to stand after it was
_PIECE_PAGES = 512  # 4 MiB are synced at a time: a commit beside it waits for such a sync
_NAME = re.compile(r"council-[0-9]{8}\.db")


def copies_of(home: Home) -> list[Path]:
    """Newest first."""
    folder = home.runtime / COPIES
    names = os.listdir(folder) if folder.is_dir() else []
    return [folder / name for name in sorted(filter(_NAME.fullmatch, names), reverse=True)]


def half_copies(home: Home) -> list[Path]:
    """The files of a copy or a restore that is under way or was killed, with those that SQLite keeps beside them."""
    patterns = (f".{DATABASE_FILE}.restored*", f"{COPIES}/.*.partial*")
    return [path for pattern in patterns for path in sorted(home.runtime.glob(pattern))]


def set_aside(home: Home) -> list[Path]:
    """The databases that restores have replaced, each with what its log holds."""
    return sorted(home.runtime.glob(f"{DATABASE_FILE}.before-restore*"))


def day_of(copy: Path) -> datetime:
    """The beginning of the day of a daily copy (UTC)."""
    return datetime.strptime(copy.stem, "council-%Y%m%d").replace(tzinfo=UTC)


def copy_daily(home: Home, store: Store, now: datetime) -> Path | None:
    """Makes the copy of this day (UTC), unless it is there, and lets go of the oldest beyond KEPT. None when there was
    nothing to do. Raises StorageFailed."""
    with CHANGING:
        if not store.is_sqlite or (target := _copy_of(home, now)).exists():
            return None
        copy_database(home, target)
        fsync_dir(target.parent)
        # A copy of a later day was made while the clock was ahead: as the newest it would displace those of today for years.
        newest = sorted(copies_of(home), key=lambda copy: (copy.name <= target.name, copy.name), reverse=True)
        for old in newest[KEPT:]:
            old.unlink(missing_ok=True)
        return target


def copy_database(home: Home, target: Path, change: Callable[[sqlite3.Connection], object] = lambda copy: None) -> None:
    """A consistent copy of the home's SQLite file beside whoever writes, whole or not at all, for its owner only; `change`
    is made in it. Raises UsageError where there is none yet, StorageFailed."""
    path = home.runtime / DATABASE_FILE
    require_there(path)
    if not path.exists():
        raise UsageError("this home has no database yet.", fix="the first command creates it")
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    make_private(partial)
    try:
        with as_storage_failed(f"Cannot copy the database to {target}"), partial.open("rb+") as written:
            with (
                closing(sqlite_for_reading(path)) as source,
                closing(sqlite3.connect(partial)) as copy,
                snapshot(source, is_sqlite=True) as tx,
            ):
                tx.execute("SELECT 1 FROM sqlite_master").fetchone()  # one state: else it begins anew with each commit
                source.backup(copy, pages=_PIECE_PAGES, progress=lambda *_: os.fsync(written.fileno()))
                copy.execute("PRAGMA journal_mode = DELETE")
                change(copy)
            if flaw := flaw_in(partial):
                fix = "`council restore` restores an older copy"
                raise StorageFailed(f"the database is damaged ({flaw}): it cannot be copied.", fix=fix)
            os.fsync(written.fileno())
            partial.replace(target)
    except sqlite3.Error as error:
        raise sqlite_failed(error, path) from error
    finally:
        partial.unlink(missing_ok=True)


def renew_copies(home: Home, now: datetime, *, without: str) -> Path:
    """Renews the copies for `forget`, so that what was forgotten stands in none. One copy of now takes the place of all,
    without the run of that id. It has not ended, and would be worked again from there. Raises StorageFailed."""
    newest, *older = copies_of(home) or [_copy_of(home, now)]

    def remove(copy: sqlite3.Connection) -> None:
        for statement in (sql.DROP_STEPS, sql.DROP_RUN):
            copy.execute(statement, (without,))
        copy.commit()

    copy_database(home, newest, change=remove)
    for old in older:
        old.unlink(missing_ok=True)
    fsync_dir(newest.parent)
    return newest


def blocks_of(copy: Path) -> Iterator[bytes]:
    """The bytes of a copy, a block at a time so that other threads have their turn; each begins with the end of the last."""
    before = b""
    with copy.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield before + block
            before = block[-_OVERLAP_BYTES:]


def _copy_of(home: Home, now: datetime) -> Path:
    folder = home.runtime / COPIES
    with as_storage_failed(f"Cannot make {folder}"):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"council-{now:%Y%m%d}.db"


@dataclass(frozen=True)
class CopyLoss:
    """The part of a database that its copy does not know. It is lost when the copy takes its place. `ended` are runs that
    the copy holds unfinished, and the database ended: their end goes along. `told` False: the database does not say it any
    more. Then `unfinished` are those that go on at the next start, whether they have ended or not. `records`: the last record
    of the audit in the copy, and the last one that its head file knows, where that is later."""

    runs: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    told: bool = True
    records: tuple[int, int] | None = None


def taken_back(home: Home, copy: Path, admit: Callable[[Tx], None]) -> tuple[Path | None, CopyLoss]:
    """Puts a copy in the place of the database, which is set aside; where that is now (None: there was none), and what the
    copy does not know. Only for who holds the home's lock. One that is cut off is said so until it is done again. `admit`
    looks into the copy before anything is moved. Raises UsageError for what is no whole copy, StorageFailed, and what
    `admit` raises."""
    require_whole(copy)
    look_into(copy, admit)
    path = home.runtime / DATABASE_FILE
    was_there, unknown = path.exists(), _unknown(path, copy)
    aside, number = path.with_name(f"{DATABASE_FILE}.before-restore"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{DATABASE_FILE}.before-restore-{number}")
    temporary, mark = path.with_name(f".{DATABASE_FILE}.restored"), path.with_name(RESTORING)
    with as_storage_failed(f"Cannot put {copy.name} in place of {DATABASE_FILE}"):
        temporary.unlink(missing_ok=True)
        make_private(temporary)
        with (
            closing(sqlite_for_reading(copy)) as source,
            closing(sqlite3.connect(temporary.absolute().as_uri(), uri=True)) as target,
        ):
            try:
                source.backup(target)  # with what its log holds
                _take_ends(target, path, unknown.ended)
            except sqlite3.Error as error:
                raise sqlite_failed(error, copy) from error
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        mark.touch()
        fsync_dir(path.parent)
        for ending in ("-wal", "-shm", ""):
            part = path.with_name(f"{path.name}{ending}")
            if part.exists():
                part.rename(aside.with_name(f"{aside.name}{ending}"))
        temporary.rename(path)
        fsync_dir(path.parent)
        mark.unlink()
    return aside if was_there else None, unknown


def require_whole(copy: Path) -> None:
    """Raises UsageError for what is no whole database of Council that this version knows."""
    fix = "`council doctor` names the copies there are"
    if not copy.is_file():
        raise UsageError(f"{copy} {'is not a regular file' if copy.exists() else 'does not exist'}.", fix=fix)
    try:
        flaw = flaw_in(copy)
        version = "" if flaw else look_into(copy, version_of)
    except StorageFailed as error:
        raise UsageError(f"{copy} cannot be read: {error.message}", fix=fix) from error
    if flaw:
        raise UsageError(f"{copy} is not a complete copy: {flaw}.", fix=fix)
    if version not in VERSIONS:
        raise UsageError(f"{copy} is not a database of Council that this version knows.", fix=fix)


def flaw_of(copy: Path) -> str:
    """Says why a copy cannot take the database's place; empty for a whole one."""
    try:
        require_whole(copy)
    except UsageError as error:
        return error.message
    return ""


def _unknown(path: Path, copy: Path) -> CopyLoss:
    """Compares the two, as far as the database still tells: of a damaged one nobody knows."""

    def known(tx: Tx) -> tuple[dict[str, bool], dict[str, tuple[int, int]]]:
        has_ended = {run_id: ended_ns is not None for run_id, ended_ns in tx.execute(sql.ALL_ENDS).fetchall()}
        return has_ended, {row[0]: (row[1], row[2]) for row in tx.execute(spent.SETTLED_BY_RUN).fetchall()}

    unfinished: tuple[str, ...] = ()
    try:
        copied, then = look_into(copy, known)
        unfinished = tuple(sorted(run_id for run_id, has_ended in copied.items() if not has_ended))
        runs, now = look_into(path, known)
    except StorageFailed:  # the copy's where it is of a version that had no table of runs
        return CopyLoss(unfinished=unfinished, told=False)
    ended = tuple(run_id for run_id in unfinished if runs.get(run_id))
    lost = {run_id: spending for run_id, spending in now.items() if run_id not in ended}
    calls = sum(count - then.get(run, (0, 0))[0] for run, (count, _) in lost.items())
    tokens = sum(amount - then.get(run, (0, 0))[1] for run, (_, amount) in lost.items())
    return CopyLoss(tuple(sorted(runs.keys() - copied.keys())), ended, (), calls, tokens)


def _take_ends(copy: sqlite3.Connection, path: Path, run_ids: Sequence[str]) -> None:
    """The runs of these ids as the database at `path` holds them: else the copy would do their work again."""
    if not run_ids:
        return
    copy.execute("ATTACH ? AS now", (f"{path.absolute().as_uri()}?mode=ro",))
    its_steps = "run IN (SELECT run FROM now.runs WHERE run_id = ?)"
    where = {"steps": its_steps, "runs": "run_id = ?", "spending": "run_id = ?", "kept": "owner = ?"}
    for run_id in run_ids:
        for table, its in where.items():
            copy.execute(f"DELETE FROM main.{table} WHERE {its}", (run_id,))  # noqa: S608  our own names
        for table, its in {**where, "written": "run_id = ?"}.items():
            copy.execute(f"INSERT OR REPLACE INTO main.{table} SELECT * FROM now.{table} WHERE {its}", (run_id,))  # noqa: S608
    copy.commit()
