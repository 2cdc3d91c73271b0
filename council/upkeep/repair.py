"""`council repair`: what a crash or a hand left inconsistent in a home's files, mended or named. The database is `doctor`'s and
`restore`'s matter. Only for who holds the home's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from council.agents.memory import Memory
from council.engine.ledger import Ledger
from council.errors import StorageFailed
from council.knowledge.cortex import catalog
from council.knowledge.cortex.catalog import CatalogDamaged
from council.knowledge.cortex.cortex import SCOPES
from council.settings import Home
from council.storage.store import Store
from council.upkeep.doctor import damaged_sessions
from council.upkeep.leftovers import strays

Outcome = Literal["mended", "waits", "left"]


@dataclass(frozen=True)
class Finding:
    """Something out of order. `outcome`: `mended` (or would be, in a dry run), `waits` (the next start sees to it), `left`
    (a person is needed). `note` says what was done, what the start does, or what the person can do."""

    what: str
    outcome: Outcome
    note: str


def repair(home: Home, store: Store, *, dry_run: bool) -> list[Finding]:
    """Everything found. `dry_run` changes nothing. Nothing that holds a record is deleted. Raises StorageFailed."""
    mend = _looked_at if dry_run else _mended
    return [
        *_temporaries(home, store, mend),
        *_taken(home),
        *_memories(home, store, mend),
        *_indexes(home),
    ]


_Mend = Callable[[str, str, Callable[[], object]], Finding]


def _looked_at(what: str, note: str, mend: Callable[[], object]) -> Finding:
    return Finding(what, "mended", note)


def _mended(what: str, note: str, mend: Callable[[], object]) -> Finding:
    try:
        mend()
    except OSError as error:
        return Finding(what, "left", f"cannot be mended ({error.strerror}): give this user access there")
    except StorageFailed as error:
        return Finding(what, "left", f"cannot be mended: {error}")
    return Finding(what, "mended", note)


def _temporaries(home: Home, store: Store, mend: _Mend) -> Iterator[Finding]:
    for path in list(strays(home, store, Ledger(store).unfinished())):
        what = f"{path.relative_to(home.root).as_posix()} is left of a process that was killed"
        yield mend(what, "removed", partial(path.unlink, missing_ok=True))


def _taken(home: Home) -> Iterator[Finding]:
    """The daemon's to settle: only it knows what came in their place."""
    for path in sorted(home.commands.glob(".*.taken")):
        yield Finding(f"commands/{path.name} was taken and not settled", "waits", "the next start settles it")


def _memories(home: Home, store: Store, mend: _Mend) -> Iterator[Finding]:
    """Session files that do not verify: the last good copy takes their place, as the next run would have it."""
    for session in damaged_sessions(home, store):
        what = f"{session.path.relative_to(home.root).as_posix()} is damaged ({session.reason})"
        if not session.copy:
            note = f"there is no good copy: restore it from a backup, or `{session.reset}` begins anew"
            yield Finding(what, "left", note)
        else:
            load = partial(Memory(home.session_states, store).load, session.role, session.lane)
            yield mend(what, "set aside; the last good copy took its place", load)


def _indexes(home: Home) -> Iterator[Finding]:
    """Only named: a question rebuilds its index by itself."""
    for scope in SCOPES:
        folder = home.runtime / "cortex" / scope
        try:
            missing = catalog.load(folder / "catalog.json") is None and (folder / "index").exists()
            flaw = "its catalog is missing" if missing else ""
        except (CatalogDamaged, StorageFailed) as error:
            flaw = str(error)
        if flaw:
            note = "the next question rebuilds it (now: `council cortex index --rebuild`)"
            yield Finding(f"the index of {scope} cannot be used: {flaw}", "waits", note)
