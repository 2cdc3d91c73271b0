"""Retention lets go of ended runs, oldest first: by age, by number, by what their journals hold.

A run's journal goes, what was kept of it, and the rows of other tables that go with it. Its receipt and its row stay and say
when and why, so that an id still answers. Only of very many receipts of runs without an id, and of control commands, the
oldest go. Artifacts and memory are never touched, and no run that has not ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from council.budgets.spend import drop_before
from council.engine.ledger import Ledger, RunEntry
from council.engine.receipts import PruneMark, Receipts
from council.ids import Clock, timestamp
from council.settings import Settings
from council.storage.reader import Looking
from council.storage.store import Store

log = logging.getLogger(__name__)

KEPT_RECEIPTS = 20_000  # of control commands, and runs without journal and id: some 40 MB, years of a busy home
SPEND_DAYS = 92  # a quarter, for who checks a bill; Council itself only asks about the present day
_BARE_PER_PASS = 1_000

Setting = Literal["keep_days", "keep_runs", "keep_bytes"]


@dataclass(frozen=True)
class Due:
    """An ended run that is to go, and the setting that asks for it."""

    run_id: str
    finished: str
    bytes: int
    by: Setting


def over(entries: Sequence[RunEntry], count: int, total_bytes: int, settings: Settings, now: datetime) -> list[Due]:
    """The fewest of `entries`, oldest first, that must go. `count` and `total_bytes` are of all ended runs."""
    oldest_ns = int((now - timedelta(days=settings.keep_days)).timestamp() * 1e9) if settings.keep_days else 0
    gone: list[Due] = []
    for entry in entries:
        if (entry.ended_ns or 0) < oldest_ns:
            by: Setting = "keep_days"
        elif count > settings.keep_runs:
            by = "keep_runs"
        elif total_bytes > settings.keep_bytes:
            by = "keep_bytes"
        else:
            break
        gone.append(Due(entry.run_id, entry.finished, entry.text_bytes, by))
        count, total_bytes = count - 1, total_bytes - entry.text_bytes
    return gone


class Retention:
    """One home's bounds, and what is beyond them."""

    def __init__(self, store: Looking, settings: Settings, clock: Clock, tables: Sequence[str]) -> None:
        """`store`: a `Store`, where anything is to go. `tables` are the modules that declare those of the home."""
        self._store = store
        self._ledger = Ledger(store)
        self._receipts = Receipts(store)
        self._settings = settings
        self._clock = clock
        self._tables = tables

    def due(self, most: int | None = None) -> list[Due]:
        """The runs that are to go, oldest first; None: however many they are. Raises StorageFailed."""
        count, total_bytes = self._ledger.kept()
        entries = self._ledger.ended() if most is None else self._ledger.ended(most)
        return over(entries, count, total_bytes, self._settings, self._clock.now())

    def surplus(self) -> list[str]:
        """Run ids of the oldest receipts beyond KEPT_RECEIPTS: of control commands, whose ids go with them, and of runs without
        journal and id. Raises StorageFailed."""
        return self._ledger.bare(beyond=KEPT_RECEIPTS, count=_BARE_PER_PASS)

    def kept(self) -> int:
        """The number of ended runs that still have their journal. Raises StorageFailed."""
        return self._ledger.kept()[0]

    def prune(self, due: Sequence[Due]) -> Iterator[Due]:
        """Lets go of these runs; each as it goes. One that the steward had resumed meanwhile stays. Raises StorageFailed."""
        if not due:
            return  # a daemon that prunes nothing loads no SQLAlchemy
        from council.upkeep.table_words import drop_rows

        for one in due:
            pruned = PruneMark(timestamp(self._clock.now()), one.by)
            if self._receipts.prune(one.run_id, pruned, partial(drop_rows, rooms=self._tables, run_id=one.run_id)):
                yield one

    def tidy(self) -> Iterator[str]:
        """Removes surplus receipts (the id of each as it goes) and what was spent long ago. Raises StorageFailed."""
        assert isinstance(self._store, Store), "opened to be read"
        kept = timedelta(days=max(SPEND_DAYS, self._settings.keep_days or 0))
        drop_before(self._store, f"{self._clock.now() - kept:%Y-%m-%d}")
        for run_id in self.surplus():
            self._receipts.remove(run_id)
            yield run_id
