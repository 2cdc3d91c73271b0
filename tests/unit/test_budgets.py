"""What is reserved, what is spent, and what a kill leaves on the bill."""

from __future__ import annotations

import os
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from council.budgets.budget import Budget, BudgetSpent, Limits, Stopwatch
from council.budgets.calibration import Calibration
from council.budgets.models import BudgetedModel
from council.budgets.prices import Price, Prices
from council.budgets.spend_log import DayLogs, Reserved, Settled, SpendLog, Totals
from council.errors import ConfigError, ModelError, StorageFailed
from council.ids import SystemClock
from council.llm.base import Message, Reply, TurnInfo, Usage

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


UNBOUNDED = Limits()


def budget(folder: Path, command: Limits = UNBOUNDED, day: Limits = UNBOUNDED, price: Price | None = PRICE) -> Budget:
    days = DayLogs(folder / "days", SystemClock())
    log = SpendLog(folder / "run1.jsonl")
    return Budget("run1", command, day, log, days.today, lambda name: price, Provider.name, SystemClock())


def model(folder: Path, provider: Provider, limits: Budget) -> BudgetedModel:
    return BudgetedModel(provider, limits, Calibration(folder / "c.json"), max_output_tokens=100)  # type: ignore[arg-type]


async def ask(asked: BudgetedModel, purpose: str = "turn", text: str = "?" * 300) -> Reply:
    return await asked.generate([Message("user", text)], system="", info=TurnInfo("A", purpose))  # type: ignore[arg-type]


async def test_the_closing_call_is_set_aside_from_the_start(tmp_path: Path) -> None:
    provider = Provider(Usage(100, 50))
    asked = model(tmp_path, provider, budget(tmp_path, Limits(max_calls=3)))
    await ask(asked)
    await ask(asked)
    with pytest.raises(BudgetSpent, match="the command's budget of 3 calls"):
        await ask(asked)
    assert (await ask(asked, "synthesis")).text == "yes"
    with pytest.raises(BudgetSpent):
        await ask(asked, "synthesis")
    assert provider.calls == 3


async def test_a_call_whose_worst_case_does_not_fit_is_not_made(tmp_path: Path) -> None:
    provider = Provider(Usage(100, 50))
    asked = model(tmp_path, provider, budget(tmp_path, Limits(max_tokens=150)))
    with pytest.raises(BudgetSpent, match="150 tokens"):
        await ask(asked)
    assert provider.calls == 0


async def test_dollars_are_reserved_at_the_worst_and_settled_at_the_real_price(tmp_path: Path) -> None:
    limits = budget(tmp_path, Limits(max_usd=1.0))
    await ask(model(tmp_path, Provider(Usage(1_000, 100, cached_tokens=500)), limits))
    assert limits.command_log.totals().usd == pytest.approx((500 * 0.30 + 500 * 0.03 + 100 * 2.50) / 1e6)


async def test_an_unknown_price_with_a_limit_in_dollars_is_refused_and_names_the_override(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"price of gemini:gemini-2\.5-flash is not known") as caught:
        budget(tmp_path, Limits(max_usd=1.0), price=None).require_price(Provider.name)
    assert '[prices."gemini:gemini-2.5-flash"]' in caught.value.fix


async def test_an_unknown_price_is_unknown_and_never_zero(tmp_path: Path) -> None:
    limits = budget(tmp_path, price=None)
    await ask(model(tmp_path, Provider(Usage(10, 10)), limits))
    assert limits.command_log.totals().usd is None
    assert limits.command_log.totals().tokens == 20


async def test_a_call_that_the_provider_refused_counts_without_tokens_and_one_that_was_cut_off_in_full(
    tmp_path: Path,
) -> None:
    refused, cut = budget(tmp_path / "a"), budget(tmp_path / "b")
    with pytest.raises(ModelError):
        await ask(model(tmp_path, Provider(error=ModelError("rate", "slow down")), refused))
    with pytest.raises(ModelError):
        await ask(model(tmp_path, Provider(error=ModelError("timeout", "no answer")), cut))
    assert (refused.command_log.totals().calls, refused.command_log.totals().tokens) == (1, 0)
    assert cut.command_log.totals().tokens > 100


def test_a_reservation_that_a_kill_left_open_is_charged_in_full(tmp_path: Path) -> None:
    limits = budget(tmp_path)
    limits.settle("m", limits.reserve("m", 100, 100, closing=False), Usage(10, 10))
    limits.reserve("m", 300, 100, closing=False)
    again = SpendLog(tmp_path / "run1.jsonl").totals()
    assert (again.calls, again.tokens) == (2, 420)


