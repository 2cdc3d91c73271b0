"""What is reserved, what is spent, and what a kill leaves on the bill."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from council.budgets.budget import Budget, BudgetLimits, BudgetSpent, Stopwatch
from council.budgets.metering import BudgetedModel, Calibration
from council.budgets.prices import Price, price_of
from council.budgets.spend import Reservation, Spend, Totals, drop_before, spent_by
from council.errors import ConfigError, ModelError, StorageFailed
from council.ids import Clock, SystemClock
from council.llm.base import Message, Reply, TurnInfo, Usage
from council.storage.marks import set_mark
from council.storage.store import Store
from tests.driver import driver_error, watched

PRICE = Price(Decimal("0.30"), Decimal("2.50"), Decimal("0.03"))


class Provider:
    """Answers with a usage, or fails with an error."""

    name = "gemini:gemini-2.5-flash"
    context_tokens = 1_000_000

    def __init__(self, usage: Usage | None = None, error: BaseException | None = None) -> None:
        self.calls = 0
        self._usage = usage
        self._error = error

    async def generate(self, messages: object, **_: object) -> Reply:
        self.calls += 1
        if self._error is not None:
            raise self._error
        return Reply("yes", "stop", self.name, self._usage)

    async def aclose(self) -> None:
        return None


UNBOUNDED = BudgetLimits()


def spend(store: Store, run_id: str = "run1", clock: Clock | None = None, attempt: int = 0) -> Spend:
    return Spend(store, run_id, attempt, clock or SystemClock())


def budget(
    store: Store,
    command: BudgetLimits = UNBOUNDED,
    day: BudgetLimits = UNBOUNDED,
    price: Price | None = PRICE,
    run_id: str = "run1",
) -> Budget:
    return Budget(command, day, spend(store, run_id), lambda name: price, Provider.name, SystemClock())


def model(store: Store, provider: Provider, limits: Budget) -> BudgetedModel:
    return BudgetedModel(provider, limits, Calibration(store), max_output_tokens=100)  # type: ignore[arg-type]


async def ask(asked: BudgetedModel, purpose: str = "turn", text: str = "?" * 300) -> Reply:
    return await asked.generate([Message("user", text)], system="", info=TurnInfo("A", purpose))  # type: ignore[arg-type]


async def test_the_closing_call_is_set_aside_from_the_start(store: Store) -> None:
    provider = Provider(Usage(100, 50))
    asked = model(store, provider, budget(store, BudgetLimits(max_calls=3)))
    await ask(asked)
    await ask(asked)
    with pytest.raises(BudgetSpent, match="the command's budget of 3 calls"):
        await ask(asked)
    assert (await ask(asked, "synthesis")).text == "yes"
    with pytest.raises(BudgetSpent):
        await ask(asked, "synthesis")
    assert provider.calls == 3


async def test_a_call_whose_worst_case_does_not_fit_is_not_made(store: Store) -> None:
    provider = Provider(Usage(100, 50))
    asked = model(store, provider, budget(store, BudgetLimits(max_tokens=150)))
    with pytest.raises(BudgetSpent, match="150 tokens"):
        await ask(asked)
    assert provider.calls == 0


async def test_dollars_are_reserved_at_the_worst_and_settled_at_the_real_price(store: Store) -> None:
    limits = budget(store, BudgetLimits(max_usd=1.0))
    await ask(model(store, Provider(Usage(1_000, 100, cached_tokens=500)), limits))
    assert limits.spend.totals().usd == pytest.approx((500 * 0.30 + 500 * 0.03 + 100 * 2.50) / 1e6)


async def test_an_unknown_price_with_a_limit_in_dollars_is_refused_and_names_the_override(store: Store) -> None:
    with pytest.raises(ConfigError, match=r"price of gemini:gemini-2\.5-flash is not known") as caught:
        budget(store, BudgetLimits(max_usd=1.0), price=None).require_price(Provider.name)
    assert '[prices."gemini:gemini-2.5-flash"]' in caught.value.fix


async def test_an_unknown_price_is_unknown_and_never_zero(store: Store) -> None:
    limits = budget(store, price=None)
    await ask(model(store, Provider(Usage(10, 10)), limits))
    assert limits.spend.totals().usd is None
    assert limits.spend.totals().tokens == 20


async def test_a_call_that_the_provider_refused_counts_without_tokens_and_one_that_was_cut_off_in_full(
    store: Store,
) -> None:
    refused, cut = budget(store, run_id="run1"), budget(store, run_id="run2")
    with pytest.raises(ModelError):
        await ask(model(store, Provider(error=ModelError("rate", "slow down")), refused))
    with pytest.raises(ModelError):
        await ask(model(store, Provider(error=ModelError("timeout", "no answer")), cut))
    assert (refused.spend.totals().calls, refused.spend.totals().tokens) == (1, 0)
    assert cut.spend.totals().tokens > 100


async def test_a_call_that_never_left_this_machine_costs_nothing_and_counts_as_none(store: Store) -> None:
    limits = budget(store)
    with pytest.raises(ModelError):
        await ask(model(store, Provider(error=ModelError("network", "no such host", unsent=True)), limits))
    store.write_now(lambda tx: None)
    assert limits.spend.totals() == limits.spend.of_day() == spend(store).totals() == Totals()


async def test_a_reservation_that_a_kill_left_open_is_charged_in_full(store: Store) -> None:
    limits = budget(store)
    limits.settle("m", await limits.reserve("m", 100, 100, closing=False), Usage(10, 10))
    await limits.reserve("m", 300, 100, closing=False)
    for again in (spend(store), limits.spend):
        assert (again.totals().calls, again.totals().tokens, again.under_way) == (2, 420, 1)
    assert spent_by(store, "run1") == limits.spend.of_day() == limits.spend.totals()


async def test_a_closing_call_that_a_kill_cut_off_is_made_again_for_its_reservation(store: Store) -> None:
    limits = budget(store, BudgetLimits(max_calls=1))
    cut_off = await limits.reserve("m", 1, 1, closing=True)
    again = budget(store, BudgetLimits(max_calls=1))
    assert await again.reserve("m", 1, 1, closing=True) == cut_off
    again.settle("m", cut_off, Usage(1, 1))
    with pytest.raises(BudgetSpent):
        await again.reserve("m", 1, 1, closing=True)


async def test_a_spent_day_stops_every_run_of_the_day(store: Store) -> None:
    first = budget(store, day=BudgetLimits(max_calls=2), run_id="run1")
    other = budget(store, day=BudgetLimits(max_calls=2), run_id="run2")
    await ask(model(store, Provider(Usage(1, 1)), first))
    with pytest.raises(BudgetSpent) as caught:  # the last call of the day is kept for its closing one
        await ask(model(store, Provider(Usage(1, 1)), other))
    assert caught.value.tomorrow
    assert other.spend.totals() == Totals()


async def test_calls_that_are_reserved_at_once_respect_one_day_in_two_processes(
    tmp_path: Path, database_url: str | None
) -> None:
    stores = [Store.open(tmp_path, database_url) for _ in range(2)]
    limits = [
        budget(store, day=BudgetLimits(max_tokens=1_000), run_id=f"{number}-{run}")
        for number, store in enumerate(stores)
        for run in range(10)
    ]
    reserved = await asyncio.gather(
        *(limit.reserve("m", 100, 0, closing=False) for limit in limits), return_exceptions=True
    )
    assert sum(isinstance(one, Reservation) for one in reserved) == 10
    assert sum(isinstance(one, BudgetSpent) for one in reserved) == 10
    assert [spend(store).of_day().tokens for store in stores] == [1_000, 1_000]
    for store in stores:
        store.close()


class DayClock(SystemClock):
    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


async def test_a_new_day_begins_at_midnight_and_old_ones_are_let_go_of(store: Store) -> None:
    clock = DayClock()
    spent = spend(store, clock=clock)
    await spent.reserve(Reservation("call1", 100), None)
    assert spent.of_day().tokens == 100
    clock.moment += timedelta(minutes=1)
    assert spent.of_day() == Totals()
    await spent.reserve(Reservation("call2", 10), None)
    drop_before(store, "2026-11-21")
    assert spent_by(store, "run1").tokens == 10
    assert spent.totals().tokens == 110


async def test_a_retry_has_the_whole_budget_and_the_run_bears_what_all_its_attempts_spent(store: Store) -> None:
    first, second = spend(store), spend(store, attempt=1)
    await first.reserve(Reservation("call1", 100), None)
    await second.reserve(Reservation("call2", 10), None)
    assert (spend(store).totals().tokens, spend(store, attempt=1).totals().tokens) == (100, 10)
    assert spent_by(store, "run1").tokens == 110


class HeldClock(SystemClock):
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_s(self) -> float:
        return self.seconds


def test_calls_at_the_same_time_count_once(store: Store) -> None:
    watch = Stopwatch(clock := HeldClock())
    with watch:
        clock.seconds += 1
        with watch:
            clock.seconds += 2
            assert watch.tell() == 3
        clock.seconds += 4
    clock.seconds += 100
    with watch:
        clock.seconds += 5
    assert (watch.tell(), watch.tell()) == (9, 0)


async def test_a_reservation_that_was_withdrawn_counts_for_nothing_after_a_restart_either(store: Store) -> None:
    spent = spend(store)
    entry = Reservation("call", 100, 0.5)
    await spent.reserve(entry, None)
    spent.withdraw(entry)
    store.write_now(lambda tx: None)
    assert spend(store).totals() == spent.totals() == spent.of_day() == Totals()


async def test_a_reservation_that_nobody_waits_for_any_more_counts_for_nothing(store: Store) -> None:
    spent = spend(store)
    task = asyncio.ensure_future(spent.reserve(Reservation("given up", 100), None))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    store.write_now(lambda tx: None)
    assert spend(store).totals() == spent.totals() == Totals()


async def test_what_is_set_aside_for_the_closing_call_is_free_once_that_was_made(store: Store) -> None:
    limits = budget(store, BudgetLimits(max_calls=3))
    limits.set_aside(1, 1)
    limits.settle("m", await limits.reserve("m", 1, 1, closing=True), Usage(1, 1))
    await limits.reserve("m", 1, 1, closing=False)
    await limits.reserve("m", 1, 1, closing=False)
    with pytest.raises(BudgetSpent):
        await limits.reserve("m", 1, 1, closing=False)


def test_the_calibration_comes_near_what_the_provider_counts_and_is_kept(store: Store) -> None:
    calibration = Calibration(store)
    assert calibration.tokens("m", 3_000) >= 1_000
    for _ in range(20):
        calibration.learn("m", 4_500, 1_000)
    calibration.save(store)
    assert 1_000 <= Calibration(store).tokens("m", 4_500) <= 1_200


async def test_a_call_whose_reservation_is_refused_is_not_made_and_costs_nothing(store: Store) -> None:
    limits, provider = budget(store), Provider(Usage(100, 50))
    asked = model(store, provider, limits)
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        with pytest.raises(StorageFailed):
            await ask(asked)
    store.write_now(lambda tx: None)
    assert provider.calls == 0
    assert limits.spend.totals() == limits.spend.of_day() == spend(store).totals() == Totals()


def test_estimates_that_somebody_wrote_stay_within_what_a_token_can_be(store: Store) -> None:
    set_mark(store, "calibration", json.dumps({"none": 0, "negative": -4, "huge": 1e300}))
    learnt = Calibration(store)
    assert learnt.tokens("none", 1_000) == learnt.tokens("negative", 1_000) >= 1_000
    assert learnt.tokens("huge", 8_000) >= 1_000


def test_estimates_that_cannot_be_kept_are_a_warning(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    calibration = Calibration(store)
    calibration.learn("m", 4_500, 1_000)
    with watched(store) as driver:
        driver.before["COMMIT"] = driver_error(store, code=13)
        calibration.save(store)
    assert "could not be saved" in caplog.text


def test_bundled_prices_are_known_offline_and_overrides_win() -> None:
    price = price_of("gemini:gemini-2.5-flash", {})
    assert price is not None
    assert price.cost(Usage(1_000_000, 0)) == Decimal("0.30")
    assert price_of("gemini:no-such-model-anywhere", {}) is None
    assert price_of("openai:gpt-4o-mini", {}) is not None
    assert price_of("gemini:gemini-2.5-flash", {"gemini:gemini-2.5-flash": Price(Decimal(9), Decimal(9))}) == Price(
        Decimal(9), Decimal(9)
    )


async def test_totals_are_the_same_after_a_restart_and_count_an_unsettled_call_in_full(store: Store) -> None:
    spent = spend(store)
    for number in range(3):
        await spent.reserve(Reservation(f"call{number}", 100, 0.5), None)
    spent.settle("call0", 40, 0.25, 1.5)
    spent.settle("call1", 60, None, 0.5)
    store.write_now(lambda tx: None)
    for known in (spent, spend(store)):
        assert known.totals() == Totals(calls=3, tokens=200, priced_usd=0.75, seconds=2.0, unpriced=1)
        assert known.totals().usd is None
    spent.settle("call2", 10, 0.0, 1.0)
    store.write_now(lambda tx: None)
    assert spend(store).totals() == spent.totals() == spent.of_day() == Totals(3, 110, 0.25, 3.0, unpriced=1)


def test_a_long_call_costs_what_long_calls_cost() -> None:
    price = price_of("gemini:gemini-2.5-pro", {})
    assert price is not None
    assert price.cost(Usage(200_000, 1_000)) == Decimal("0.26")
    assert price.cost(Usage(200_001, 1_000)) == Decimal("0.5150025")
    assert price.cost(Usage(12, 7)) == Decimal("0.000085")


def test_a_server_that_sells_nothing_we_know_has_no_price_until_it_is_given_one() -> None:
    for model in ("ollama:gpt-4o-mini", "my-server:gpt-4o-mini", "huggingface:Qwen/Qwen2.5-7B-Instruct"):
        assert price_of(model, {}) is None
    free = Price(Decimal(0), Decimal(0))
    assert price_of("ollama:qwen2.5:7b", {"ollama": free}) == free


FREE = Price(Decimal(0), Decimal(0))


@pytest.mark.parametrize(
    ("price", "charged"), [(FREE, 0), (PRICE, 200), (None, 200)], ids=["free", "priced", "unknown"]
)
async def test_a_call_that_nobody_counted_is_charged_in_full_unless_it_costs_nothing(
    store: Store, price: Price | None, charged: int
) -> None:
    limits = budget(store, price=price)
    limits.settle("m", await limits.reserve("m", 100, 100, closing=False), None)
    store.write_now(lambda tx: None)
    assert limits.spend.totals().tokens == limits.spend.of_day().tokens == charged
    assert (limits.spend.totals().calls, limits.spend.under_way) == (1, 0)
