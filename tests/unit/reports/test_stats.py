"""Sums over rows of the ledger."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from council.engine.ledger import RunEntry
from council.reports.stats import stats
from council.reports.stats_terminal import show

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def row(number: int, seconds: int, **values: object) -> RunEntry:
    created = f"2026-11-{number // 10 + 1:02}T00:00:00Z"
    finished = f"2026-11-{number // 10 + 1:02}T00:{seconds // 60:02}:{seconds % 60:02}Z"
    base = {"run_id": f"r{number:02}", "status": "succeeded", "type": "deliberate", "lane": "main", "title": "t"}
    return RunEntry(**{**base, "created": created, "finished": finished, **values})  # type: ignore[arg-type]


def test_half_and_nine_in_ten() -> None:
    found = stats([row(number, number + 1) for number in range(20)], "")
    assert (found.durations.p50_s, found.durations.p90_s, found.durations.longest_s) == (10, 18, 20)
    assert [day.spent.runs for day in found.days] == [10, 10]
    assert stats([], "").durations.p50_s is None


def test_an_unknown_cost_is_not_zero() -> None:
    rows = [row(1, 1, calls=2, cost_usd=0.5), row(2, 1, calls=2), row(3, 1)]
    assert stats(rows, "").spent.cost_usd == 0.5
    assert stats(rows, "").spent.cost_unknown_runs == 1  # the third made no call


def test_cancelled_runs_and_control_commands_do_not_bend_the_times() -> None:
    rows = [row(1, 5), row(2, 50, status="cancelled"), row(3, 0, type="cancel", lane="")]
    found = stats(rows, "")
    assert (found.spent.runs, found.durations.longest_s) == (2, 5)


def test_runs_of_less_than_a_second_do_not_take_none(capsys: pytest.CaptureFixture[str]) -> None:
    show(stats([row(1, 0, took_ms=240), row(2, 1, took_ms=1_380)], ""), sys.stdout, columns=120, coloured=False)
    said = capsys.readouterr().out
    assert "median 0.24 s, p90 1.38 s, longest 1.38 s" in said
