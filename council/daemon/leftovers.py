"""What a process that was killed in the middle of a write leaves beside its files, and nobody will ever look for.

Every write goes through a temporary neighbour (`.<name>.<12 hex>.tmp`), every commit through a staged one
(`.<name>.<run id>.staged`). At start, with the home's lock held and no run begun, those of our own folders are nobody's.
Only those: a neighbour in `commands/` may be a drop that another process is making right now.

A run whose process died before it was marked as active never began: its command file is there and runs anew.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from council.engine.journal import JOURNAL, FileJournal
from council.engine.outputs import OutputLedger
from council.engine.runs import Run
from council.errors import JournalDamaged, StorageFailed
from council.settings import Home
from council.storage.files import is_temporary

log = logging.getLogger(__name__)


def sweep(home: Home, unfinished: Iterable[Run]) -> None:
    """Removes them. What cannot be looked at or removed is left, and said."""
    runs = list(unfinished)
    uncommitted = tuple(f".{run.id}.staged" for run in runs if run.journal.committed is None)
    for folder in sorted(_folders(home, runs)):
        for name in _names(folder):
            if is_temporary(name) or (uncommitted and name.endswith(uncommitted)):
                _remove(folder / name, Path.unlink)
    for folder in _never_begun(home):
        _remove(folder, shutil.rmtree)


def _folders(home: Home, runs: list[Run]) -> set[Path]:
    """Where a daemon may have been writing. The folder of a run that has ended is whole, unless its artifact was just being
    kept there before another took its place."""
    written = OutputLedger(home.runtime / "outputs")
    folders = {home.runtime, home.receipts, home.schedule_marks, home.failed, home.artifacts}
    folders |= {home.runtime / "ids", home.runtime / "outputs", home.session_states, home.runtime / "memory"}
    for run in runs:
        lane = run.header.lane
        folders |= {home.runs / run.id, home.runs / run.id / "blobs"}
        folders |= {home.session_states / lane, home.runtime / "memory" / lane}
        folders |= set((home.session_states / "archive" / lane).glob("*"))
        folders |= {(home.root / path).parent for path in (run.header.output_path, run.output_path) if path}
        former = written.read(run.header.output_path)
        folders |= {home.runs / former.run_id} if former is not None else set()
        folders |= set(_rewritten(home, written)) if run.header.type == "forget" else set()
    return folders


def _rewritten(home: Home, written: OutputLedger) -> Iterator[Path]:
    """A forget command may have been writing anywhere."""
    for top in (home.runtime, home.session_states):
        yield from (Path(folder) for folder, _, _ in os.walk(top))
    yield from ((home.root / entry.path).parent for entry in written.entries())


def _never_begun(home: Home) -> Iterator[Path]:
    known = {name.removesuffix(".json") for name in _names(home.receipts)} | set(_names(home.runtime / "active"))
    for name in _names(home.runs):
        if name in known or name.startswith("."):
            continue
        folder = home.runs / name
        try:
            journal = FileJournal.read(folder / JOURNAL)
        except (JournalDamaged, StorageFailed):
            continue
        if journal.attempts == 0 and journal.step_count == 0 and journal.committed is None:
            yield folder


def _names(folder: Path) -> list[str]:
    """What lies in the folder; nothing where there is none, or a link in its place."""
    if folder.is_symlink():
        return []
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        log.warning("%s cannot be searched for leftovers: %s", folder, error.strerror)
        return []


def _remove(path: Path, remove: Callable[[Path], object]) -> None:
    try:
        remove(path)
    except OSError as error:
        log.warning("%s is left over from a killed process and cannot be removed: %s", path, error.strerror)
