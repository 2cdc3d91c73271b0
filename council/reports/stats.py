"""`council stats`: sums over many runs, from rows of the ledger; the newest runs call by call (`recent`). Pure."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from council.engine.journal import Journal
from council.engine.ledger import Ledger, RunEntry
from council.engine.records import RunHeader
from council.errors import JournalDamaged, RunNotFound
from council.reports.timeline import chronicle_of, value_in
from council.turns.result import TurnResult

MAX_RUNS = 40  # as many as fit beside one another in a terminal
MAX_JOURNAL_BYTES = 16 << 20  # a longer one is left out: this is a glance


class RecentCall(msgspec.Struct, frozen=True):
    """One call that was answered. `role` empty, `seconds` None: the journal does not say. `tokens` None: nobody counted."""

    role: str
    model: str
    tokens: int | None
    seconds: float | None


class Share(msgspec.Struct, frozen=True):
    """An agent's or a model's calls in the last runs. `tokens` and `seconds` have one figure for each run, oldest first:
    its sum of tokens and its calls' median of seconds. None: it made no call, or nobody knows."""

    name: str
    calls: int
    unknown_calls: int
    tokens_per_run: float | None
    p50_s: float | None
    p90_s: float | None
    tokens: tuple[int | None, ...]
    seconds: tuple[float | None, ...]


class RecentRuns(msgspec.Struct, frozen=True):
    """`runs`: their ids, oldest first. `left_out`: newest runs whose journals are gone, damaged or too long."""

    runs: tuple[str, ...] = ()
    agents: tuple[Share, ...] = ()
    models: tuple[Share, ...] = ()
    left_out: int = 0


def recent(entries: Sequence[RunEntry], ledger: Ledger) -> RecentRuns:
    """The newest runs among `entries` (rows in the order of their admission) that called a model."""
    newest = [entry for entry in entries if entry.lane and entry.finished and entry.calls][-MAX_RUNS:]
    found: dict[str, list[RecentCall]] = {}
    for entry in newest:
        if entry.text_bytes <= MAX_JOURNAL_BYTES:
            with contextlib.suppress(RunNotFound, JournalDamaged, msgspec.MsgspecError):
                found[entry.run_id] = list(calls_of(ledger, entry.run_id))
    return RecentRuns(
        tuple(found), tuple(_shares(found, "role")), tuple(_shares(found, "model")), len(newest) - len(found)
    )


def calls_of(ledger: Ledger, run_id: str) -> Iterator[RecentCall]:
    """The answered calls of a run. Raises RunNotFound, JournalDamaged, StorageFailed."""
    header, *records = ledger.records(run_id)
    assert isinstance(header, RunHeader)
    chronicle = chronicle_of([header, *records], "not recorded")
    steps = {step.name: step for step in Journal(header, enumerate(records)).steps()}
    for name, step in steps.items():
        answer = value_in(step.answer, TurnResult)
        if answer is None or answer.failure is not None:
            continue
        taken, usage = chronicle.step(name), answer.usage
        yield RecentCall(
            taken.role if taken is not None else "",
            answer.model,
            None if usage is None else usage.input_tokens + usage.output_tokens,
            taken.seconds if taken is not None else None,
        )


def _shares(found: Mapping[str, Sequence[RecentCall]], by: str) -> Iterator[Share]:
    """Those with most tokens first, then by name."""
    groups: dict[str, dict[str, list[RecentCall]]] = defaultdict(lambda: {run_id: [] for run_id in found})
    for run_id, of_run in found.items():
        for call in of_run:
            if name := getattr(call, by):
                groups[name][run_id].append(call)
    shares = []
    for name, of_runs in groups.items():
        calls = [call for of_run in of_runs.values() for call in of_run]
        latencies = _seconds(calls)
        counted = [[call.tokens for call in of_run if call.tokens is not None] for of_run in of_runs.values()]
        tokens = tuple(sum(counts) if counts else None for counts in counted)
        known = [count for count in tokens if count is not None]
        share = Share(
            name=name,
            calls=len(calls),
            unknown_calls=sum(call.tokens is None for call in calls),
            tokens_per_run=round(sum(known) / len(known), 1) if known else None,
            p50_s=rank(latencies, 0.5),
            p90_s=rank(latencies, 0.9),
            tokens=tokens,
            seconds=tuple(rank(_seconds(of_run), 0.5) for of_run in of_runs.values()),
        )
        shares.append(share)
    yield from sorted(shares, key=lambda share: (-sum(filter(None, share.tokens)), share.name))


def _seconds(calls: Iterable[RecentCall]) -> list[float]:
    return sorted(call.seconds for call in calls if call.seconds is not None)


def rank(ordered: Sequence[float], share: float) -> float | None:
    """The nearest rank: the smallest value that at least this share does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None


FORMAT = 1  # raised when a key of the JSON changes its meaning or goes
_MOST = 5


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
    """A day (UTC) by admission."""

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


class MostUsed(msgspec.Struct, frozen=True):
    """Names with their runs, most first, at most five of each."""

    lanes: dict[str, int]
    types: dict[str, int]
    command_files: dict[str, int]
    errors: dict[str, int]


class Stats(msgspec.Struct, frozen=True):
    """The JSON of `council stats --json`. `since` is empty for all runs. `first` and `last` are the admissions of the
    first and the last run counted. `recent` looks into the newest of them."""

    format: int
    since: str
    first: str
    last: str
    by_status: dict[str, int]
    spent: RunSums
    durations: Durations
    models: tuple[OfModel, ...]
    days: tuple[OfDay, ...]
    most_used: MostUsed
    notes: tuple[str, ...]
    recent: RecentRuns = RecentRuns()


def stats(entries: Iterable[RunEntry], since: str, *, last_runs: RecentRuns | None = None) -> Stats:
    """`entries`: rows in the order of admission; control commands are no runs. `last_runs`: the newest, call by call."""
    runs = [entry for entry in entries if entry.lane]
    took: list[float] = []
    for run in runs:
        if run.finished and run.status in ("succeeded", "degraded", "failed"):
            whole = datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.created)
            took.append(max(0.0, whole.total_seconds()) if run.took_ms is None else run.took_ms / 1000)
    took.sort()
    models = [OfModel(model, _spent(of)) for model, of in _grouped(runs, lambda run: run.model).items()]
    days = _grouped(runs, lambda run: run.created[:10])
    return Stats(
        format=FORMAT,
        since=since,
        first=runs[0].created if runs else "",
        last=runs[-1].created if runs else "",
        by_status=_by_status(runs),
        spent=_spent(runs),
        durations=Durations(len(took), rank(took, 0.5), rank(took, 0.9), took[-1] if took else None),
        models=tuple(sorted(models, key=lambda model: -model.spent.runs)),
        days=tuple(OfDay(day, _by_status(of_day), _spent(of_day)) for day, of_day in days.items()),
        most_used=MostUsed(
            lanes=_most(entry.lane for entry in runs),
            types=_most(entry.type for entry in runs),
            command_files=_most(entry.file for entry in runs),
            errors=_most(entry.error for entry in runs),
        ),
        notes=(),
        recent=last_runs or RecentRuns(),
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


def _most(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(filter(None, names)).most_common(_MOST))
