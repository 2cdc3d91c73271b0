"""`council stats`: sums over many runs, from rows of the ledger. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from council.engine.ledger import RunEntry
from council.ids import local_times

FORMAT = 2  # raised when a key of the JSON changes its meaning or goes


class RunSums(msgspec.Struct, frozen=True):
    """The sums of some runs. `cost_usd` is the sum of what is known. `cost_unknown_runs` made calls whose price or
    tokens nobody knows, so it is a lower bound when that is not 0. `cached` is part of `input`; `unknown_calls` have
    no count of tokens."""

    runs: int
    calls: int
    input: int
    output: int
    cached: int
    unknown_calls: int
    cost_usd: float
    cost_unknown_runs: int


class OfModel(msgspec.Struct, frozen=True):
    """`model` is empty for runs that made no call, or whose row an older version wrote."""

    model: str
    spent: RunSums


class OfDay(msgspec.Struct, frozen=True):
    """A day by admission: of UTC in the JSON, of the home's zone for a person."""

    day: str
    by_status: dict[str, int]
    spent: RunSums


class Durations(msgspec.Struct, frozen=True):
    """Times from admission to receipt, waits in the queue included, of runs that came to an end by themselves. None: no
    such run. Nearest rank; to the second for runs of older versions."""

    runs: int
    p50_s: float | None
    p90_s: float | None
    longest_s: float | None


class Stats(msgspec.Struct, frozen=True):
    """The JSON of `council stats --json`. `since` is empty for all runs. `first` and `last` are the admissions of the
    first and the last run counted."""

    format: int
    since: str
    first: str
    last: str
    by_status: dict[str, int]
    spent: RunSums
    durations: Durations
    models: tuple[OfModel, ...]
    days: tuple[OfDay, ...]
    notes: tuple[str, ...]


def stats(entries: Iterable[RunEntry], since: str, zone: tzinfo | None = UTC) -> Stats:
    """`entries`: rows in the order of admission; control commands are no runs. Days begin as in `zone`."""
    runs = [entry for entry in entries if entry.lane]
    took: list[float] = []
    for run in runs:
        if run.finished and run.status in ("succeeded", "degraded", "failed"):
            whole = datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.created)
            took.append(max(0.0, whole.total_seconds()) if run.took_ms is None else run.took_ms / 1000)
    took.sort()
    models = [OfModel(model, _spent(of)) for model, of in _grouped(runs, lambda run: run.model).items()]
    days = _grouped(runs, lambda run: local_times(run.created, zone)[:10])
    return Stats(
        format=FORMAT,
        since=since,
        first=runs[0].created if runs else "",
        last=runs[-1].created if runs else "",
        by_status=_by_status(runs),
        spent=_spent(runs),
        durations=Durations(len(took), _rank(took, 0.5), _rank(took, 0.9), took[-1] if took else None),
        models=tuple(sorted(models, key=lambda model: -model.spent.runs)),
        days=tuple(OfDay(day, _by_status(of_day), _spent(of_day)) for day, of_day in days.items()),
        notes=(),
    )


def _spent(runs: Sequence[RunEntry]) -> RunSums:
    return RunSums(
        runs=len(runs),
        calls=sum(run.calls for run in runs),
        input=sum(run.tokens_in for run in runs),
        output=sum(run.tokens_out for run in runs),
        cached=sum(run.tokens_cached for run in runs),
        unknown_calls=sum(run.unknown_calls for run in runs),
        cost_usd=round(sum(run.cost_usd or 0.0 for run in runs), 9),
        cost_unknown_runs=sum(run.calls > 0 and run.cost_usd is None for run in runs),
    )


def _grouped(runs: Sequence[RunEntry], key: Callable[[RunEntry], str]) -> Mapping[str, list[RunEntry]]:
    groups: dict[str, list[RunEntry]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _by_status(runs: Sequence[RunEntry]) -> dict[str, int]:
    return dict(Counter(run.status for run in runs).most_common())


def _rank(ordered: Sequence[float], share: float) -> float | None:
    """The nearest rank: the smallest value that at least this share does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None
