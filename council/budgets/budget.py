"""The limits of a run and of a day, and what is reserved within them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from council.budgets.prices import Price
from council.budgets.spend import Reservation, Spend, Totals
from council.errors import ConfigError, CouncilError
from council.ids import Clock
from council.llm.base import Usage

_LEAST_OUTPUT_TOKENS = 256  # of a closing call: a shorter answer is of no use
_LEAST_SECONDS = 1e-6  # a call takes time, and nobody knows how much: there must be some left

Meter = Literal["calls", "tokens", "usd", "seconds"]


class BudgetSpent(CouncilError):
    """The next call would cross a limit. `scope` and `meter` say which. `tomorrow` is True when the call fits into the
    budget of a new day. It is False when the call never will, or when the limit is the command's own."""

    code = "budget"
    http_status = 402

    def __init__(
        self,
        scope: Literal["command", "day"],
        meter: Meter,
        limit: float,
        spent: float,
        *,
        needs: float = 0.0,
        kept: float = 0.0,
    ) -> None:
        """`needs` is what the call may come to, `kept` what is set aside for the closing call."""
        fits = needs + kept <= limit + _ROUNDING
        closing = f", {_shown(meter, kept)} kept for the closing call" if kept else ""
        if fits:
            why = f"does not allow another call ({_shown(meter, spent)} spent or reserved{closing})"
        else:
            why = f"is less than this call may need ({_shown(meter, needs)}{closing})"
        least = "" if fits else f" to {_shown(meter, needs + kept)} or more"
        setting = f"the setting day_max_{meter}" if scope == "day" else f"max_{meter} in the command's budget"
        tomorrow = ", or wait for the next day (UTC)" if scope == "day" and fits else ""
        unit = "call" if meter == "calls" and limit == 1 else _UNITS[meter]
        super().__init__(
            f"the {scope}'s budget of {_shown(meter, limit)} {unit} {why}.", fix=f"raise {setting}{least}{tomorrow}"
        )
        self.scope = scope
        self.meter = meter
        self.tomorrow = scope == "day" and fits


_UNITS: dict[Meter, str] = {"calls": "calls", "tokens": "tokens", "usd": "USD", "seconds": "s"}
_ROUNDING = 1e-9  # of sums of dollars


def _shown(meter: Meter, amount: float) -> str:
    return f"{amount:.0f}" if meter in ("calls", "tokens") else f"{amount:.4g}"