def test_a_torn_line_spoils_only_itself_and_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limits = budget(tmp_path)
    limits.settle("m", limits.reserve("m", 100, 100, closing=False), Usage(10, 10))
    path = tmp_path / "run1.jsonl"
    path.write_bytes(path.read_bytes()[:-5])  # the settlement is torn: the reservation stands
    log = SpendLog(path)
    assert log.totals().tokens == 200
    assert caplog.messages == []
    day = SpendLog(tmp_path / "another-day.jsonl")
    limits = Budget("run1", Limits(), Limits(), log, lambda: day, lambda name: PRICE, "m", SystemClock())
    limits.reserve("m", 1, 1, closing=False)
    assert SpendLog(path).totals().calls == 2
    assert "run1.jsonl holds lines that cannot be read (1)" in caplog.text


async def test_a_spent_day_stops_every_run_of_the_day(tmp_path: Path) -> None:
    first, other = budget(tmp_path, day=Limits(max_calls=2)), budget(tmp_path, day=Limits(max_calls=2))
    await ask(model(tmp_path, Provider(Usage(1, 1)), first))
    other.day_log = first.day_log
    with pytest.raises(BudgetSpent) as caught:
        await ask(model(tmp_path, Provider(Usage(1, 1)), other))
    assert caught.value.tomorrow


class HeldClock(SystemClock):
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_s(self) -> float:
        return self.seconds


def test_calls_at_the_same_time_count_once(tmp_path: Path) -> None:
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


def test_a_reservation_that_was_withdrawn_counts_for_nothing_after_a_restart_either(tmp_path: Path) -> None:
    log = SpendLog(tmp_path / "day.jsonl")
    entry = Reserved("call", 100, 0.5, run_id="run1")
    log.append(entry)
    log.withdraw(entry)
    assert SpendLog(tmp_path / "day.jsonl").totals() == log.totals() == Totals()


def test_what_is_set_aside_for_the_closing_call_is_free_once_that_was_made(tmp_path: Path) -> None:
    limits = budget(tmp_path, Limits(max_calls=3))
    limits.set_aside(1, 1)
    limits.settle("m", limits.reserve("m", 1, 1, closing=True), Usage(1, 1))
    limits.reserve("m", 1, 1, closing=False)
    limits.reserve("m", 1, 1, closing=False)
    with pytest.raises(BudgetSpent):
        limits.reserve("m", 1, 1, closing=False)


def test_the_calibration_comes_near_what_the_provider_counts_and_is_kept(tmp_path: Path) -> None:
    calibration = Calibration(tmp_path / "c.json")
    assert calibration.tokens("m", 3_000) >= 1_000
    for _ in range(20):
        calibration.learn("m", 4_500, 1_000)
    calibration.save()
    assert 1_000 <= Calibration(tmp_path / "c.json").tokens("m", 4_500) <= 1_200


async def test_a_call_that_is_not_made_after_all_costs_nothing(tmp_path: Path) -> None:
    limits, provider = budget(tmp_path), Provider(Usage(100, 50))

    def refuse() -> None:
        raise StorageFailed("the disk refuses.", fix="make room")

    asked = BudgetedModel(
        provider,  # type: ignore[arg-type]
        limits,
        Calibration(tmp_path / "c.json"),
        max_output_tokens=100,
        before_call=refuse,
    )
    with pytest.raises(StorageFailed):
        await ask(asked)
    assert provider.calls == 0
    assert limits.command_log.totals() == limits.day_log().totals() == Totals()
    assert SpendLog(tmp_path / "run1.jsonl").totals() == Totals()


