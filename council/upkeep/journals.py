"""Which journals do not verify: looked at as they lie there, also beside a daemon, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from council.engine.journal import JOURNAL, FileJournal
from council.errors import JournalDamaged, StorageFailed
from council.settings import Home


@dataclass(frozen=True)
class Looked:
    """`runs` were looked at, and `skipped`, the oldest, were beyond what is read at once. `damaged`: by run, what is wrong."""

    runs: int
    skipped: int
    damaged: dict[str, str]


def look_at_journals(home: Home, *, max_bytes: int) -> Looked:
    """The journals of all runs with their large answers, the newest first, and no more once `max_bytes` were read."""
    runs, skipped, read_bytes, damaged = 0, 0, 0, {}
    for folder in _folders(home.runs):
        if read_bytes > max_bytes:
            skipped += 1
            continue
        flaw = _flaw(folder, answered=(home.receipts / f"{folder.name}.json").exists())
        if flaw:
            damaged[folder.name] = flaw
        runs += flaw is not None
        read_bytes += sum(map(_size, (folder / JOURNAL, *folder.glob("blobs/*"))))
    return Looked(runs, skipped, damaged)


def _folders(runs: Path) -> Iterator[Path]:
    """Those of runs, which are named by when they began; what is made ahead or goes away begins with a dot."""
    if runs.is_dir():
        yield from sorted((path for path in runs.iterdir() if not path.name.startswith(".")), reverse=True)


def _size(path: Path) -> int:
    """0 for what a daemon prunes meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _flaw(folder: Path, *, answered: bool) -> str | None:
    """What is wrong, empty for nothing; None for a run that never began: it has no record, and no receipt."""
    try:
        FileJournal.read(folder / JOURNAL).steps()
    except JournalDamaged as error:
        return error.message if answered or error.data.get("records") != 0 else None
    except StorageFailed as error:
        return error.message if answered or (folder / JOURNAL).exists() else None
    return ""
