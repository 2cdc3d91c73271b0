"""The times of a run that waited or was tried again: they add up, and a run that has not ended is told up to now."""

from __future__ import annotations

import asyncio

import msgspec

from council.engine.receipts import Receipt
from council.engine.records import Continuation, Record, Retry, RunStatus, StepResult, StepStart, Waiting
from council.engine.run_import import insert_run
from council.engine.run_records import FINISH
from council.engine.runs import Finish
from council.ids import timestamp_of
from council.reports.explain import Explanation, explain
from council.reports.explain_words import time_line
from council.storage.store import Store
from tests.rows import header, receipt

MS = header("r").admitted_ms
AGENTS = ("A", "B", "C")
# Three calls at once, each tried twice and then postponed; then a wait, and the same calls again.
TRIES: list[Record] = [
    StepStart("attempt", MS + 500),
    *(StepStart(f"round/1/{agent}", MS + 1_000) for agent in AGENTS),
    *(Retry(f"round/1/{agent}", MS + 2_000, 1, 3.0, "unreachable", "refused") for agent in AGENTS),
    Waiting("network", timestamp_of(MS + 6_000), 60.0, "refused"),
]
AGAIN: list[Record] = [
    StepStart("attempt", MS + 16_000),
    *(StepStart(f"round/1/{agent}", MS + 16_000) for agent in AGENTS),
    Retry("round/1/A", MS + 17_000, 1, 3.0, "unreachable", "refused"),
]


def done(name: str, at: int) -> StepResult:
    out = Finish(timestamp_of(at)) if name == FINISH else None
    return StepResult(name, "", msgspec.Raw(msgspec.json.encode(out)), at=at)


def told(records: list[Record], live: RunStatus | None, now_ms: int, end: Receipt | None = None) -> Explanation:
    store = Store.memory()
    store.write_now(lambda tx: insert_run(tx, [header("r"), *records], end, 1, is_open=end is None))
    return asyncio.run(explain(store, "r", end, live, {}, now_ms)).explanation


def test_pauses_of_calls_at_once_count_once() -> None:
    explained = told([*TRIES, StepStart("attempt", MS + 16_000), done(FINISH, MS + 16_100)], None, 0, receipt("r"))
    times = explained.times
    assert (times.total_s, times.working_s, times.retries_s, times.waiting_s) == (16.1, 5.0, 3.0, 10.0)
    line = time_line(explained).partition(" UTC, ")[2]
    assert (
        line
        == "16.1 s in all: queued 0.50 s, at work 5.00 s, 3.00 s of it between tries, parked 10.0 s, between steps 0.60 s"
    )


def test_a_pause_that_a_cancellation_cut_short_counts_as_long_as_it_lasted() -> None:
    cut = [done(f"round/1/{agent}", MS + 18_000) for agent in AGENTS]
    times = told([*TRIES, *AGAIN, *cut, done(FINISH, MS + 18_000)], None, 0, receipt("r")).times
    assert (times.total_s, times.working_s, times.retries_s) == (18.0, 7.0, 4.0)


def test_a_wait_under_way_is_told_up_to_now() -> None:
    times = told(TRIES, "waiting", MS + 7_200_000).times
    assert (times.total_s, times.working_s, times.waiting_s) == (7_200.0, 5.0, 7_194.0)


def test_calls_under_way_are_told_up_to_now() -> None:
    times = told([*TRIES, *AGAIN], "running", MS + 18_500).times
    assert (times.total_s, times.working_s, times.retries_s, times.waiting_s) == (18.5, 7.5, 4.5, 10.0)


def test_a_wait_begins_after_the_last_call_that_ended() -> None:
    """A wait is recorded by the second."""
    records = [
        *TRIES[:-1],
        done("round/1/A", MS + 6_400),
        Waiting("network", timestamp_of(MS + 6_000), 60.0, "refused"),
    ]
    times = told(records, "waiting", MS + 10_000).times
    assert (times.working_s, times.waiting_s) == (5.4, 3.6)


def test_the_time_before_a_retry_is_not_that_between_steps() -> None:
    first = [StepStart("attempt", MS + 500), StepStart("round/1/A", MS + 500), done("round/1/A", MS + 1_500)]
    again = [StepStart("attempt", MS + 52_000), StepStart("round/1/A", MS + 52_000), done("round/1/A", MS + 53_000)]
    asked = Continuation(timestamp_of(MS + 51_000), accept_drift=False, retry_from="round/1/A")
    explained = told(
        [*first, done(FINISH, MS + 1_500), asked, *again, done(FINISH, MS + 53_000)], None, 0, receipt("r")
    )
    assert explained.times.stopped_s == 50.5
    line = time_line(explained).partition(" UTC, ")[2]
    assert line == "53.0 s in all: queued 0.50 s, at work 2.00 s, stopped 50.5 s"


def test_attempts_without_a_step_are_no_time_between_steps_and_none_counts_twice() -> None:
    first = [StepStart("attempt", MS + 1_000), StepStart("round/1/A", MS + 1_000), done("round/1/A", MS + 10_000)]
    died = StepStart("attempt", MS + 20_000)
    again = [StepStart("attempt", MS + 100_000), done(FINISH, MS + 100_000)]
    assert told([*first, died, *again], None, 0, receipt("r")).times.stopped_s == 90.0
    assert told([StepStart("attempt", MS + 1_000), *again], None, 0, receipt("r")).times.stopped_s == 99.0