@pytest.mark.parametrize("data", [b"", b"[1]", b'{"m": "four"}', b"\xff"])
def test_estimates_whose_file_is_damaged_begin_anew_and_that_is_said(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.json"
    anew = Calibration(path).tokens("m", 4_500)
    assert caplog.messages == []
    path.write_bytes(data)
    assert Calibration(path).tokens("m", 4_500) == anew
    assert "c.json cannot be read" in caplog.text


def test_estimates_that_somebody_wrote_stay_within_what_a_token_can_be(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b'{"none": 0, "negative": -4, "huge": 1e300}')
    learnt = Calibration(path)
    assert learnt.tokens("none", 1_000) == learnt.tokens("negative", 1_000) >= 1_000
    assert learnt.tokens("huge", 8_000) >= 1_000


def test_bundled_prices_are_known_offline_and_overrides_win() -> None:
    price = Prices({}).of("gemini:gemini-2.5-flash")
    assert price is not None
    assert price.cost(Usage(1_000_000, 0)) == Decimal("0.30")
    assert Prices({}).of("gemini:no-such-model-anywhere") is None
    assert Prices({}).of("openai:gpt-4o-mini") is not None
    assert Prices({"gemini:gemini-2.5-flash": Price(Decimal(9), Decimal(9))}).of("gemini:gemini-2.5-flash") == Price(
        Decimal(9), Decimal(9)
    )


def test_totals_are_the_same_after_a_restart_and_count_an_unsettled_call_in_full(tmp_path: Path) -> None:
    log = SpendLog(tmp_path / "day.jsonl")
    for number in range(3):
        log.append(Reserved(f"call{number}", 100, 0.5, run_id="run1"))
    log.append(Settled("call0", 40, 0.25, 1.5, run_id="run1"))
    log.append(Settled("call1", 60, None, 0.5, run_id="run1"))
    for known in (log, SpendLog(tmp_path / "day.jsonl")):
        assert known.totals() == Totals(calls=3, tokens=200, priced_usd=0.75, seconds=2.0, unpriced=1)
        assert known.totals().usd is None
    log.append(Settled("call2", 10, 0.0, 1.0, run_id="run1"))
    assert SpendLog(tmp_path / "day.jsonl").totals() == log.totals() == Totals(3, 110, 0.25, 3.0, unpriced=1)


def test_a_thousand_logs_hold_few_descriptors(tmp_path: Path) -> None:
    held = len(os.listdir("/dev/fd"))
    logs = [SpendLog(tmp_path / f"{number}.jsonl") for number in range(1000)]
    for log in (*logs, *logs):
        log.append(Reserved("call", 100, 0.5, run_id="run1"))
    assert len(os.listdir("/dev/fd")) <= held + 16
    assert [len(log.read_bytes().split(b"\n")) for log in sorted(tmp_path.glob("*.jsonl"))] == [3] * 1000


def test_a_log_that_somebody_removed_is_begun_anew(tmp_path: Path) -> None:
    log = SpendLog(tmp_path / "day" / "day.jsonl")
    log.append(Reserved("call1", 100))
    shutil.rmtree(tmp_path / "day")
    log.append(Reserved("call2", 100))
    assert SpendLog(tmp_path / "day" / "day.jsonl").totals().tokens == 100
    assert log.totals().tokens == 200


def test_a_log_that_somebody_renamed_is_begun_anew_for_every_process_that_writes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    one, other = SpendLog(path), SpendLog(path)
    for number in range(3):
        one.append(Reserved(f"a{number}", 100, run_id="run1"))
    other.catch_up()
    path.rename(tmp_path / "kept.jsonl")
    one.append(Reserved("a3", 10, run_id="run1"))
    other.catch_up()
    other.append(Reserved("b", 1, run_id="run2"))
    one.catch_up()
    assert one.totals() == other.totals() == Totals(5, 311)
    assert SpendLog(path).totals() == Totals(2, 11)
    assert SpendLog(tmp_path / "kept.jsonl").totals() == Totals(3, 300)


def test_what_another_process_appends_to_the_log_of_the_day_counts_here_too(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    one, other = SpendLog(path), SpendLog(path)
    for number in range(3):
        one.append(Reserved(f"a{number}", 100, run_id="run1"))
        other.append(Reserved(f"b{number}", 10, run_id="run2"))
    other.append(Settled("b0", 5, run_id="run2"))
    with path.open("ab") as stream:
        stream.write(b'\n{"t":"begin","call":"c","tok')  # it died, or is not done yet
    one.catch_up()
    other.catch_up()
    assert one.totals() == other.totals() == SpendLog(path).totals() == Totals(6, 325)
    with path.open("ab") as stream:
        stream.write(b'ens":1000}')
    one.catch_up()
    assert one.totals().tokens == 1325
    one.append(Reserved("d", 1))
    other.catch_up()
    assert one.totals() == other.totals() == SpendLog(path).totals() == Totals(8, 1326)


def test_a_long_call_costs_what_long_calls_cost() -> None:
    price = Prices({}).of("gemini:gemini-2.5-pro")
    assert price is not None
    assert price.cost(Usage(200_000, 1_000)) == Decimal("0.26")
    assert price.cost(Usage(200_001, 1_000)) == Decimal("0.5150025")
    assert price.cost(Usage(12, 7)) == Decimal("0.000085")


def test_a_server_that_sells_nothing_we_know_has_no_price_until_it_is_given_one() -> None:
    for model in ("ollama:gpt-4o-mini", "my-server:gpt-4o-mini", "huggingface:Qwen/Qwen2.5-7B-Instruct"):
        assert Prices({}).of(model) is None
    free = Price(Decimal(0), Decimal(0))
    assert Prices({"ollama": free}).of("ollama:qwen2.5:7b") == free


FREE = Price(Decimal(0), Decimal(0))


@pytest.mark.parametrize(
    ("price", "charged"), [(FREE, 0), (PRICE, 200), (None, 200)], ids=["free", "priced", "unknown"]
)
def test_a_call_that_nobody_counted_is_charged_in_full_unless_it_costs_nothing(
    tmp_path: Path, price: Price | None, charged: int
) -> None:
    limits = budget(tmp_path, price=price)
    limits.settle("m", limits.reserve("m", 100, 100, closing=False), None)
    assert limits.command_log.totals().tokens == charged
    assert limits.day_log().totals().tokens == charged
    assert (limits.command_log.totals().calls, limits.command_log.under_way) == (1, 0)
