"""How long a person waits for the command line: `council status`, and `council demo` from nothing to its decision."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Row, Table
from council.settings import builtin_personas_dir, init_home

STARTS = 15
DEMOS = 5
_BAR_STATUS = 1.5
_REFERENCE = "import typer, rich.table; from pydantic import BaseModel"


def measure(starts: int = STARTS, demos: int = DEMOS) -> list[Table]:
    """One table; starts of the reference and of the subject alternate."""
    reference_s, status_s, demo_s = [], [], []
    with tempfile.TemporaryDirectory(prefix="council-startup-") as name:
        scratch = Path(name)
        home = scratch / "home"
        init_home(home, personas_from=builtin_personas_dir())
        for number in range(starts + 1):  # the first of each warms the caches and does not count
            reference_s.append(_wall_s("-c", _REFERENCE, cwd=home))
            status_s.append(_wall_s("-m", "council", "status", cwd=home))
            if number <= demos:
                demo_s.append(_wall_s("-m", "council", "demo", f"demo-{number}", cwd=scratch))
    return [
        Table(
            "Start-up",
            "Wall time of whole processes, in turns. `council demo` makes a home, starts the real daemon as a process\n"
            "of its own and deliberates offline over three documents, three rounds of three agents, every step synced.",
            [
                Row(f"`python -c '{_REFERENCE}'`", reference_s[1:]),
                Row("`council status`", status_s[1:], reference_s[1:], _BAR_STATUS),
                Row("`council demo`", demo_s[1:], reference_s[1:]),
            ],
        )
    ]


def _wall_s(*arguments: str, cwd: Path) -> float:
    began_s = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began_s
