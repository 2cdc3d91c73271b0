"""What a journal says of time: attempts, waits, steps that were cut off, and what a retry took anew."""

from __future__ import annotations

import msgspec
import pytest

from council.engine.journal_rewriting import changed_records
from council.engine.records import (
    EPOCH,
    Continuation,
    FileIdentity,
    Part,
    Record,
    Retry,
    RunHeader,
    StepResult,
    StepStart,
    Waiting,
)
from council.engine.run_records import FINISH, record_of, row_of
from council.reports.explain import CallEntry
from council.reports.explain_words import call_words, step_words
from council.reports.timeline import chronicle_of

HEADER = RunHeader(
    "r", EPOCH, "2026-11-20T22:00:00Z", "main", "deliberate", {}, "h", FileIdentity("c", 1, 2, "s"), "00"
)


def done(name: str, at: int) -> StepResult:
    return StepResult(name, "", msgspec.Raw(b"null"), at=at)


def test_a_step_is_whose_its_row_says_and_nobodys_in_an_older_journal() -> None:
    told = StepStart("whatever", 1000, Part("turn", "AUDITOR", 2))
    rows = [row_of(told), row_of(StepStart("round/2/AUDITOR", 1000))._replace(out="")]
    steps = chronicle_of([HEADER, *(record_of(row, "r1") for row in rows)], "under way").steps
    assert [(step.kind, step.role, step.round) for step in steps] == [("turn", "AUDITOR", 2), ("", "", 0)]
    assert [step_words(step) for step in steps] == ["AUDITOR, round 2", "round/2/AUDITOR"]


def test_a_step_beside_the_turns_is_told_by_its_kind_and_not_by_its_name() -> None:
    rows: list[Record] = [StepStart("whatever", 1000, Part("start")), done("whatever", 1100), done(FINISH, 1200)]
    rows += [StepStart("start", 1300), done("start", 1400)]
    told = [step_words(step) for step in chronicle_of([HEADER, *rows], "under way").steps]
    assert told == ["personas, memory, tools and model are read", "the work is over", "start"]


def test_a_stop_a_kill_and_a_wait_end_an_attempt_each_in_its_way() -> None:
    records: list[Record] = [
        HEADER,
        StepStart("attempt", 1000),
        StepStart("a", 1100),
        done("a", 1300),
        StepStart("b", 1400),
        StepStart("handback", 1500),
        StepStart("attempt", 2000),
        StepStart("b", 2100),
        StepStart("attempt", 3000),
        StepStart("b", 3100),
        Waiting("provider", "1970-01-01T00:00:03Z", 60.0, "busy"),
        StepStart("attempt", 64_000),
        StepStart("b", 64_100),
    ]
    found = chronicle_of(records, "under way")
    assert [(attempt.because, attempt.ended) for attempt in found.attempts] == [
        ("start", "handed back"),
        ("restart", "cut off"),
        ("restart", "waiting"),
        ("wait over", "under way"),
    ]
    assert [(step.name, step.outcome, step.seconds) for step in found.steps] == [
        ("a", "done", 0.2),
        ("b", "cut off", 0.1),
        ("b", "cut off", None),
        ("b", "parked", 0.0),
        ("b", "under way", None),
    ]
    assert [(wait.since_ms, wait.until_ms) for wait in found.waits] == [(3100, 64_000)]


def test_a_retry_takes_its_step_and_all_after_it_anew() -> None:
    records: list[Record] = [
        HEADER,
        StepStart("attempt", 1),
        done("a", 2),
        done("b", 3),
        done(FINISH, 4),
        Continuation("2026-11-20T22:00:10Z", False, "b"),
        StepStart("attempt", 5),
        done("b", 6),
        done(FINISH, 7),
    ]
    found = chronicle_of(records, "not recorded")
    assert [(step.name, step.again) for step in found.steps] == [
        ("a", False),
        ("b", True),
        (FINISH, True),
        ("b", False),
        (FINISH, False),
    ]
    counting = found.step("b")
    assert counting is not None
    assert counting.ended_ms == 6
    assert found.attempts[1].retry_from == "b"


def test_forgetting_a_text_takes_it_out_of_a_try_too() -> None:
    retried = Retry("a", 1, 1, 2.0, "server", "it said 555-0172 back")
    [_, after] = changed_records([HEADER, retried], frozenset(), lambda text: text.replace("555-0172", "[forgotten]"))
    assert isinstance(after, Retry)
    assert after.error == "it said [forgotten] back"


@pytest.mark.parametrize(
    ("above", "words"),
    [
        ("It failed: timeout after 5 s.", "failed (timeout): timeout"),
        ("The last: no timeout.", "failed (timeout): timeout"),
        ("It failed: timeout.", "failed (timeout)"),
        ("One note.\ntimeout\nAnother: timeout; try again.", "failed (timeout)"),
    ],
)
def test_a_reason_is_left_out_only_where_it_stands_whole_above(above: str, words: str) -> None:
    call = CallEntry(
        step="round/1/AUDITOR",
        role="AUDITOR",
        purpose="turn",
        round=1,
        model="m",
        finish="",
        failure="timeout",
        message="timeout",
        tokens=None,
        cost_usd=None,
        began=None,
        began_ms=None,
        seconds=None,
        retries=0,
        retries_s=0.0,
    )
    assert call_words(call, above) == words
