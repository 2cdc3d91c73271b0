"""What a benchmark hands over, and the page it becomes."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Row:
    """One measured thing. `reference`: the samples its ratio is taken against; `bar`: the highest ratio that is good."""

    name: str
    samples_s: Sequence[float]
    reference_s: Sequence[float] = ()
    bar: float | None = None

    @property
    def ratio(self) -> float | None:
        """Median over the reference's median."""
        if not self.reference_s:
            return None
        return statistics.median(self.samples_s) / statistics.median(self.reference_s)

    @property
    def verdict(self) -> str:
        if self.ratio is None or self.bar is None:
            return ""
        return "met" if self.ratio <= self.bar else "**missed**"


@dataclass(frozen=True)
class Figure:
    """One number beside its reference; `bar` bounds the ratio, or the value itself where there is no reference."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    bar: float | None = None
    exactly: bool = False

    @property
    def compared(self) -> float:
        return self.value if self.reference is None else self.value / self.reference

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        good = self.compared == self.bar if self.exactly else self.compared <= self.bar
        return "met" if good else "**missed**"


@dataclass(frozen=True)
class Table:
    """One benchmark's rows; `how` says what was done, so that the figures can be doubted."""

    title: str
    how: str
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def percentile_s(samples_s: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile, in seconds."""
    ordered = sorted(samples_s)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def render(tables: Sequence[Table]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `python -m benchmarks`. Each ratio is a median over the median of its reference, both from this one",
        "run, in alternating blocks, so that noise of the machine meets both. Compare ratios, not milliseconds.",
        "",
        "| machine | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine()),
    ]
    for table in tables:
        lines += ["", f"## {table.title}", "", table.how, "", *_table_lines(table)]
    return "\n".join([*lines, ""])


def _table_lines(table: Table) -> list[str]:
    blocks = [_row_lines(table.rows) if table.rows else [], _figure_lines(table.figures) if table.figures else []]
    return [*blocks[0], *([""] if all(blocks) else []), *blocks[1]]


def _figure_lines(figures: Sequence[Figure]) -> list[str]:
    lines = ["| | value | | reference | ratio | bar | |", "|---|--:|---|--:|--:|--:|---|"]
    for figure in figures:
        reference, ratio = (
            ("", "") if figure.reference is None else (_shown(figure.reference), f"{figure.compared:.2f}")
        )
        bar = "" if figure.bar is None else f"{'' if figure.exactly else '≤ '}{figure.bar:g}"
        value = _shown(figure.value)
        lines.append(f"| {figure.name} | {value} | {figure.unit} | {reference} | {ratio} | {bar} | {figure.verdict} |")
    return lines


def _row_lines(rows: Sequence[Row]) -> list[str]:
    lines = ["| | n | p50 ms | p90 ms | ratio | bar | |", "|---|--:|--:|--:|--:|--:|---|"]
    for row in rows:
        p50, p90 = (f"{percentile_s(row.samples_s, percent) * 1e3:.2f}" for percent in (50, 90))
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        bar = "" if row.bar is None else f"≤ {row.bar:g}"
        lines.append(f"| {row.name} | {len(row.samples_s)} | {p50} | {p90} | {ratio} | {bar} | {row.verdict} |")
    return lines


def machine() -> list[tuple[str, str]]:
    """What the figures depend on."""
    return [
        ("cpu", _cpu_model()),
        ("cores", str(os.cpu_count())),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("python", platform.python_version()),
        ("load, last 5 min", f"{os.getloadavg()[1]:.1f} (above 1 the disk is somebody else's too: run it again)"),
        ("date", datetime.now(UTC).date().isoformat()),
    ]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
