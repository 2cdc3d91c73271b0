"""Routing: its time without a model, the tokens of a routed request with 10 and with 1,000 agents, the CPU of an ask beside a
turn. `python -m benchmarks.routing`; `council eval routing --model …` measures how well a model routes."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from council.agents.manifest import AgentManifest
from council.conductor.matching import by_words
from council.conductor.routing import pick_instruction
from council.conductor.understanding import RequestPart
from council.settings import builtin_personas_dir, init_home

RUNS = 20
_TASK = "Check this login for security holes"
_SCRIPT = """\
replies:
  - {contains: "Read the request. Do not answer it.", text: '{"parts": [{"task": "Say hello"}]}'}
  - {contains: "Choose an agent for each part.", text: '{"picks": [{"part": 1, "agent": "NONE", "confidence": 1.0, "can_answer": true}]}'}
default: {text: "Hello."}
"""  # noqa: E501


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


def match_ms(count: int) -> float:
    """The median of matching one part, in milliseconds."""
    crowd, times = agents(count), []
    by_words(crowd, [_TASK])  # the index is made once
    for _ in range(101):
        began = time.perf_counter()
        by_words(crowd, [_TASK])
        times.append(1_000 * (time.perf_counter() - began))
    return statistics.median(times)


def pick_chars(count: int) -> int:
    """The characters of the request that chooses among so many agents."""
    part = RequestPart(task=_TASK)
    return len(pick_instruction([(1, part, by_words(agents(count), [_TASK]).parts[0])]))


def cpu_s(command: dict[str, object]) -> float:
    """The CPU seconds of one command of many in one process."""
    with tempfile.TemporaryDirectory(prefix="council-routing-") as name:
        home = Path(name)
        init_home(home, personas_from=builtin_personas_dir())
        (home / "council.toml").write_text('model = "scripted:script.yaml"\n')
        (home / "script.yaml").write_text(_SCRIPT)
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


def main() -> None:
    for count in (10, 100, 1_000):
        print(
            f"{count:>5} agents: {match_ms(count):.2f} ms without a model, {pick_chars(count)} characters to choose from"
        )
    ask = cpu_s({"type": "ask", "request": "Say hello.", "new": True})
    deliberate = {"task_description": "Say hello.", "output_artifact_path": "artifacts/", "config": {"max_rounds": 1}}
    turn = cpu_s(deliberate) / 4  # three turns and the closing call
    print(f"CPU: {1_000 * ask:.0f} ms for an ask of three calls, {1_000 * turn:.0f} ms for a turn of a deliberation")


if __name__ == "__main__":
    main()
