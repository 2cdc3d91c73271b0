"""`council repair`: what a crash or a hand left inconsistent in a home's files, mended or named. The database is `doctor`'s and
`restore`'s matter. Only for who holds the home's lock."""

from __future__ import annotations

from collections.abc import Callable
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
        what = f"{session.path.relative_to(home.root).as_posix()} is damaged ({session.reason})"
        if session.copy:  # as the next run would have it
            load = partial(Memory(home.session_states, store).load, session.role, session.lane)
            findings.append(mended(what, "set aside; the last good copy was restored", load))
        else:
            note = f"there is no good copy: restore it from a backup, or `{session.reset}` starts over"
            findings.append(Flaw(what, "left", note))
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