class BudgetLimits(msgspec.Struct, frozen=True):
    """Upper bounds; None is no bound. `max_tokens` counts input and output together."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    max_seconds: float | None = None

    @property
    def bounded(self) -> bool:
        return self != BudgetLimits()


class Stopwatch:
    """The time in which somebody waits (`with watch:`), however many do at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting = 0
        self._since_s = 0.0
        self._untold_s = 0.0

    def __enter__(self) -> None:
        self._count()
        self._waiting += 1

    def __exit__(self, *_: object) -> None:
        self._count()
        self._waiting -= 1

    def untold_s(self) -> float:
        """The time since `tell`, in seconds."""
        self._count()
        return self._untold_s

    def tell(self) -> float:
        """Returns `untold_s`, and begins anew."""
        told, self._untold_s = self.untold_s(), 0.0
        return told

    def _count(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._waiting:
            self._untold_s += now_s - self._since_s
        self._since_s = now_s


@dataclass
class Budget:
    """The limits of one run and of the day, and what was spent. `price_of`: a model's price, None when nobody knows it.
    `chair`: the model of the closing call, empty where a run has none."""

    command: BudgetLimits
    day: BudgetLimits
    spend: Spend
    price_of: Callable[[str], Price | None]
    chair: str
    clock: Clock
    closing: Reservation | None = None
    closing_begun: bool = False

    def __post_init__(self) -> None:
        self.watch = Stopwatch(self.clock)

    def require_price(self, model: str) -> None:
        """Raises ConfigError when a limit in dollars is set and the price is not known: nothing could hold it."""
        limited = self.command.max_usd is not None or self.day.max_usd is not None
        if limited and self.price_of(model) is None:
            fix = f'add it to council.toml: [prices."{model}"] input = … output = … (USD per million tokens)'
            raise ConfigError(f"max_usd is set, but the price of {model} is not known.", fix=fix)

    def usd(self, model: str, usage: Usage) -> float | None:
        price = self.price_of(model)
        return float(price.cost(usage)) if price is not None else None

    def set_aside(self, input_tokens: int, output_tokens: int) -> None:
        """Reserves the closing call, where there is a limit at all, by the call that is to be made before it. It reads what
        that call reads, and all the answers that are under way by then. Without a chair there is none."""
        if not self.chair or self.closing_begun or not (self.command.bounded or self.day.bounded):
            return
        answers_tokens = output_tokens * (self.spend.under_way + 1)
        usage = Usage(input_tokens + answers_tokens, output_tokens)
        tokens, usd = usage.input_tokens + usage.output_tokens, self.usd(self.chair, usage)
        if self.closing is None or tokens > self.closing.tokens:
            self.closing = Reservation("closing", tokens, usd)

    async def reserve(self, model: str, input_tokens: int, output_tokens: int, *, closing: bool) -> Reservation:
        """Raises BudgetSpent when the call's worst case does not fit beside what is spent and set aside, StorageFailed.

        A closing call that a kill cut off was allowed, and is made again for the same reservation. One that does not fit
        whole, because estimates are what they are, may answer in fewer tokens than `output_tokens`.
        """
        cut_off = self.spend.take_over_closing() if closing else None
        if cut_off is not None:
            self.closing_begun = True
            return cut_off
        if closing:
            output_tokens = self._room(model, input_tokens, output_tokens)
        usd = self.usd(model, Usage(input_tokens, output_tokens))
        entry = Reservation(secrets.token_hex(4), input_tokens + output_tokens, usd, closing=closing)
        self._require("command", self.command, self.spend.totals(), entry)

        def of_day(spent: Totals) -> None:
            self._require("day", self.day, spent, entry)

        await self.spend.reserve(entry, of_day if self.day.bounded else None)
        self.closing_begun = self.closing_begun or closing
        return entry

    def settle(self, model: str, entry: Reservation, usage: Usage | None) -> None:
        """Charges what a call cost. `usage` None: the provider did not count, and the reservation stands as the price.
        Where the model costs nothing, there is nothing to count."""
        price = self.price_of(model)
        if usage is None and price is not None and price.is_free:
            usage = Usage()
        tokens = usage.input_tokens + usage.output_tokens if usage is not None else entry.tokens
        usd = self.usd(model, usage) if usage is not None else entry.usd
        self.spend.settle(entry.call, tokens, usd, round(self.watch.tell(), 6))

    def seconds_left(self) -> float | None:
        """The seconds that the command has left. None: without end."""
        limit = self.command.max_seconds
        return None if limit is None else limit - self._seconds_spent()

    def out_of_time(self) -> BudgetSpent:
        return BudgetSpent("command", "seconds", self.command.max_seconds or 0.0, self._seconds_spent())

    def _seconds_spent(self) -> float:
        return self.spend.totals().seconds + self.watch.untold_s()

    def _room(self, model: str, input_tokens: int, output_tokens: int) -> int:
        room: float = output_tokens
        price = self.price_of(model)
        of_day = self.spend.of_day() if self.day.bounded else Totals()
        for limits, spent in ((self.command, self.spend.totals()), (self.day, of_day)):
            if limits.max_tokens is not None:
                room = min(room, limits.max_tokens - spent.tokens - input_tokens)
            if limits.max_usd is not None and price is not None:
                unsaid = price.cost(Usage(input_tokens))
                each = float(price.cost(Usage(input_tokens, 1)) - unsaid)
                left = limits.max_usd - spent.priced_usd - float(unsaid)
                room = min(room, left / each if each else room)
        return max(int(room), min(output_tokens, _LEAST_OUTPUT_TOKENS))

    def _require(
        self, scope: Literal["command", "day"], limits: BudgetLimits, spent: Totals, entry: Reservation
    ) -> None:
        """Raises BudgetSpent. The closing call's share is kept from all others until that is begun; it is made however long
        the others took."""
        if not limits.bounded:
            return
        aside = None if entry.closing or self.closing_begun else self.closing
        seconds = spent.seconds + self.watch.untold_s()
        is_first_closing = entry.closing and not self.closing_begun
        needs: list[tuple[Meter, float | None, float, float, float]] = [
            ("calls", limits.max_calls, spent.calls, 1, 1 if aside else 0),
            ("tokens", limits.max_tokens, spent.tokens, entry.tokens, aside.tokens if aside else 0),
            ("usd", limits.max_usd, spent.priced_usd, entry.usd or 0.0, (aside.usd or 0.0) if aside else 0.0),
            ("seconds", None if is_first_closing else limits.max_seconds, seconds, _LEAST_SECONDS, 0.0),
        ]
        for meter, limit, used, more, kept in needs:
            if limit is not None and used + more + kept > limit + _ROUNDING:
                raise BudgetSpent(scope, meter, limit, used, needs=more, kept=kept)
