"""What may be spent, what was, and a model that asks first.

A call's worst case is reserved before it is made and settled after it, in a log that survives a kill: a reservation
without a settlement was a call in flight, and is charged in full. The cost of the closing call is set aside at the
start, so that a crossed budget still yields an answer. An unknown price is unknown, never zero.

Seconds are those in which a run waits for its models: calls, their place in the provider's queue, the pauses between
attempts. Calls at the same time count once; a time for which the run is parked does not count.

Wraps a Model; neither the engine nor the models know of budgets.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal, Unpack

import msgspec

from council.errors import ConfigError, CouncilError, ModelError, StorageFailed
from council.ids import Clock
from council.llm.base import Asked, Message, Model, ModelAround, Reply, Usage
from council.llm.embeddings import Embedded, Embedder, EmbedderAround, Purpose

log = logging.getLogger(__name__)

_MTOK = 1_000_000
_MILLION = Decimal(_MTOK)
_NOTHING = Decimal(0)
_FIRST_CHARS_PER_TOKEN = 3.0  # the safe side before anything is measured: prose has four to five, code three
_CALIBRATION_WEIGHT = 0.2  # of each new measurement: a few calls settle it, one odd one does not upset it
_MARGIN = 1.15  # estimates are a little high: a reservation that is too small would break the promise
_DEFAULT_OUTPUT_TOKENS = 8192
CLOSING = "synthesis"
_SELLERS = {"gemini": "google", "openai": "openai", "openrouter": "openrouter"}  # as the price table calls them
_LEAST_OUTPUT_TOKENS = 256  # of a closing call: a shorter answer is of no use
_MAX_OPEN_LOGS = 16  # as many as runs commonly go side by side, and the day's
_LEAST_SECONDS = 1e-6  # a call takes time, and nobody knows how much: there must be some left
# A note on the cancellation that ended a call: it may be billed, and has no answer.
CALL_CUT_OFF = "a call to a model was under way"
# The provider refused before it worked: the call counts, its tokens do not. Any other failure may have been billed.
_UNBILLED = frozenset({"auth", "billing", "not_found", "request", "rate", "overload", "server"})

Meter = Literal["calls", "tokens", "usd", "seconds"]


class BudgetSpent(CouncilError):
    """The next call would cross a limit. `scope` and `meter` say which; `tomorrow` is True when the call fits into the
    budget of a new day, and False when it never will, or when it is the command's own budget."""

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
        setting = f"the setting day_max_{meter}" if scope == "day" else f"max_{meter} in the command's config.budget"
        tomorrow = ", or wait for the next day (UTC)" if scope == "day" and fits else ""
        super().__init__(
            f"the {scope}'s budget of {_shown(meter, limit)} {_UNITS[meter]} {why}.",
            fix=f"raise {setting}{least}{tomorrow}",
        )
        self.scope = scope
        self.meter = meter
        self.tomorrow = scope == "day" and fits


_UNITS: dict[Meter, str] = {"calls": "calls", "tokens": "tokens", "usd": "USD", "seconds": "s"}
_ROUNDING = 1e-9  # of sums of dollars


