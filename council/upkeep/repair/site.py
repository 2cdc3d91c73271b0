"""What every part of a repair works on: the home, what is known of it so far, and how a finding is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from council.engine.journal import JOURNAL
from council.engine.ledger import Entry
from council.engine.receipts import Receipt, Receipts
from council.engine.records import RunHeader
from council.errors import StorageFailed
from council.settings import Home
from council.storage.paths import ConfinedRoot

Outcome = Literal["mended", "waits", "left"]


@dataclass(frozen=True)
class Finding:
    """Something out of order. `outcome`: `mended` (or would be, in a dry run), `waits` (the next start sees to it), `left`
    (a person is needed). `note` says what was done, what the start does, or what the person can do."""

    what: str
    outcome: Outcome
    note: str


@dataclass
class Site:
    """One home under repair, its lock taken. In a dry run nothing is changed, but what is known goes on as if it were."""

    home: Home
    root: ConfinedRoot
    receipts: Receipts
    rows: dict[str, Entry]  # of the run ledger as it was found
    dry_run: bool
    set_aside: bool
    active: set[str] = field(default_factory=set)  # runs with a marker
    answered: dict[str, Receipt] = field(default_factory=dict)  # whole receipts, and those written again
    ends: dict[str, int] = field(default_factory=dict)  # when those written again had ended, in nanoseconds
    gone: set[str] = field(default_factory=set)  # folders that were removed
    unfinished: dict[str, RunHeader] = field(default_factory=dict)  # runs that the next start goes on with

    def __post_init__(self) -> None:
        self.active = set(names_in(self.home.runtime / "active"))

    def marker(self, run_id: str) -> Path:
        return self.home.runtime / "active" / run_id

    def journal(self, run_id: str) -> Path:
        return self.home.runs / run_id / JOURNAL

    def shown(self, path: Path) -> str:
        return path.relative_to(self.home.root).as_posix()

    def mended(self, what: str, note: str, mend: Callable[[], object]) -> Finding:
        """The finding once `mend` was done; where the disk refuses, it is left."""
        if not self.dry_run:
            try:
                mend()
            except OSError as error:
                return Finding(what, "left", f"cannot be mended ({error.strerror}): give this user access there")
            except StorageFailed as error:
                return Finding(what, "left", f"cannot be mended: {error}")
        return Finding(what, "mended", note)

    def ended_ns(self, run_id: str) -> int:
        """When the run ended, as far as that can still be told: by its receipt, the ledger, its journal's last record."""
        if run_id in self.ends:
            return self.ends[run_id]
        return self.receipts.written_ns(run_id)

    def end_from_elsewhere(self, run_id: str) -> int:
        row = self.rows.get(run_id)
        return row.ended_ns if row is not None and row.ended_ns else self.journal(run_id).stat().st_mtime_ns


def names_in(folder: Path) -> list[str]:
    """What lies in the folder, in order; nothing where there is none."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def free_name(path: Path) -> Path:
    """`path`, or the next with a number at its end."""
    number = 1
    free = path
    while free.exists() or free.is_symlink():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
