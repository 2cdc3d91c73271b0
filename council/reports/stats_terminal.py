"""Sums over runs for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from typing import TextIO

from rich.console import RenderableType
from rich.text import Text

from council.ids import local_times
from council.reports.explain_terminal import barred, faint, print_all, section, table_of
from council.reports.explain_words import duration, number, plain
from council.reports.stats import OfDay, RunSums, Stats
from council.turns.costs import told_cost

_MAX_DAYS = 31


def show(
    stats: Stats,
    stream: TextIO,
    *,
    columns: int,
    coloured: bool,
    plots: bool = False,
    zone: tzinfo | None = UTC,
) -> None:
    """Prints the sums, `columns` wide; the newest days only, with a word on the others. `plots`: figures are drawn beside
    their numbers, for somebody who looks at them; what is piped on is plain."""
    print_all(_parts(stats, plots, columns, zone), stream, columns=columns, coloured=coloured)


def _parts(stats: Stats, plots: bool, columns: int, zone: tzinfo | None) -> Iterator[RenderableType]:
    since = f" since {local_times(stats.since, zone)}" if stats.since else ""
    if not stats.spent.runs:
        yield Text(f"No runs{since}.")
        return
    runs = f"{stats.spent.runs:,} run{'s' if stats.spent.runs != 1 else ''}"
    first, last = local_times(stats.first, zone), local_times(stats.last, zone)
    yield Text(f"{runs}{since}, from {first} to {last}", "bold")
    yield faint(", ".join(f"{count:,} {status}" for status, count in stats.by_status.items()))
    sums, took = stats.spent, stats.durations
    unknown = f", unknown for {sums.unknown_calls:,} of the calls" if sums.unknown_calls else ""
    tokens = f"{sums.input:,} tokens in ({sums.cached:,} cached), {sums.output:,} out{unknown}"
    if 0 < sums.calls == sums.unknown_calls:
        tokens = "no model counted its tokens"
    times = faint("no run has ended without being cancelled")
    if took.p50_s is not None:
        half, most = f"median {duration(took.p50_s)}", f"p90 {duration(took.p90_s)}"
        times = Text(f"from admission to receipt: {half}, {most}, longest {duration(took.longest_s)}")
    yield section("Spent", [Text(f"{sums.calls:,} calls, {tokens}; cost {cost_words(sums)}"), times])
    table = table_of("model", ">runs", ">calls", ">in", ">cached", ">out", "cost")
    for row in stats.models:
        spent, model = row.spent, Text(plain(row.model, 80) or "none, or not recorded")
        figures = map(number, (spent.runs, spent.calls, spent.input, spent.cached, spent.output))
        table.add_row(model, *figures, cost_words(spent))
    yield section("By model", [table])
    yield section("By day", _days(stats.days, plots, columns))


def cost_words(spent: RunSums) -> str:
    """The known cost, and that it is not all where it is not."""
    if not spent.cost_unknown_runs:
        return told_cost(spent.cost_usd)
    runs = f"{spent.cost_unknown_runs} run{'s' if spent.cost_unknown_runs != 1 else ''}"
    return f"{told_cost(spent.cost_usd)} and that of {runs} unknown" if spent.cost_usd else f"unknown ({runs})"


def _days(days: Sequence[OfDay], plots: bool, columns: int) -> list[RenderableType]:
    shown = days[-_MAX_DAYS:]
    tokens = [day.spent.input + day.spent.output for day in shown]
    rows = []
    for day, of_day in zip(shown, tokens, strict=True):
        figures = map(number, (day.spent.runs, day.by_status.get("failed", 0), day.spent.calls, of_day))
        rows.append((day.day, *figures, cost_words(day.spent)))
    headings = ("day", ">runs", ">failed", ">calls", ">tokens", "cost")
    table = barred(headings, rows, tokens if plots else [], columns)
    left_out = len(days) - len(shown)
    return [table, faint(f"{left_out} earlier days are in --json")] if left_out else [table]
