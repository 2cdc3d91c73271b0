"""Runs that go on, wait and come back: slots, the time that one may wait, and a process that is about to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from council.engine.journal import Handback
from council.engine.queue import MAX_WAIT, RunQueue
from council.engine.run_records import FINISH
from council.engine.runs import ANSWER, ActiveRun, Finish, RunPause
from council.errors import CouncilError, ModelError, StorageFailed
from council.events import Events, RunWait
from council.ids import SystemClock, timestamp, whole_duration
from council.storage.store import Store
from tests.rehearsal import Rehearsal
from tests.rows import begun

MOST_S = 100.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class HeldClock(SystemClock):
    """Stands still until it is set. `awake_s`: what a machine that sleeps does not count."""

    def __init__(self) -> None:
        self.at = NOW
        self.awake_s = 0.0

    def now(self) -> datetime:
        return self.at

    def monotonic_s(self) -> float:
        return self.awake_s


def queue(execute: Callable[[ActiveRun], Awaitable[None]], clock: HeldClock | None = None, slots: int = 4) -> RunQueue:
    at = clock or HeldClock()
    return RunQueue(
        execute,
        lambda error: Finish(timestamp(at.now()), error),
        at,
        slots=slots,
        max_wait_s=MOST_S,
        storage_retry_s=7.0,
    )


def parked(seconds: float) -> RunPause:
    return RunPause("provider", seconds, ModelError("rate", "busy"))


async def worked(run: ActiveRun) -> None:
    """Waits until nobody works at the run."""
    while run.task is not None:
        await asyncio.wait([run.task])


@pytest.mark.parametrize(("seconds", "waits"), [(MOST_S, True), (MOST_S + 1, False)])
async def test_a_run_waits_as_long_as_it_may_and_ends_where_it_would_be_longer(
    played: Rehearsal, seconds: float, waits: bool
) -> None:
    async def execute(run: ActiveRun) -> None:
        if not run.journal.recorded(FINISH):
            raise parked(seconds)

    line, run = queue(execute), played.run
    line.join(run)
    await worked(run)
    line.stop()
    assert (run.status, run.waiting_for) == (("waiting", "provider") if waits else ("running", ""))
    assert run.journal.recorded(FINISH) is not waits


async def test_an_attempt_that_the_disk_ended_is_none_of_the_runs_own(played: Rehearsal) -> None:
    async def execute(run: ActiveRun) -> None:
        await run.journal.attempt()
        raise StorageFailed("no space left")

    line, run = queue(execute), played.run
    line.join(run)
    await worked(run)
    line.stop()
    assert (run.status, run.waiting_for, run.journal.fruitless_attempts) == ("waiting", "storage", 0)


async def test_the_waits_of_a_run_that_got_nothing_in_between_count_as_one(played: Rehearsal) -> None:
    clock, ended = HeldClock(), []

    async def execute(run: ActiveRun) -> None:
        if run.journal.recorded(FINISH):
            ended.append(run.journal.result(FINISH, Finish).error)
            return
        raise parked(60.0)

    line, run = queue(execute, clock), played.run
    line.join(run)
    await worked(run)
    clock.at += timedelta(seconds=60)
    line.wake(run)
    await worked(run)
    line.stop()
    assert [error.code for error in ended if error is not None] == [MAX_WAIT]


@pytest.mark.parametrize(("awake_s", "status"), [(40.0, "waiting"), (41.0, "running")])
async def test_a_wait_for_the_network_counts_no_time_in_which_the_machine_slept(
    played: Rehearsal, awake_s: float, status: str
) -> None:
    clock = HeldClock()

    async def execute(run: ActiveRun) -> None:
        if not run.journal.recorded(FINISH):
            raise RunPause("network", 60.0, ModelError("unreachable", "no such host is known"))

    line, run = queue(execute, clock), played.run
    line.join(run)
    await worked(run)
    clock.at += timedelta(days=3)
    clock.awake_s += awake_s
    line.wake(run)
    await worked(run)
    line.stop()
    assert run.status == status
    assert run.journal.recorded(FINISH) is (status == "running")


async def test_a_run_that_is_woken_between_its_question_and_its_wait_goes_on_at_once(played: Rehearsal) -> None:
    asked, answered = 0, asyncio.Event()

    async def execute(run: ActiveRun) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            answered.set()
            return
        line.wake(run)  # the answer comes before the question is put away
        raise parked(MOST_S)

    line = queue(execute)
    line.join(played.run)
    await asyncio.wait_for(answered.wait(), 10)
    await worked(played.run)
    line.stop()
    assert asked == 2


async def test_a_person_has_a_time_of_their_own_that_asking_again_does_not_begin_anew(
    played: Rehearsal,
) -> None:
    clock, ended, asks = HeldClock(), list[str](), [parked(60.0)]
    month_s = 30 * 86_400.0

    async def execute(run: ActiveRun) -> None:
        if run.journal.recorded(FINISH):
            error = run.journal.result(FINISH, Finish).error
            ended.append("" if error is None else f"{error.code}: {error.message}")
            return
        raise asks.pop() if asks else RunPause(ANSWER, month_s, CouncilError("which of the two?", fix="answer it"))

    line, run = queue(execute, clock), played.run
    line.join(run)
    for days in (0, 0, 20):
        clock.at += timedelta(days=days)
        await worked(run)
        assert run.status == "waiting"
        line.wake(run)
    await worked(run)
    assert (run.waiting_for, run.is_waiting) == (ANSWER, True)
    waits = [event for event in played.events if isinstance(event, RunWait)]
    assert [(wait.reason, wait.seconds, wait.error) for wait in waits] == [
        ("provider", 60.0, "busy"),
        (ANSWER, month_s, "which of the two?"),
        (ANSWER, month_s - 20 * 86_400, "which of the two?"),
        (ANSWER, month_s - 20 * 86_400, "which of the two?"),
    ]
    assert {wait.until for wait in waits[1:]} == {timestamp(NOW + timedelta(days=30))}
    clock.at += timedelta(days=10)
    line.wake(run)
    await worked(run)
    line.stop()
    assert [error.partition(",")[0] for error in ended] == [
        f"{MAX_WAIT}: waited {whole_duration(month_s)} for a person's answer"
    ]


async def test_a_full_disk_is_waited_for_however_long_it_takes(played: Rehearsal) -> None:
    clock = HeldClock()

    async def execute(run: ActiveRun) -> None:
        raise StorageFailed("the disk is full.", fix="free some space")

    line, run = queue(execute, clock), played.run
    line.join(run)
    for _ in range(3):
        await worked(run)
        assert (run.status, run.waiting_for) == ("waiting", "storage")
        clock.at += timedelta(days=2)
        line.wake(run)
    await worked(run)
    line.stop()
    assert not run.journal.recorded(FINISH)


async def test_a_run_that_is_handed_back_stays_queued_and_nothing_is_woken_once_the_queue_stops(
    played: Rehearsal,
) -> None:
    executed: list[str] = []

    async def execute(run: ActiveRun) -> None:
        executed.append(run.status)
        raise parked(1.0) if len(executed) == 1 else Handback

    line, run = queue(execute), played.run
    line.join(run)
    await worked(run)
    line.wake(run)
    await worked(run)
    assert (executed, run.status) == (["running", "running"], "queued")
    run.status = "waiting"
    line.stop()
    line.wake(run)
    assert (run.status, run.task) == ("waiting", None)


async def test_no_more_runs_are_at_work_than_there_are_slots_and_a_wait_frees_one(store: Store) -> None:
    at_work, most, go_on = 0, [0], asyncio.Event()

    async def execute(run: ActiveRun) -> None:
        nonlocal at_work
        at_work += 1
        most.append(at_work)
        await go_on.wait()
        at_work -= 1
        raise parked(1.0)

    line = queue(execute, slots=2)
    runs = [ActiveRun(begun(store, f"r{number}", lane=f"lane-{number}"), Events(), None) for number in range(5)]
    for run in runs:
        line.join(run)
    assert line.running == 2
    while at_work < 2:
        await asyncio.sleep(0)
    go_on.set()
    for run in runs:
        while run.status != "waiting":
            await asyncio.sleep(0)
    line.stop()
    assert max(most) == 2
