"""Leftovers: files that a process leaves beside its own when it is killed in the middle of a write.

Every write goes through a temporary neighbour (`.<name>.<12 hex>.tmp`), every commit through a staged one (`.<name>.<run
id>.staged`). With the home's lock held and no run begun, those of our own folders are nobody's. A fresh neighbour in
`commands/` may be a drop that another process is making right now. In `.council/` the audit's head may be: whoever writes there
without the home's lock holds that of the folder meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from council.commands.types import CommandTypes
from council.engine.outputs import all_written
from council.engine.runs import Run
from council.errors import PathRefused, StorageFailed
from council.settings import Home
from council.storage.files import is_temporary, locked
from council.storage.paths import check_relative
from council.storage.reader import Looking

log = logging.getLogger(__name__)

_STAGED = re.compile(r"\..+\.([0-9]{8}-[0-9]{6}-[0-9a-z]{8})\.staged", re.DOTALL)
_LOCK_PATIENCE_S = 10.0  # for who writes and syncs a small file
_DROP_PATIENCE_S = 3_600.0  # no drop takes longer than this between its temporary file and its name


def sweep(home: Home, types: CommandTypes, unfinished: Sequence[Run]) -> None:
    """Removes at start what lies where the unfinished runs were writing. What cannot be removed is left, and said."""
    folders = _own_folders(home)
    for header in (run.header for run in unfinished):
        type_ = types.get(header.type)
        if type_ is None or type_.writes_anywhere:
            folders |= _memory_folders(home)
        folders.add(home.session_states / header.lane)
        folders |= set((home.session_states / "archive" / header.lane).glob("*"))
        folders |= {(home.root / header.output_path).parent} if header.output_path else set()
    uncommitted = {run.id for run in unfinished if run.journal.committed is None}
    for path in _strays(home, folders, lambda run_id: run_id in uncommitted):
        try:
            path.unlink()
        except OSError as error:
            log.warning("%s is left over from a killed process and cannot be removed: %s", path, error.strerror)


def strays(home: Home, store: Looking, unfinished: Collection[str]) -> Iterator[Path]:
    """Leftovers in all our folders. `unfinished` runs may still want their staged files. Raises StorageFailed."""
    folders = _own_folders(home) | _memory_folders(home)
    for written in all_written(store):
        with contextlib.suppress(PathRefused):  # rules have changed since
            folders.add(home.root.joinpath(*check_relative(written.path)).parent)
    yield from _strays(home, folders, lambda run_id: run_id not in unfinished)
    for path in _strays(home, {home.commands}, lambda run_id: False):
        if time.time() - path.stat().st_mtime > _DROP_PATIENCE_S:
            yield path


def _own_folders(home: Home) -> set[Path]:
    return {home.runtime, home.schedule_marks, home.failed, home.artifacts, home.session_states}


def _memory_folders(home: Home) -> set[Path]:
    return {path for path in home.session_states.rglob("*") if path.is_dir() and not path.is_symlink()}


def _strays(home: Home, folders: Collection[Path], is_nobodys: Callable[[str], bool]) -> Iterator[Path]:
    """Finds stray files. Those in the run-time folder count only while nobody writes there."""
    for folder in sorted(folders):
        if folder.is_symlink() or not folder.exists():
            continue
        try:
            with locked(folder, _LOCK_PATIENCE_S) if folder == home.runtime else contextlib.nullcontext():
                names = sorted(os.listdir(folder))
        except NotADirectoryError:
            continue
        except (StorageFailed, OSError) as error:
            log.warning("%s cannot be searched for leftovers: %s", folder, error)
            continue
        for name in names:
            staged = _STAGED.fullmatch(name)
            if is_temporary(name) or (staged is not None and is_nobodys(staged[1])):
                yield folder / name
