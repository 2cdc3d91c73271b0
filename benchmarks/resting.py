"""What a daemon costs that has nothing to do, and what it weighs before and after real work through google-genai."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import benchmarks
from benchmarks.report import Figure, Table
from council.engine.ledger import Ledger
from council.settings import builtin_personas_dir, init_home
from council.storage.reader import Reader

IDLE_S = 60.0
_TIMEOUT_S = 60.0
_PAUSE_S = 0.1


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-resting-") as name:
        home = Path(name) / "home"
        init_home(home, personas_from=builtin_personas_dir())
        with subprocess.Popen(
            [sys.executable, "-m", "tests.fake_gemini", "--port-file", f"{name}/port", "--record", f"{name}/record"],
            cwd=Path(benchmarks.__file__).parents[1],
        ) as server:
            try:
                _wait_for(Path(name, "port"))
                figures = _figures(home, Path(name, "port").read_text().strip())
            finally:
                server.terminate()
    how = "`council run` as a process of its own, watching; then one command over the real google-genai client (fake server)."
    return [Table("A daemon at rest", how, [], figures)]


def _figures(home: Path, port: str) -> list[Figure]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COUNCIL_")}
    environ |= {"GEMINI_API_KEY": "test-key-0123456789", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}"}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "council", "run", "--model", "gemini:gemini-2.5-flash"],
        cwd=home, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(home / ".council" / "state.json")
        time.sleep(2)  # start-up is over
        before_mib = _resident_mib(daemon.pid)
        spent_s = _cpu_s(daemon.pid)
        time.sleep(IDLE_S)
        idle_percent = (_cpu_s(daemon.pid) - spent_s) / IDLE_S * 100
        _deliberate(home)
        after_mib = _resident_mib(daemon.pid)
    finally:
        daemon.terminate()
        daemon.wait(_TIMEOUT_S)
    return [
        Figure(f"CPU over {IDLE_S:.0f} s", idle_percent, "% of a core", None, 0.1),
        Figure("resident before any command", before_mib, "MiB", None, 60),
        Figure("resident after a Gemini run", after_mib, "MiB", None, 100),
    ]


def _deliberate(home: Path) -> None:
    body = {"task_description": "Which engine?", "output_artifact_path": "artifacts/engine.md"}
    temporary = home / "commands" / ".engine.json.tmp"
    temporary.write_text(json.dumps(body))
    os.rename(temporary, home / "commands" / "engine.json")
    give_up_at = time.monotonic() + _TIMEOUT_S
    while not (ended := Ledger(Reader(home / ".council")).newest(1, ended_only=True)):
        assert time.monotonic() < give_up_at, "the run did not end"
        time.sleep(_PAUSE_S)
    assert ended[0].status == "succeeded", ended[0].status
    time.sleep(1)


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for(path: Path) -> None:
    give_up_at = time.monotonic() + _TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < give_up_at, f"{path.name} did not appear"
        time.sleep(_PAUSE_S)
