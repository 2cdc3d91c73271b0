"""Which ended runs are let go of, oldest first, and how: by age, by number, by size on the disk.

A run's folder goes (journal, blobs, earlier artifacts); its row in the ledger stays, marked. Its receipt stays when a
command id is bound to it: an id outlives its run. Artifacts and memory are never touched, and no run that has not ended.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from council.engine.ledger import Entry, Ledger
from council.engine.receipts import Receipts
from council.errors import StorageFailed
from council.settings import Home, Settings

log = logging.getLogger(__name__)

PRUNED = ".pruned-"  # what a run's folder is called from the instant it no longer counts


@dataclass(frozen=True)
class Bounds:
    """None: no bound."""

    days: int | None
    runs: int | None
    total_bytes: int | None


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(settings.keep_days, settings.keep_runs, settings.keep_bytes)


def over(entries: Sequence[Entry], bounds: Bounds, now: datetime) -> list[Entry]:
    """The ended runs that are too many, of `entries`, oldest first: the fewest that must go for all bounds to hold."""
    count, total = len(entries), sum(entry.bytes for entry in entries)
    oldest_ns = int((now - timedelta(days=bounds.days)).timestamp() * 1e9) if bounds.days is not None else 0
    gone = []
    for entry in entries:
        too_old = entry.ended_ns < oldest_ns
        too_many = bounds.runs is not None and count > bounds.runs
        too_large = bounds.total_bytes is not None and total > bounds.total_bytes
        if not (too_old or too_many or too_large):
            break
        gone.append(entry)
        count, total = count - 1, total - entry.bytes
    return gone


def prune(home: Home, ledger: Ledger, receipts: Receipts, entries: Sequence[Entry]) -> list[str]:
    """Lets go of these ended runs; the ids of those that went. What is under way (again) stays. A crash in between leaves
    hidden folders, which the next call removes. Raises StorageFailed."""
    _remove_leftovers(home)
    pruned = []
    for entry in entries:
        if (home.runtime / "active" / entry.run_id).exists():
            continue
        try:
            _remove(home, receipts, entry)
        except OSError as error:
            raise StorageFailed(
                f"cannot prune run {entry.run_id}: {error.strerror}.", fix="make .council/ writable again"
            ) from error
        ledger.mark_pruned(entry.run_id)
        pruned.append(entry.run_id)
    return pruned


def _remove(home: Home, receipts: Receipts, entry: Entry) -> None:
    folder, hidden = home.runs / entry.run_id, home.runs / f"{PRUNED}{entry.run_id}"
    if folder.exists():
        folder.rename(hidden)
        shutil.rmtree(hidden)
    bound = receipts.bound(entry.command_id) if entry.command_id else None
    if bound is None or bound.run_id != entry.run_id:
        (home.receipts / f"{entry.run_id}.json").unlink(missing_ok=True)


def _remove_leftovers(home: Home) -> None:
    for hidden in home.runs.glob(f"{PRUNED}*"):
        shutil.rmtree(hidden, ignore_errors=True)
