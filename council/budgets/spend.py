"""Costs of calls: reserved before they are made, settled after. One row each, of its run and of its day."""

from __future__ import annotations

import operator
from collections.abc import Callable

import msgspec

from council.budgets import statements as sql
from council.ids import Clock
from council.storage.reader import Looking
from council.storage.store import Store, Tx


class Reservation(msgspec.Struct, frozen=True):
    """A call is about to be made: its worst case. `usd` is None when the price is unknown."""

    call: str
    tokens: int
    usd: float | None = 0.0
    closing: bool = False


class Totals(msgspec.Struct, frozen=True):
    """Spent and reserved together. `priced_usd` is what the calls of known price cost; `unpriced` counts the others."""

    calls: int = 0
    tokens: int = 0
    priced_usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0

    @property
    def usd(self) -> float | None:
        """The money spent. None as soon as one call's price is unknown."""
        return None if self.unpriced else self.priced_usd

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(operator.add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


def day_totals(store: Looking, day: str) -> Totals:
    """All runs of a day (`2026-11-20`, UTC) together. Raises StorageFailed."""
    return store.read(lambda tx: Totals(*tx.execute(sql.OF_DAY, (day,)).fetchone()))


class Spend:
    """The spending and reservations of one attempt of a run. A reservation that a kill leaves is charged in full."""

    def __init__(self, store: Store, run_id: str, attempt: int, clock: Clock) -> None:
        """Raises StorageFailed."""
        self._store = store
        self._run_id = run_id
        self._attempt = attempt
        self._clock = clock
        self._open: dict[str, Reservation] = {}  # not settled: in flight, or cut off by a kill
        self._settled = Totals()
        rows = store.read(lambda tx: tx.execute(sql.OF_ATTEMPT, (run_id, attempt)).fetchall())
        for call, state, closing, tokens, usd, seconds in rows:
            if state == "begin":
                self._open[call] = Reservation(call, tokens, usd, bool(closing))
            else:
                self._settled += _one(tokens, usd, seconds)
        self._cut_off = [entry for entry in self._open.values() if entry.closing]

    @property
    def under_way(self) -> int:
        """The number of calls without a settlement."""
        return len(self._open)

    def take_over_closing(self) -> Reservation | None:
        """The reservation of a closing call that was in flight when an earlier process died, once."""
        return self._cut_off.pop() if self._cut_off else None

    def totals(self) -> Totals:
        """Costs as much as there are calls in flight, however many were made."""
        return sum((_one(entry.tokens, entry.usd, 0.0) for entry in self._open.values()), self._settled)

    def of_day(self) -> Totals:
        """All runs of this day (UTC) together. Raises StorageFailed."""
        return day_totals(self._store, f"{self._clock.now():%Y-%m-%d}")

    async def reserve(self, entry: Reservation, require: Callable[[Totals], None] | None) -> None:
        """The reservation survives a kill when this returns. `require` is asked about the day so far, and refuses by raising:
        what other runs and processes reserve meanwhile counts. Raises what it raises, StorageFailed."""
        day = f"{self._clock.now():%Y-%m-%d}"
        row = (self._run_id, entry.call, self._attempt, day, int(entry.closing), entry.tokens, entry.usd)

        def write(tx: Tx) -> None:
            if require is not None:
                tx.alone(_LOCK)
                require(Totals(*tx.execute(sql.OF_DAY, (day,)).fetchone()))
            tx.execute(sql.RESERVE, row)

        self._open[entry.call] = entry  # at once: calls side by side share one budget
        try:
            await self._store.write(write, durable=False)
        except BaseException:
            self.withdraw(entry)
            raise

    def withdraw(self, entry: Reservation) -> None:
        """The call was not made."""
        self._open.pop(entry.call, None)
        self._store.defer(lambda tx: tx.execute(sql.WITHDRAW, (self._run_id, entry.call)))

    def settle(self, call: str, tokens: int, usd: float | None, seconds: float) -> None:
        """Records what the call came to. Written with what comes next; a kill before that charges it as it was reserved."""
        self._open.pop(call, None)
        self._settled += _one(tokens, usd, seconds)
        values = (tokens, usd, seconds, self._run_id, call)
        self._store.defer(lambda tx: tx.execute(sql.SETTLE, values))


_LOCK = 0x6461796C696D  # "daylim": PostgreSQL's advisory lock of whoever measures by the day


def spent_by(store: Looking, run_id: str) -> Totals:
    """The spending of all attempts of a run. Raises StorageFailed."""
    return store.read(lambda tx: Totals(*tx.execute(sql.OF_RUN, (run_id,)).fetchone()))


def seconds_to_midnight(clock: Clock) -> float:
    """The time until the next day (UTC) begins."""
    now = clock.now()
    return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)


def _one(tokens: int, usd: float | None, seconds: float) -> Totals:
    return Totals(1, tokens, usd or 0.0, seconds, unpriced=int(usd is None))


def drop_before(store: Store, day: str) -> None:
    """Forgets what was spent before that day (YYYY-MM-DD). Raises StorageFailed."""
    store.write_now(lambda tx: tx.execute(sql.DROP_OLD, (day,)), durable=False)