def _shown(meter: Meter, amount: float) -> str:
    return f"{amount:.0f}" if meter in ("calls", "tokens") else f"{amount:.4g}"


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds; None is no bound. `max_tokens` counts input and output together."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    max_seconds: float | None = None

    @property
    def bounded(self) -> bool:
        return any(value is not None for value in (self.max_calls, self.max_tokens, self.max_usd, self.max_seconds))


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens; a part of the input that a cache served may cost less. A call of more than
    `long_above` input tokens costs `long` instead."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    long_above: int = 0
    long: Price | None = None

    @property
    def is_free(self) -> bool:
        return not (self.input or self.output or self.cached or self.long is not None)

    def cost(self, usage: Usage) -> Decimal:
        """Of one call."""
        if self.is_free:
            return _NOTHING
        if self.long is not None and usage.input_tokens > self.long_above:
            return self.long.cost(usage)
        cached = self.input if self.cached is None else self.cached
        fresh_tokens = max(0, usage.input_tokens - usage.cached_tokens)
        return (fresh_tokens * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION


class Prices:
    """Prices by model name: the override table first, then the bundled ones (genai-prices, offline)."""

    def __init__(self, overrides: Mapping[str, Price]) -> None:
        self._overrides = overrides

    def of(self, model: str) -> Price | None:
        """The price of `provider:id`, None when nobody knows it. Our own stand-ins for a model cost nothing. An override
        may name the model, its id, or a provider for all of its models."""
        provider, _, model_id = model.partition(":")
        for name in (model, model_id, provider):
            if name in self._overrides:
                return self._overrides[name]
        if provider in ("offline", "scripted", "cassette"):
            return Price(Decimal(0), Decimal(0), Decimal(0))
        # A model of that name elsewhere has another price: a server that is not in the table is not looked up.
        seller = _SELLERS.get(provider)
        return _bundled_price(model_id, seller) if seller is not None else None


def _bundled_price(model_id: str, provider_id: str) -> Price | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    def cost(input_tokens: int, output_tokens: int = 0, cached_tokens: int = 0) -> Decimal:
        usage = PricedUsage(
            input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens or None
        )
        return calc_price(usage, model_ref=model_id, provider_id=provider_id).total_price

    def price_at(tokens: int) -> Price:
        """Of calls of about so many input tokens, all of them cached or none."""
        fresh = cost(tokens)
        output = cost(tokens, _MTOK) - fresh
        return Price(fresh * _MTOK / tokens, output, cost(tokens, 0, tokens) * _MTOK / tokens)

    try:
        short, long = price_at(1), price_at(_MTOK)
    except LookupError:
        return None
    if short == long:
        return short
    low, high = 1, _MTOK  # where the long price begins
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if price_at(middle) == short else (low, middle)
    return msgspec.structs.replace(short, long_above=low, long=long)


# ── what was spent ───────────────────────────────────────────────────────────────────────────────────────────────────


class Reserved(msgspec.Struct, frozen=True, tag="begin", tag_field="t", omit_defaults=True):
    """A call is about to be made: its worst case. `usd` is None when the price is unknown. In a run's own log `run_id` is
    empty."""

    call: str
    tokens: int
    usd: float | None = 0.0
    run_id: str = ""
    closing: bool = False


class Settled(msgspec.Struct, frozen=True, tag="end", tag_field="t", omit_defaults=True):
    """What the call of the same name came to."""

    call: str
    tokens: int
    usd: float | None = 0.0
    seconds: float = 0.0
    run_id: str = ""


class NotMade(msgspec.Struct, frozen=True, tag="void", tag_field="t", omit_defaults=True):
    """The call of that name was never made: its reservation counts for nothing."""

    call: str
    run_id: str = ""


Entry = Reserved | Settled | NotMade


class Totals(msgspec.Struct, frozen=True):
    """Spent and reserved together. `priced_usd` is what the calls of known price cost; `unpriced` counts the others."""

    calls: int = 0
    tokens: int = 0
    priced_usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0

    @property
    def usd(self) -> float | None:
        """None as soon as one call's price is unknown."""
        return None if self.unpriced else self.priced_usd

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.priced_usd + other.priced_usd,
            self.seconds + other.seconds,
            self.unpriced + other.unpriced,
        )


class _OpenFiles:
    """Files that were appended to last, a few of them left open: a daemon has a log for every run that it ever had."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Path, int] = OrderedDict()  # the one used last at the end

    def append(self, path: Path, data: bytes) -> None:
        """All of `data` at the end of a file, which is made where there is none. Raises OSError."""
        fd = self._open.get(path)
        if fd is not None and os.fstat(fd).st_nlink:
            self._open.move_to_end(path)
        else:
            fd = self._reopened(path)
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _reopened(self, path: Path) -> int:
        old = self._open.pop(path, None)  # of a file that somebody removed
        while old is not None or len(self._open) >= self._most:
            os.close(old if old is not None else self._open.popitem(last=False)[1])
            old = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        self._open[path] = fd
        return fd


_FILES = _OpenFiles(_MAX_OPEN_LOGS)


class SpendLog:
    """Reservations and settlements in one append-only file, unsynced: a kill loses none, a power cut at most the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[tuple[str, str], Reserved] = {}  # not settled: in flight, or cut off by a kill
        self._settled = Totals()
        if path.exists():
            for line in path.read_bytes().split(b"\n"):
                self._load(line)
        self._cut_off = [entry for entry in self._open.values() if entry.closing]

    @property
    def under_way(self) -> int:
        """How many calls have no settlement yet."""
        return len(self._open)

    def take_over_closing(self) -> Reserved | None:
        """The reservation of a closing call that was in flight when an earlier process died, once."""
        return self._cut_off.pop() if self._cut_off else None

    def withdraw(self, entry: Reserved) -> None:
        """The call was not made. Where that cannot be noted, it counts again after a restart: on the safe side."""
        self._open.pop((entry.run_id, entry.call), None)
        try:
            self.append(NotMade(entry.call, entry.run_id))
        except StorageFailed as error:
            log.warning("a reservation that came to nothing stands: %s", error)

    def append(self, entry: Entry) -> None:
        """Raises StorageFailed."""
        try:
            _FILES.append(
                self._path, b"\n" + msgspec.json.encode(entry)
            )  # newline first: a torn line spoils only itself
        except OSError as error:
            raise StorageFailed(
                f"cannot note what is spent ({error.strerror}).", fix="make room on the disk", errno=error.errno
            ) from error
        self._note(entry)

    def totals(self) -> Totals:
        """Costs as much as there are calls in flight, however many were made."""
        return sum((_totals_of(entry) for entry in self._open.values()), self._settled)

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, Reserved):
            self._open[(entry.run_id, entry.call)] = entry
            return
        self._open.pop((entry.run_id, entry.call), None)
        if isinstance(entry, Settled):
            self._settled += _totals_of(entry)

    def _load(self, line: bytes) -> None:
        try:
            self._note(msgspec.json.decode(line, type=Entry))
        except msgspec.MsgspecError:
            return  # empty, or torn by a power cut


