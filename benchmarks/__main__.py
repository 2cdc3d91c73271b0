"""Runs every benchmark and rewrites RESULTS.md: `python -m benchmarks`."""

from __future__ import annotations

from benchmarks import client, pickup, resting, secrets_and_audit, startup, throughput, tokens, turns, untrusted
from benchmarks.report import RESULTS, render


def main() -> None:
    tables = [
        table
        for benchmark in (pickup, startup, turns, resting, throughput, tokens, client, secrets_and_audit, untrusted)
        for table in benchmark.measure()
    ]
    page = render(tables)
    RESULTS.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
