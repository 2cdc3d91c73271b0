"""Which versions of the database this program knows; told without loading SQLAlchemy, so that every start can ask."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from council.errors import DatabaseTooNew

DATABASE_FILE = "council.db"
VERSIONS = ("0001", "0002", "0003")  # oldest first: the revisions in `migrations/versions`


def require_known_version(runtime: Path) -> None:
    """Raises DatabaseTooNew when the home's SQLite database was written by a newer program. What else may be wrong with
    it is said when it is used."""
    path = runtime / DATABASE_FILE
    if not path.exists():
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_opened(path)) as db:
        row = db.execute("SELECT version_num FROM alembic_version").fetchone()
        if row is not None and row[0] not in VERSIONS:
            raise database_too_new(str(row[0]))


def database_too_new(version: str) -> DatabaseTooNew:
    return DatabaseTooNew(
        f"the database has version {version[:32]}; this program knows versions up to {VERSIONS[-1]}.",
        fix="use the version of Council that wrote it, or a newer one; nothing was changed",
        version=version,
    )


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