def _totals_of(entry: Reserved | Settled) -> Totals:
    seconds = entry.seconds if isinstance(entry, Settled) else 0.0
    return Totals(1, entry.tokens, entry.usd or 0.0, seconds, unpriced=int(entry.usd is None))


class DayLogs:
    """One log per day (UTC), so that a day's limit needs no arithmetic with times."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._day: date | None = None
        self._log: SpendLog | None = None

    def today(self) -> SpendLog:
        day = self._clock.now().date()
        if self._log is None or day != self._day:
            self._day, self._log = day, SpendLog(self._folder / f"{day.isoformat()}.jsonl")
        return self._log

    def seconds_to_midnight(self) -> float:
        """Until the next day (UTC) begins."""
        now = self._clock.now()
        return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)


# ── how many tokens a text has ───────────────────────────────────────────────────────────────────────────────────────


class Calibration:
    """Characters per token, per model, learnt from what providers count; kept in one small file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chars_per_token: dict[str, float] = {}
        if path.exists():
            try:
                self._chars_per_token = msgspec.json.decode(path.read_bytes(), type=dict[str, float])
            except msgspec.MsgspecError:
                self._chars_per_token = {}  # begins anew, on the safe side

    def tokens(self, model: str, chars: int) -> int:
        """How many tokens `chars` characters are at most, as far as is known."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(chars / per_token * _MARGIN) + 1

    def chars(self, model: str, tokens: int) -> int:
        """How many characters are at most `tokens` tokens, by the same estimate."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(max(0, tokens - 1) * per_token / _MARGIN)

    def learn(self, model: str, chars: int, tokens: int) -> None:
        if tokens <= 0 or chars <= 0:
            return
        measured = chars / tokens
        known = self._chars_per_token.get(model)
        value = measured if known is None else known + _CALIBRATION_WEIGHT * (measured - known)
        self._chars_per_token[model] = min(8.0, max(1.0, value))

    def save(self) -> None:
        from council.storage.files import write_atomic

        write_atomic(self._path, msgspec.json.encode(self._chars_per_token), sync=False)


