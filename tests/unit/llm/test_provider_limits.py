"""One bucket for all runs: how many at once, how many a minute, and a pause that all respect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from council.errors import ModelError, StorageFailed
from council.llm.base import Message, Reply
from council.llm.provider_limits import Bucket, KeptPauses, LimitedModel
from council.storage.marks import mark, set_mark
from council.storage.store import Store
from tests.driver import sqlite_error, watched


class HeldClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic_s(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


class Provider:
    """Answers when told to, and counts how many calls it has at once."""

    name = "test:provider"
    context_tokens = 1000

    def __init__(self, answer: Callable[[], Reply]) -> None:
        self._answer = answer
        self.at_once = 0
        self.most_at_once = 0
        self.calls = 0

    async def generate(self, messages: object, **_: object) -> Reply:
        self.calls += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return self._answer()

    async def aclose(self) -> None:
        return None


def bucket(clock: HeldClock, *, at_once: int = 4, per_minute: int | None = None, max_pause_s: float = 60.0) -> Bucket:
    return Bucket(clock, max_concurrent=at_once, max_per_minute=per_minute, max_pause_s=max_pause_s, sleep=clock.sleep)


def said() -> Reply:
    return Reply("yes", "stop", "test:provider")


async def ask(model: LimitedModel) -> Reply:
    return await model.generate([Message("user", "?")], system="")


async def test_no_more_calls_than_allowed_are_under_way_at_once_over_all_models_of_a_bucket() -> None:
    provider, shared = Provider(said), bucket(HeldClock(), at_once=2)
    models = [LimitedModel(provider, shared) for _ in range(3)]  # type: ignore[arg-type]
    await asyncio.gather(*(ask(model) for model in models * 4))
    assert (provider.calls, provider.most_at_once) == (12, 2)


async def test_calls_beyond_the_minutes_number_wait_for_the_minute_to_pass() -> None:
    clock, provider = HeldClock(), Provider(said)
    model = LimitedModel(provider, bucket(clock, per_minute=3))  # type: ignore[arg-type]
    for _ in range(7):
        await ask(model)
    assert clock.slept == [60.0, 60.0]


async def test_a_retry_after_told_to_one_call_holds_back_every_other() -> None:
    clock = HeldClock()
    replies = iter([ModelError("rate", "slow down", retry_after_s=20.0)])

    def answer() -> Reply:
        for error in replies:
            raise error
        return said()

    provider, shared = Provider(answer), bucket(clock)
    first, other = (LimitedModel(provider, shared) for _ in range(2))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="slow down"):
        await ask(first)
    assert (await ask(other)).text == "yes"
    assert clock.slept == [20.0]


async def test_a_pause_too_long_to_wait_for_is_refused_with_its_length_and_no_call() -> None:
    clock = HeldClock()
    shared, provider = bucket(clock, max_pause_s=30.0), Provider(said)
    shared.pause(3600.0)
    with pytest.raises(ModelError) as caught:
        await ask(LimitedModel(provider, shared))  # type: ignore[arg-type]
    assert (caught.value.kind, caught.value.retry_after_s, provider.calls) == ("rate", 3600.0, 0)
    clock.seconds += 3601.0
    assert (await ask(LimitedModel(provider, shared))).text == "yes"  # type: ignore[arg-type]


def test_a_pause_outlives_a_restart_and_never_lasts_longer_than_was_asked(tmp_path: Path) -> None:
    clock = HeldClock()
    clock.seconds = 1_000.0
    with closing(Store.open(tmp_path)) as store:
        kept = KeptPauses(store, clock)
        assert kept.left_s("gemini") == 0.0
        kept.note("gemini", 90.0)
        clock.seconds += 30
    with closing(Store.open(tmp_path)) as store:
        kept = KeptPauses(store, clock)
        assert (kept.left_s("gemini"), kept.left_s("openai")) == (60.0, 0.0)
        clock.seconds = 0.0  # the clock was set back
        assert kept.left_s("gemini") == 90.0
        clock.seconds = 2_000.0
        assert kept.left_s("gemini") == 0.0
        for provider in ("gemini", "openai"):
            kept.note(provider, 90.0)
        set_mark(store, "calibration", "{}")
        kept.lift()
        set_mark(store, "next", "")  # with which both are written
        assert (kept.left_s("gemini"), kept.left_s("openai")) == (0.0, 0.0)
        assert mark(store, "calibration") == "{}"


def test_a_pause_holds_up_nobody_and_is_kept_as_soon_as_the_database_takes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Store.open(tmp_path)) as store:
        kept = KeptPauses(store, HeldClock())
        with watched(store) as driver:
            driver.before["COMMIT"] = sqlite_error(13)
            kept.note("gemini", 90.0)
            with pytest.raises(StorageFailed):
                set_mark(store, "next", "")
        set_mark(store, "next", "")
        assert kept.left_s("gemini") == 90.0
        kept.note("gemini", 1e300)
    assert caplog.text.count("that gemini asked for is not kept") == 1
