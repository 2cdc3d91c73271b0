"""Routing: its time without a model and the size of the request that chooses, with 10 and with 1,000 agents; the CPU of an ask
beside a turn. `council eval routing --model …` measures how well a model routes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.report import Figure, Row, Table
from council.agents.manifest import AgentManifest
from council.conductor.matching import by_words
from council.conductor.routing import pick_instruction
from council.conductor.understanding import RequestPart
from council.settings import builtin_personas_dir, init_home

RUNS = 20
MATCHES = 101
_TASK = "Check this login for security holes"
_UNDERSTOOD = {"parts": [{"task": "Say hello"}]}
_PICKED = {"picks": [{"part": 1, "agent": "NONE", "confidence": 1.0, "can_answer": True}]}


def measure() -> list[Table]:
    few, many = match_s(10), match_s(1_000)
    ask = cpu_s({"type": "ask", "request": "Say hello.", "new": True})
    deliberate = {"task_description": "Say hello.", "output_artifact_path": "artifacts/", "config": {"max_rounds": 1}}
    turn = cpu_s(deliberate) / 4  # three turns and the closing call
    return [
        Table(
            "Routing a request",
            "The match finds the nearest agents by words, without a model; the model sees those alone. An ask is three calls:\n"
            f"to understand, to choose, to answer. Its CPU and that of a turn are means over {RUNS} commands of one process.",
            [Row("match among 10 agents", few), Row("match among 1,000 agents", many)],
            [
                Figure("match among 1,000 agents, median", sorted(many)[MATCHES // 2] * 1e3, "ms", None, 5),
                Figure("the request that chooses among 1,000 / 10", pick_chars(1_000), "characters", pick_chars(10)),
                Figure("CPU of an ask / of a turn", ask * 1e3, "ms", turn * 1e3),
            ],
        )
    ]


def agents(count: int) -> list[AgentManifest]:
    """So many agents of different purposes."""
    return [
        AgentManifest(
            id=f"agent-{number}",
            role=f"AGENT_{number}",
            purpose=f"Plans and reviews work of kind {number}, and names its risks.",
            scope="task",
            instructions="You work.",
        )
        for number in range(count)
    ]


def match_s(count: int) -> list[float]:
    """The times of matching one part among so many agents."""
    crowd, times_s = agents(count), []
    by_words(crowd, [_TASK])  # the index is made once
    for _ in range(MATCHES):
        began_s = time.perf_counter()
        by_words(crowd, [_TASK])
        times_s.append(time.perf_counter() - began_s)
    return times_s


def pick_chars(count: int) -> int:
    """The characters of the request that chooses among so many agents."""
    part = RequestPart(task=_TASK)
    return len(pick_instruction([(1, part, by_words(agents(count), [_TASK]).parts[0])]))


def cpu_s(command: Mapping[str, object]) -> float:
    """The CPU seconds of one command of many in one process."""
    with tempfile.TemporaryDirectory(prefix="council-routing-") as name:
        home = Path(name)
        init_home(home, personas_from=builtin_personas_dir())
        (home / "council.toml").write_text('model = "scripted:script.yaml"\nmax_parallel_runs = 1\n')
        said = [
            {"role": "CONDUCTOR", "purpose": "other", "text": json.dumps(reply)} for reply in (_UNDERSTOOD, _PICKED)
        ]
        (home / "script.yaml").write_text(json.dumps({"replies": said * RUNS, "default": {"text": "Hello."}}))
        for number in range(RUNS):
            (home / "commands" / f"{number:03}.json").write_text(json.dumps(command))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "council", "--home", name, "run", "--once"],
            check=True,
            capture_output=True,
            timeout=600,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / RUNS
