"""The daily copies of a home's database: made beside a working daemon, two kept, taken back by `council restore`.

They protect against a damaged file and a slip of the hand, not against a lost disk: `council backup FILE` is for that.
PostgreSQL has backups of its own.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from council.budgets import statements as spent
from council.engine import statements as sql
from council.errors import StorageFailed, UsageError
from council.settings import Home
from council.storage.drivers import RESTORING, flaw_in, make_private, sqlite_failed, sqlite_for_reading
from council.storage.files import as_storage_failed, fsync_dir
from council.storage.store import Store, Tx, look_into
from council.storage.versions import DATABASE_FILE, VERSIONS, version_of

COPIES = "copies"
KEPT = 2
_NAME = re.compile(r"council-[0-9]{8}\.db")


def copies_of(home: Home) -> list[Path]:
    """Newest first."""
    folder = home.runtime / COPIES
    names = (
        sorted((name for name in os.listdir(folder) if _NAME.fullmatch(name)), reverse=True) if folder.is_dir() else []
    )
    return [folder / name for name in names]


def copy_daily(home: Home, store: Store, now: datetime) -> Path | None:
    """Makes the copy of this day (UTC), unless it is there, and lets go of the oldest beyond KEPT. None when there was
    nothing to do. Raises StorageFailed."""
    folder = home.runtime / COPIES
    target = folder / f"council-{now:%Y%m%d}.db"
    if not store.is_sqlite or target.exists():
        return None
    with as_storage_failed(f"Cannot make {folder}"):
        folder.mkdir(mode=0o700, exist_ok=True)
    store.copy_to(target)
    fsync_dir(folder)
    for old in copies_of(home)[KEPT:]:
        old.unlink(missing_ok=True)
    return target


def renew_copies(home: Home, store: Store) -> None:
    """For `forget`: what was forgotten stands in no copy any more. One copy of now takes the place of all. Raises
    StorageFailed."""
    newest, *older = copies_of(home)
    store.copy_to(newest)
    for old in older:
        old.unlink(missing_ok=True)
    fsync_dir(newest.parent)


@dataclass(frozen=True)
class Unknown:
    """The part of a database that its copy does not know: it is lost when the copy takes its place. `told` False: the
    database does not say it any more."""

    runs: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    told: bool = True


def taken_back(home: Home, copy: Path) -> tuple[Path, Unknown]:
    """Puts a copy in the place of the database, which is set aside; where that is now, and what the copy does not know. Only
    for who holds the home's lock. One that is cut off is said so until it is done again. Raises UsageError for what is no
    whole copy, StorageFailed."""
    require_whole(copy)
    path = home.runtime / DATABASE_FILE
    unknown = _unknown(path, copy) if path.exists() else Unknown(told=False)
    aside, number = path.with_name(f"{DATABASE_FILE}.before-restore"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{DATABASE_FILE}.before-restore-{number}")
    temporary, mark = path.with_name(f".{DATABASE_FILE}.restored"), path.with_name(RESTORING)
    with as_storage_failed(f"Cannot put {copy.name} in the place of {DATABASE_FILE}"):
        temporary.unlink(missing_ok=True)
        make_private(temporary)
        with closing(sqlite_for_reading(copy)) as source, closing(sqlite3.connect(temporary)) as target:
            try:
                source.backup(target)  # with what its log holds
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
    return aside, unknown


def require_whole(copy: Path) -> None:
    """Raises UsageError for what is no whole database of Council that this version knows."""
    fix = "`council doctor` names the copies there are"
    if not copy.is_file():
        raise UsageError(f"{copy} is not there.", fix=fix)
    try:
        flaw = flaw_in(copy)
        version = "" if flaw else look_into(copy, version_of)
    except StorageFailed as error:
        raise UsageError(f"{copy} cannot be read: {error.message}", fix=fix) from error
    if flaw:
        raise UsageError(f"{copy} is no whole copy: {flaw}.", fix=fix)
    if version not in VERSIONS:
        raise UsageError(f"{copy} is no database of Council that this version knows.", fix=fix)


def _unknown(path: Path, copy: Path) -> Unknown:
    """As far as the database still says it: of a damaged one nobody knows."""

    def known(tx: Tx) -> tuple[set[str], dict[str, tuple[int, int]]]:
        runs = {row[0] for row in tx.execute(sql.ALL_RUN_IDS).fetchall()}
        return runs, {row[0]: (row[1], row[2]) for row in tx.execute(spent.BY_RUN, ("",)).fetchall()}

    try:
        (runs, now), (copied, then) = look_into(path, known), look_into(copy, known)
    except StorageFailed:
        return Unknown(told=False)
    calls = sum(count - then.get(run, (0, 0))[0] for run, (count, _) in now.items())
    tokens = sum(amount - then.get(run, (0, 0))[1] for run, (_, amount) in now.items())
    return Unknown(tuple(sorted(runs - copied)), calls, tokens)
