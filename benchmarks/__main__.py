"""Runs every benchmark and rewrites RESULTS.md: `python -m benchmarks`."""

from __future__ import annotations

from benchmarks import (
    cage,
    cancelling,
    client,
    offline_sets,
    pickup,
    planning,
    resting,
    routing,
    secrets_and_audit,
    startup,
    store,
    throughput,
    tokens,
    turns,
    untrusted,
    window,
    world,
)
from benchmarks.report import RESULTS, render


def main() -> None:
    benchmarks = (
        pickup, cancelling, planning, startup, store, turns, resting, throughput, tokens, client, secrets_and_audit, untrusted,
        cage, offline_sets, world, window, routing,
    )  # fmt: skip
    page = render([table for benchmark in benchmarks for table in benchmark.measure()])
    RESULTS.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
