"""`council repair`: what a crash or a hand left inconsistent in a home's files, mended or named. The database is `doctor`'s and
`restore`'s matter. Only for who holds the home's lock.

A process that is killed in the middle of a write leaves files beside its own. Every write goes through a temporary neighbour
(`.<name>.<12 hex>.tmp`), every commit through a staged one (`.<name>.<run id>.staged`). With the home's lock held and no run
begun, those of our own folders are nobody's. A fresh neighbour in `commands/` may be a drop that another process is making right
now. In `.council/` the audit's head may be: whoever writes there without the home's lock holds that of the folder meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from council.agents.memory import Memory
from council.agents.session_file import decode_session
from council.commands.types import CommandTypes
from council.engine.ledger import Ledger
from council.engine.outputs import all_written
from council.engine.runs import Run
from council.errors import PathRefused, StorageFailed
from council.knowledge.cortex import catalog
from council.knowledge.cortex.catalog import CatalogDamaged
from council.knowledge.cortex.cortex import SCOPES
from council.settings import Home
from council.storage.files import is_temporary, locked
from council.storage.paths import check_relative
from council.storage.reader import Looking
from council.storage.store import Store
from council.upkeep.copies import half_copies
from council.upkeep.text_files import owner_of

log = logging.getLogger(__name__)

_STAGED = re.compile(r"\..+\.([0-9]{8}-[0-9]{6}-[0-9a-z]{8})\.staged", re.DOTALL)
_LOCK_PATIENCE_S = 10.0  # for who writes and syncs a small file
_DROP_PATIENCE_S = 3_600.0  # no drop takes longer than this between its temporary file and its name

Outcome = Literal["mended", "waits", "left"]


@dataclass(frozen=True)
class Flaw:
    """Something out of order. `outcome`: `mended` (or would be, in a dry run), `waits` (the next start sees to it), `left`
    (a person is needed). `note` says what was done, what the start does, or what the person can do."""

    what: str
    outcome: Outcome
    note: str


def repair(home: Home, store: Store, *, dry_run: bool) -> list[Flaw]:
    """Everything found. `dry_run` changes nothing. Nothing that holds a record is deleted. Raises StorageFailed."""

    def mended(what: str, note: str, mend: Callable[[], object]) -> Flaw:
        try:
            if not dry_run:
                mend()
        except OSError as error:
            return Flaw(what, "left", f"cannot be repaired ({error.strerror}): give this user access there")
        except StorageFailed as error:
            return Flaw(what, "left", f"cannot be repaired: {error}")
        return Flaw(what, "mended", note)

    findings = []
    for path in list(strays(home, store, Ledger(store).unfinished())):
        what = f"{path.relative_to(home.root).as_posix()} is left over from a process that was killed"
        findings.append(mended(what, "removed", partial(path.unlink, missing_ok=True)))
    for path in sorted(home.commands.glob(".*.taken")):  # only the daemon knows what came in their place
        what = f"commands/{path.name} was taken, but not removed or put back"
        findings.append(Flaw(what, "waits", "the next start completes this"))
    for session in damaged_sessions(home, store):
        if session.copy:  # as the next run would have it
            load = partial(Memory(home.session_states, store).load, session.role, session.lane)
            findings.append(mended(session.what, "set aside; the last good copy was restored", load))
        else:
            findings.append(Flaw(session.what, "left", session.fix))
    for scope in SCOPES:
        folder = home.runtime / "cortex" / scope
        try:
            missing = catalog.load(folder / "catalog.json") is None and (folder / "index").exists()
            flaw = "its catalog is missing" if missing else ""
        except (CatalogDamaged, StorageFailed) as error:
            flaw = str(error)
        if flaw:
            note = "the next question rebuilds it (now: `council cortex index --rebuild`)"
            findings.append(Flaw(f"the index of {scope} cannot be used: {flaw}", "waits", note))
    return findings


@dataclass(frozen=True)
class DamagedSession:
    """`what` names the file and its fault. `copy`: there is a last good copy, which is whole; without one `fix` is for a
    person. `stops`: no run of its agent can begin."""

    role: str
    lane: str
    what: str
    fix: str
    copy: bool = False
    stops: bool = False


def damaged_sessions(home: Home, store: Looking) -> list[DamagedSession]:
    """The session files that do not verify, and each link that leads to some."""
    memory, found = Memory(home.session_states, store), dict[str, DamagedSession]()
    for path in session_files(home):
        role, lane = owner_of(path)
        try:
            reason = memory.read(path, role, lane)[1]
        except PathRefused as link:
            found[link.message] = DamagedSession(role, lane, link.message, link.fix, stops=True)
            continue
        except OSError as error:
            reason = error.strerror or "cannot be read"
        if reason:
            copy = memory.copy(role, lane)
            is_whole = copy is not None and decode_session(copy, role, lane)[0] is not None
            what = f"{path.relative_to(home.root).as_posix()} is damaged ({reason})"
            reset = f"`council memory reset {role} --lane {lane}` starts over"
            fix = f"there is no good copy: restore it from a backup, or {reset}"
            found[what] = DamagedSession(role, lane, what, fix, is_whole)
    return list(found.values())


def session_files(home: Home) -> list[Path]:
    return sorted([*home.session_states.glob("*_session.json"), *home.session_states.glob("*/*_session.json")])


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
    uncommitted = {run.id for run in unfinished if not run.is_committed}
    for path in (*_strays(home, folders, lambda run_id: run_id in uncommitted), *half_copies(home)):
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
    yield from half_copies(home)
    for path in _strays(home, {home.commands}, lambda run_id: False):
        if time.time() - path.stat().st_mtime > _DROP_PATIENCE_S:
            yield path


def _own_folders(home: Home) -> set[Path]:
    return {home.runtime, home.failed, home.artifacts, home.session_states}


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
