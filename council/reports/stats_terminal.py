"""Sums over runs for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from council.reports.explain_terminal import console_of, faint, section, table_of
from council.reports.stats import OfDay, Spent, Stats
from council.reports.words import cost, duration, number, plain

_MAX_DAYS = 31
_BAR_CHARS = 24


def show(stats: Stats, stream: TextIO, *, columns: int, coloured: bool) -> None:
    """Prints the sums, `columns` wide; the newest days only, with a word on the others."""
    console = console_of(stream, columns=columns, coloured=coloured)
    for part in _parts(stats):
        console.print(part)


def _parts(stats: Stats) -> Iterator[RenderableType]:
    since = f" since {stats.since}" if stats.since else ""
    if not stats.spent.runs:
        yield Text(f"No runs{since}.")
        return
    runs = f"{stats.spent.runs:,} run{'s' if stats.spent.runs != 1 else ''}"
    yield Text(f"{runs}{since}, from {stats.first} to {stats.last}", "bold")
    yield faint(", ".join(f"{count:,} {status}" for status, count in stats.by_status.items()))
    for note in stats.notes:
        yield Text(note, "yellow")
    yield section("Spent", [_line(stats.spent), _times(stats)])
    yield section("By model", [_models(stats)])
    yield section("By day (UTC)", _days(stats.days))
    yield section("Most used", [_most(stats)])


def _line(spent: Spent) -> Text:
    unknown = f"; {spent.unknown_calls:,} of the calls without a count" if spent.unknown_calls else ""
    return Text(
        f"{spent.calls:,} calls, {spent.input:,} tokens in ({spent.cached:,} cached), {spent.output:,} out{unknown}; "
        f"cost {cost_words(spent)}"
    )


def cost_words(spent: Spent) -> str:
    """What is known, and that it is not all where it is not."""
    if not spent.cost_unknown_runs:
        return cost(spent.cost_usd)
    runs = f"{spent.cost_unknown_runs} run{'s' if spent.cost_unknown_runs != 1 else ''}"
    return f"{cost(spent.cost_usd)} and that of {runs} unknown" if spent.cost_usd else f"unknown ({runs})"


def _times(stats: Stats) -> Text:
    took = stats.durations
    if took.p50_s is None:
        return faint("no run has come to its end by itself yet")
    return Text(
        f"from admission to receipt: half within {_seconds(took.p50_s)}, nine in ten within {_seconds(took.p90_s)}, the "
        f"longest {_seconds(took.longest_s)}"
    )


def _seconds(seconds: int | None) -> str:
    return f"{seconds} s" if seconds is not None and seconds < 60 else duration(seconds)


def _models(stats: Stats) -> Table:
    table = table_of("model", ">runs", ">calls", ">in", ">cached", ">out", "cost")
    for row in stats.models:
        spent = row.spent
        table.add_row(
            Text(plain(row.model, 80) or "none, or not noted"),
            number(spent.runs),
            number(spent.calls),
            number(spent.input),
            number(spent.cached),
            number(spent.output),
            cost_words(spent),
        )
    return table


def _days(days: Sequence[OfDay]) -> list[RenderableType]:
    table = table_of("day", ">runs", ">failed", ">calls", ">tokens", "cost", "")
    shown = days[-_MAX_DAYS:]
    most = max(day.spent.input + day.spent.output for day in shown)
    for day in shown:
        tokens = day.spent.input + day.spent.output
        table.add_row(
            day.day,
            number(day.spent.runs),
            number(day.by_status.get("failed", 0)),
            number(day.spent.calls),
            number(tokens),
            cost_words(day.spent),
            Text("▇" * round(_BAR_CHARS * tokens / most) if most else "", "cyan"),
        )
    left_out = len(days) - len(shown)
    return [table, faint(f"{left_out} earlier days are in --json")] if left_out else [table]


def _most(stats: Stats) -> Table:
    table = table_of("", "")
    most = stats.most_used
    rows: tuple[tuple[str, Mapping[str, int]], ...] = (
        ("lanes", most.lanes),
        ("types", most.types),
        ("command files", most.command_files),
        ("errors", most.errors),
    )
    for name, counts in rows:
        if counts:
            table.add_row(
                Text(name, "dim"), Text(", ".join(f"{plain(key, 60)} {count:,}" for key, count in counts.items()))
            )
    table.show_header = False
    return table
