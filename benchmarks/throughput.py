"""How many commands a second: 1,000 and 10,000 queued over 8 lanes, a scripted model, beside what the disk syncs a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Figure, Table
from council.engine.ledger import Ledger
from council.settings import builtin_personas_dir, init_home
from council.storage.reader import Reader

COMMANDS = 1_000
MANY = 10_000
LANES = 8
_SYNCS = 500
_TIMEOUT_S = 1_200


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-queue-") as name:
        syncs_per_s = _syncs_per_s(Path(name))
        few, many = (_per_s(Path(name) / str(count), count) for count in (COMMANDS, MANY))
    return [
        Table(
            f"Commands queued over {LANES} lanes",
            "The whole process, start to end: three turns, a synthesis, commit, receipt and taking each. The reference is what\n"
            f"one file takes of append + fdatasync a second here, and for {MANY:,} commands the rate of {COMMANDS:,}. The\n"
            "processor bounds it, mostly in the event loop's thread.",
            [],
            [
                Figure(f"{COMMANDS:,} at once, commands per second", few, "1/s", syncs_per_s),
                Figure(f"{MANY:,} at once, commands per second", many, "1/s", few),
            ],
        )
    ]


def _per_s(home: Path, count: int) -> float:
    init_home(home, personas_from=builtin_personas_dir())
    (home / "council.toml").write_text(f'model = "scripted:script.yaml"\nmax_parallel_runs = {LANES}\n')
    (home / "script.yaml").write_text("default: {text: Nothing to add.}\n")
    for number in range(count):
        body = {
            "task_description": f"Decide question {number}.",
            "output_artifact_path": f"artifacts/{number}.md",
            "session": f"lane-{number % LANES}",
            "config": {"max_rounds": 1},
        }
        (home / "commands" / f"{number:05}.json").write_text(json.dumps(body))
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "council", "run", "--once"],
        cwd=home, check=True, timeout=_TIMEOUT_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    taken_s = time.perf_counter() - started
    ended = Ledger(Reader(home / ".council")).count()
    assert ended == count, ended
    return count / taken_s


def _syncs_per_s(folder: Path) -> float:
    fd = os.open(folder / "syncs", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    started = time.perf_counter()
    try:
        for _ in range(_SYNCS):
            os.write(fd, b"x" * 500)
            os.fdatasync(fd)
    finally:
        os.close(fd)
    return _SYNCS / (time.perf_counter() - started)