# ── how long a run waits for its models ──────────────────────────────────────────────────────────────────────────────


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
        """What has passed since `tell`, in seconds."""
        self._count()
        return self._untold_s

    def tell(self) -> float:
        """As `untold_s`, and begins anew."""
        told, self._untold_s = self.untold_s(), 0.0
        return told

    def _count(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._waiting:
            self._untold_s += now_s - self._since_s
        self._since_s = now_s


# ── the model that asks first ────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Budget:
    """The limits of one run and of the day, and the logs they are measured by. `price_of` names a model's price, None when
    nobody knows it; `chair` is the model of the closing call."""

    run_id: str
    command: Limits
    day: Limits
    command_log: SpendLog
    day_log: Callable[[], SpendLog]
    price_of: Callable[[str], Price | None]
    chair: str
    clock: Clock
    closing: Reserved | None = None
    closing_begun: bool = False

    def __post_init__(self) -> None:
        self.watch = Stopwatch(self.clock)

    def require_price(self, model: str) -> None:
        """Raises ConfigError when a limit in dollars is set and the price is not known: nothing could hold it."""
        limited = self.command.max_usd is not None or self.day.max_usd is not None
        if limited and self.price_of(model) is None:
            raise ConfigError(
                f"max_usd is set, and the price of {model} is not known.",
                fix=f'add it to council.toml: [prices."{model}"] input = … output = … (USD per million tokens)',
            )

    def usd(self, model: str, usage: Usage) -> float | None:
        price = self.price_of(model)
        return float(price.cost(usage)) if price is not None else None

    def set_aside(self, input_tokens: int, output_tokens: int) -> None:
        """For the closing call, where there is a limit at all, by the call that is to be made before it: it reads what that
        one reads, and what all those answer that are under way by then."""
        if self.closing_begun or not (self.command.bounded or self.day.bounded):
            return
        answers_tokens = output_tokens * (self.command_log.under_way + 1)
        usage = Usage(input_tokens + answers_tokens, output_tokens)
        tokens, usd = usage.input_tokens + usage.output_tokens, self.usd(self.chair, usage)
        if self.closing is None or tokens > self.closing.tokens:
            self.closing = Reserved(CLOSING, tokens, usd)

    def reserve(self, model: str, input_tokens: int, output_tokens: int, *, closing: bool) -> Reserved:
        """Raises BudgetSpent when the call's worst case does not fit beside what is spent and set aside, StorageFailed.

        A closing call that a kill cut off was allowed, and is made again for the same reservation. One that does not fit
        whole, because estimates are what they are, may answer in fewer tokens than `output_tokens`.
        """
        cut_off = self.command_log.take_over_closing() if closing else None
        if cut_off is not None:
            self.closing_begun = True
            return cut_off
        if closing:
            output_tokens = self._room(model, input_tokens, output_tokens)
        usd = self.usd(model, Usage(input_tokens, output_tokens))
        entry = Reserved(secrets.token_hex(4), input_tokens + output_tokens, usd, closing=closing)
        self._require("command", self.command, self.command_log.totals(), entry)
        self._require("day", self.day, self.day_log().totals(), entry)
        self._note_reserved(entry)
        self.closing_begun = self.closing_begun or closing
        return entry

    def settle(self, model: str, entry: Reserved, usage: Usage | None) -> None:
        """`usage` None: the provider did not count, and the reservation stands as the price of the call; where the model costs
        nothing, there is nothing to count. It stands, too, where the settlement cannot be written: nobody's reply is worth
        less for it."""
        price = self.price_of(model)
        if usage is None and price is not None and price.is_free:
            usage = Usage()
        tokens = usage.input_tokens + usage.output_tokens if usage is not None else entry.tokens
        usd = self.usd(model, usage) if usage is not None else entry.usd
        settled = Settled(entry.call, tokens, usd, round(self.watch.tell(), 6))
        try:
            self.command_log.append(settled)
            self.day_log().append(msgspec.structs.replace(settled, run_id=self.run_id))
        except StorageFailed as error:
            log.warning("a call of run %s is charged as it was reserved: %s", self.run_id, error)

    def seconds_left(self) -> float | None:
        """Of the command's; None: without end."""
        limit = self.command.max_seconds
        return None if limit is None else limit - self._seconds_spent()

    def out_of_time(self) -> BudgetSpent:
        return BudgetSpent("command", "seconds", self.command.max_seconds or 0.0, self._seconds_spent())

    def _seconds_spent(self) -> float:
        return self.command_log.totals().seconds + self.watch.untold_s()

    def _room(self, model: str, input_tokens: int, output_tokens: int) -> int:
        """How many output tokens there is room for, up to `output_tokens` and not below _LEAST_OUTPUT_TOKENS."""
        room: float = output_tokens
        price = self.price_of(model)
        for limits, spent in ((self.command, self.command_log.totals()), (self.day, self.day_log().totals())):
            if limits.max_tokens is not None:
                room = min(room, limits.max_tokens - spent.tokens - input_tokens)
            if limits.max_usd is not None and price is not None:
                unsaid = price.cost(Usage(input_tokens))
                each = float(price.cost(Usage(input_tokens, 1)) - unsaid)
                left = limits.max_usd - spent.priced_usd - float(unsaid)
                room = min(room, left / each if each else room)
        return max(int(room), min(output_tokens, _LEAST_OUTPUT_TOKENS))

    def _note_reserved(self, entry: Reserved) -> None:
        self.command_log.append(entry)
        try:
            self.day_log().append(msgspec.structs.replace(entry, run_id=self.run_id))
        except StorageFailed:
            self.command_log.withdraw(entry)
            raise

    def _require(self, scope: Literal["command", "day"], limits: Limits, spent: Totals, entry: Reserved) -> None:
        """What is set aside for the closing call is kept from all others until that is begun; and it is made however long
        the others took."""
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


class BudgetedModel(ModelAround):
    """A Model that reserves before each call of the inner one, and settles after it."""

    def __init__(
        self, inner: Model, budget: Budget, calibration: Calibration, *, max_output_tokens: int | None
    ) -> None:
        super().__init__(inner)
        self._budget = budget
        self._calibration = calibration
        self._max_output_tokens = max_output_tokens or _DEFAULT_OUTPUT_TOKENS

    async def generate(self, messages: Sequence[Message], **asked: Unpack[Asked]) -> Reply:
        info, name = asked.get("info"), self.name
        chars = len(asked["system"]) + sum(len(message.text) for message in messages)
        output_tokens = asked.get("max_output_tokens") or self._max_output_tokens
        closing = info is not None and info.purpose == CLOSING
        budget, input_tokens = self._budget, self._calibration.tokens(name, chars)
        if not closing:
            budget.set_aside(input_tokens, output_tokens)
        entry = budget.reserve(name, input_tokens, output_tokens, closing=closing)
        if entry.tokens - input_tokens < output_tokens:
            asked["max_output_tokens"] = max(1, entry.tokens - input_tokens)
        usage: Usage | None = None
        with budget.watch:
            try:
                reply = await self._inner.generate(messages, **asked)
                usage = reply.usage
                if usage is not None:
                    self._calibration.learn(name, chars, usage.input_tokens)
                return reply
            except ModelError as error:
                usage = Usage() if error.kind in _UNBILLED else None
                raise
            except asyncio.CancelledError as cancelled:
                cancelled.add_note(CALL_CUT_OFF)
                raise
            finally:
                budget.settle(name, entry, usage)


class BudgetedEmbedder(EmbedderAround):
    """An Embedder that reserves before each call of the inner one, and settles after it."""

    def __init__(self, inner: Embedder, budget: Budget, calibration: Calibration) -> None:
        super().__init__(inner)
        self._budget = budget
        self._calibration = calibration

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embedded:
        """As `Embedder.embed`. Raises BudgetSpent."""
        budget, chars = self._budget, sum(map(len, texts))
        entry = budget.reserve(self.name, self._calibration.tokens(self.name, chars), 0, closing=False)
        usage: Usage | None = None
        with budget.watch:
            try:
                embedded = await self._inner.embed(texts, purpose=purpose)
                usage = embedded.usage
                if usage is not None:
                    self._calibration.learn(self.name, chars, usage.input_tokens)
                return embedded
            except ModelError as error:
                usage = Usage() if error.kind in _UNBILLED else None
                raise
            finally:
                budget.settle(self.name, entry, usage)


class TimedEmbedder(EmbedderAround):
    """An Embedder whose calls, with all that they wait for, count as the run's seconds, and end when those are spent."""

    def __init__(self, inner: Embedder, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embedded:
        """As `Embedder.embed`. Raises BudgetSpent, for a call under way too."""
        budget = self._budget
        with budget.watch:
            try:
                async with asyncio.timeout(budget.seconds_left()) as limit:
                    return await self._inner.embed(texts, purpose=purpose)
            except TimeoutError:
                if limit.expired():
                    raise budget.out_of_time() from None
                raise


class TimedModel(ModelAround):
    """A Model whose calls, with all that they wait for, count as the run's seconds, and end when those are spent: all but
    the closing call, which is made then."""

    def __init__(self, inner: Model, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    async def generate(self, messages: Sequence[Message], **asked: Unpack[Asked]) -> Reply:
        """As `Model.generate`. Raises BudgetSpent, for a call under way too."""
        info, budget = asked.get("info"), self._budget
        closing = info is not None and info.purpose == CLOSING
        with budget.watch:
            try:
                async with asyncio.timeout(None if closing else budget.seconds_left()) as limit:
                    return await self._inner.generate(messages, **asked)
            except TimeoutError:
                if limit.expired():
                    raise budget.out_of_time() from None
                raise
