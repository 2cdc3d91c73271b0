"""Which ended runs are let go of, oldest first, and how: by age, by number, by size on the disk.

A run's folder goes (journal, blobs, earlier artifacts). Its receipt and its row in the ledger stay and say when and why,
so that an id still answers and a list can still be built anew; only of very many receipts that answer for no id the oldest
go. Artifacts and memory are never touched, and no run that has not ended.

Letting go is one rename to `.pruned-<setting>-<run id>`, which no part of Council reads; what follows may be cut off
anywhere and is completed by the next pass.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from council.engine.ledger import Entry, Ledger
from council.engine.receipts import Pruned, Receipts
from council.errors import StorageFailed
from council.ids import Clock, timestamp
from council.settings import Home, Settings

log = logging.getLogger(__name__)

PRUNED = ".pruned-"  # what a run's folder is called from the instant it no longer counts
KEPT_RECEIPTS = 20_000  # of runs without folder and id: some 80 MB on the disk, years of a busy home
SPEND_DAYS = 92  # a quarter, for who checks a bill; only the log of the present day is ever read by Council
_FILES_PER_STEP = 50
_BARE_PER_PASS = 1_000
_HIDDEN = re.compile(r"\.pruned-(keep_days|keep_runs|keep_bytes)-(.+)", re.DOTALL)
_DAY_LOG = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.jsonl")

Setting = Literal["keep_days", "keep_runs", "keep_bytes"]


@dataclass(frozen=True)
class Bounds:
    """None: no bound."""

    days: int | None
    runs: int | None
    total_bytes: int | None


@dataclass(frozen=True)
class Due:
    """An ended run that is to go, and the setting that asks for it."""

    run_id: str
    finished: str
    bytes: int
    by: Setting


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(settings.keep_days, settings.keep_runs, settings.keep_bytes)


def over(entries: Sequence[Entry], count: int, total_bytes: int, bounds: Bounds, now: datetime) -> list[Due]:
    """Those of `entries`, the oldest first, that must go for all bounds to hold: the fewest. `count` and `total_bytes` are
    of all ended runs."""
    oldest_ns = int((now - timedelta(days=bounds.days)).timestamp() * 1e9) if bounds.days is not None else 0
    gone: list[Due] = []
    for entry in entries:
        if entry.ended_ns < oldest_ns:
            by: Setting = "keep_days"
        elif bounds.runs is not None and count > bounds.runs:
            by = "keep_runs"
        elif bounds.total_bytes is not None and total_bytes > bounds.total_bytes:
            by = "keep_bytes"
        else:
            break
        gone.append(Due(entry.run_id, entry.finished, entry.bytes, by))
        count, total_bytes = count - 1, total_bytes - entry.bytes
    return gone


class Retention:
    """One home's bounds, and what is beyond them. Only for who holds the home's lock."""

    def __init__(self, home: Home, ledger: Ledger, receipts: Receipts, bounds: Bounds, clock: Clock) -> None:
        self._home = home
        self._ledger = ledger
        self._receipts = receipts
        self._bounds = bounds
        self._clock = clock
        self.failures: list[str] = []  # what could not be removed, and why

    def due(self, most: int = -1) -> list[Due]:
        """The runs that are to go, oldest first; -1: however many they are. Raises StorageFailed."""
        count, total_bytes = self._ledger.kept()
        found = over(self._ledger.ended(most), count, total_bytes, self._bounds, self._clock.now())
        return [due for due in found if self._has_ended(due.run_id)]

    def prune(self, due: Sequence[Due]) -> Iterator[Due | None]:
        """Lets go of these runs in small steps: each run as it goes, None for a step of its removal. What cannot be removed
        is noted in `failures` and tried again by the next pass."""
        yield from self.complete()
        for one in due:
            # NOTE: looked at again: since `due` the steward may have had it resumed.
            if not self._has_ended(one.run_id):
                continue
            try:
                yield from self._let_go(one)
            except (OSError, StorageFailed) as error:
                self._fail(f"run {one.run_id}", error)
                continue
            yield one

    def complete(self) -> Iterator[None]:
        """Removes what an earlier pass was cut off in."""
        for hidden in self.half_pruned():
            try:
                yield from self._remove(hidden)
            except (OSError, StorageFailed) as error:
                self._fail(f"runs/{hidden.name}", error)

    def half_pruned(self) -> list[Path]:
        """Folders that no longer count and are still there."""
        return sorted(path for path in self._home.runs.iterdir() if path.name.startswith(PRUNED))

    def stale_logs(self) -> list[Path]:
        """The logs of days that nobody will look at any more."""
        kept = timedelta(days=max(SPEND_DAYS, self._bounds.days or 0))
        oldest = f"{self._clock.now() - kept:%Y-%m-%d}"
        folder = self._home.runtime / "spend"
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        return [folder / name for name in names if (day := _DAY_LOG.fullmatch(name)) and day[1] < oldest]

    def surplus_receipts(self) -> list[str]:
        """Run ids of the oldest receipts beyond KEPT_RECEIPTS: of runs without folder and without id. Raises StorageFailed."""
        return self._ledger.bare(beyond=KEPT_RECEIPTS, count=_BARE_PER_PASS)

    def tidy(self) -> Iterator[Path]:
        """Removes stale logs and surplus receipts; each path as it goes."""
        for path in self.stale_logs():
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._fail(f"spend/{path.name}", error)
            else:
                yield path
        for run_id in self.surplus_receipts():
            try:
                self._receipts.remove(run_id)
                self._ledger.remove(run_id)
            except StorageFailed as error:
                self._fail(f"receipts/{run_id}.json", error)
            else:
                yield self._home.receipts / f"{run_id}.json"

    # ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _has_ended(self, run_id: str) -> bool:
        """By the signs on the disk: the ledger is an index only, and may be wrong."""
        return not (self._home.runtime / "active" / run_id).exists() and self._receipts.read(run_id) is not None

    def _let_go(self, due: Due) -> Iterator[None]:
        folder, hidden = self._home.runs / due.run_id, self._home.runs / f"{PRUNED}{due.by}-{due.run_id}"
        if folder.exists():
            folder.rename(hidden)
            yield from self._remove(hidden)
        else:  # by hand
            self._ledger.mark_pruned(due.run_id)

    def _remove(self, hidden: Path) -> Iterator[None]:
        run_id = yield from _emptied_and_noted(hidden, self._receipts, self._clock)
        if run_id:
            self._ledger.mark_pruned(run_id)
        hidden.rmdir()

    def _fail(self, what: str, error: OSError | StorageFailed) -> None:
        reason = error.strerror if isinstance(error, OSError) else error.message
        self.failures.append(f"{what} cannot be removed: {reason}")
        log.warning("retention: %s", self.failures[-1])


def complete_one(hidden: Path, receipts: Receipts, clock: Clock) -> None:
    """Completes one pruning without the ledger, which is built anew afterwards. Raises OSError or StorageFailed."""
    for _ in _emptied_and_noted(hidden, receipts, clock):
        pass
    hidden.rmdir()


def _emptied_and_noted(hidden: Path, receipts: Receipts, clock: Clock) -> Generator[None, None, str]:
    """The id of the run whose folder it was. The empty folder is to go last: until then it is the sign that the rest is to be
    done. Room is made before anything is written, for a disk that is full."""
    if hidden.is_symlink():  # to another disk: what it points to is a person's to remove
        hidden.unlink()
        hidden.mkdir()
    yield from _emptied(hidden)
    known = _HIDDEN.fullmatch(hidden.name)
    if known is None:
        return ""
    receipts.mark_pruned(known[2], Pruned(timestamp(clock.now()), known[1]))
    return known[2]


def _emptied(folder: Path) -> Iterator[None]:
    """Removes what is in `folder`, a bounded number of files between two yields. Raises OSError."""
    removed = 0
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(parent, name))
            removed += 1
            if removed % _FILES_PER_STEP == 0:
                yield
        for name in folders:
            path = os.path.join(parent, name)
            os.unlink(path) if os.path.islink(path) else os.rmdir(path)
