"""The calls of the last runs, by agent and by model, from the runs' journals: tokens and seconds.

The ledger has sums of runs; only journals know of calls. So this looks at the newest runs alone, as many as a plot
shows. A journal that cannot be read is left out and counted.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    """An agent's or a model's calls in the last runs. `tokens` and `seconds` have one figure for each of those runs,
    oldest first: the sum of its tokens and the median of its calls' seconds. They are None where it made no call or
    nobody knows."""

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
        tuple(found),
        tuple(_shares(found, "role")),
        tuple(_shares(found, "model")),
        len(newest) - len(found),
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
