"""Runs every benchmark and rewrites RESULTS.md: `python -m benchmarks`. With names, it runs those and only prints."""

from __future__ import annotations

import argparse

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

_ALL = (
    pickup, cancelling, planning, startup, store, turns, resting, throughput, tokens, client, secrets_and_audit, untrusted,
    cage, offline_sets, world, window, routing,
)  # fmt: skip


def main() -> None:
    named = {benchmark.__name__.rpartition(".")[2]: benchmark for benchmark in _ALL}
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run every benchmark and rewrite RESULTS.md. With names, run those and only print.",
        epilog=f"The benchmarks: {', '.join(named)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in named]:
        parser.error(f"there is no benchmark {unknown[0]}; known: {', '.join(named)}")
    page = render([table for name in names or named for table in named[name].measure()])
    if not names:
        RESULTS.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
