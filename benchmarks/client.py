"""What a call costs its client late in a run and late in the life of a home, through the real google-genai client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import benchmarks
from benchmarks.report import Row, Table
from council.settings import builtin_personas_dir, init_home

TURNS = 300
TASKS = 100
_AROUND = 11  # calls of which the median is taken
_TIMEOUT_S = 900
_SENTENCE = "The archive needs a storage engine that outlives its vendor. "
_SAID = (_SENTENCE * 35).strip()


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-client-") as name:
        home = Path(name) / "home"
        init_home(home, personas_from=builtin_personas_dir())
        (home / "council.toml").write_text('model = "gemini:gemini-2.5-flash"\n')
        script = Path(name) / "script.json"
        script.write_text(json.dumps([{"reply": "text", "with": {"answer": _SAID}, "times": 0}]))
        for number in range(1, TASKS + 1):
            _drop(home, number, rounds=1)
        _drop(home, TASKS + 1, rounds=TURNS // 3)
        with subprocess.Popen(
            [
                sys.executable, "-m", "tests.fake_gemini", "--port-file", f"{name}/port", "--record", os.devnull,
                "--script", str(script), "--max-seconds", str(_TIMEOUT_S),
            ],
            cwd=Path(benchmarks.__file__).parents[1],
        ) as server:  # fmt: skip
            try:
                while not Path(name, "port").exists():
                    time.sleep(0.05)
                url = f"http://127.0.0.1:{Path(name, 'port').read_text().strip()}"
                calls = _calls(home, url)
            finally:
                server.terminate()
    run = [call["cpu_s"] for call in calls if call["task"] == TASKS + 1]
    assert len(run) >= TURNS, len(run)
    early = run[4 : 4 + _AROUND]
    return [
        Table(
            f"CPU of one model call in its client ({TURNS} turns of {len(_SAID):,} characters; then {TASKS} tasks in one home)",
            "The real daemon and the real google-genai client against a fake server in a process of its own; CPU of the whole\n"
            "process during the call: request, JSON, HTTP, answer. (The original's chat costs 188 to 198 ms a call at turn 300.)",
            [
                Row("turn 10", early),
                Row(f"turn {TURNS}", run[TURNS - _AROUND : TURNS], early, 2),
                Row(f"the calls of task {TASKS}", [c["cpu_s"] for c in calls if c["task"] == TASKS], early, 2),
            ],
        )
    ]


def _drop(home: Path, number: int, *, rounds: int) -> None:
    body = {
        "task_description": f"Which engine is to hold part {number} of the archive?",
        "output_artifact_path": f"artifacts/{number}.md",
        "config": {"max_rounds": rounds},
    }
    (home / "commands" / f"{number:03}.json").write_text(json.dumps(body))


def _calls(home: Path, url: str) -> list[dict[str, float]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.client_council", str(home), url],
        cwd=Path(benchmarks.__file__).parents[1], check=True, timeout=_TIMEOUT_S, capture_output=True, text=True,
    )  # fmt: skip
    calls: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return calls
