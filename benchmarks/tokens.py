"""What a council that remembers more and more asks its models to read: input per task, beside the original's growth."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import benchmarks
from benchmarks.report import Figure, Table
from council.settings import builtin_personas_dir, init_home

TASKS = 100
ROUNDS = 3
AGENTS = 3
CHARS_PER_TOKEN = 4  # of prose; only ratios are compared
_TIMEOUT_S = 600
_SENTENCE = "The archive needs a storage engine that outlives its vendor. "
_SAID = (_SENTENCE * 27).strip()
_DOCUMENT = _SENTENCE * 200


def measure() -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="council-tokens-") as name:
        home = Path(name)
        init_home(home, personas_from=builtin_personas_dir())
        (home / "council.toml").write_text('model = "scripted:script.yaml"\n')
        (home / "script.yaml").write_text(f'default: {{text: "{_SAID}"}}\n')
        (home / "document.md").write_text(_DOCUMENT)
        for number in range(1, TASKS + 1):
            body = {
                "task_description": f"Which engine is to hold part {number} of the archive?",
                "output_artifact_path": f"artifacts/{number}.md",
                "input_artifacts": ["document.md"],
                "config": {"max_rounds": ROUNDS},
            }
            (home / "commands" / f"{number:03}.json").write_text(json.dumps(body))
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.tokens_council", str(home)],
            cwd=Path(benchmarks.__file__).parents[1], check=True, timeout=_TIMEOUT_S, capture_output=True, text=True,
        )  # fmt: skip
        persona_chars = statistics.fmean(len(path.read_text()) for path in (home / "personas").glob("*.md"))
    tasks = [chars / CHARS_PER_TOKEN for chars in json.loads(done.stdout.splitlines()[-1])]
    assert len(tasks) == TASKS, len(tasks)
    fifth, newest = tasks[4], tasks[-10:]
    original = _original(persona_chars / CHARS_PER_TOKEN)
    return [
        Table(
            f"Input per task, {TASKS} tasks in one lane",
            f"Ours: the real daemon, {AGENTS} agents, {ROUNDS} rounds, a document of {len(_DOCUMENT):,} characters, turns of\n"
            f"{len(_SAID):,}; every request counted, closing call and rolling summary included, {CHARS_PER_TOKEN} characters\n"
            "to a token. The original keeps every chat whole and repeats it with each call; its input is computed by its\n"
            "formula with the same sizes.",
            [],
            [
                Figure("task 5", fifth, "tokens"),
                Figure("task 100", tasks[-1], "tokens", fifth, 1.1),
                Figure("tasks 91 to 100, mean", statistics.fmean(newest), "tokens", fifth, 1.1),
                Figure("tasks 91 to 100, most", max(newest), "tokens", fifth),
                Figure("the original, task 5", original[4], "tokens"),
                Figure("the original, task 100", original[-1], "tokens", original[4]),
                Figure("all tasks", sum(tasks), "tokens", sum(original)),
            ],
        )
    ]


def _original(persona_tokens: float) -> list[float]:
    """Per task, by its formula: the n-th turn of an agent carries its persona, all its earlier questions and replies, and
    the new question, which is the reply before it; the coordinator's chat carries every task's document, too."""
    reply, document = len(_SAID) / CHARS_PER_TOKEN, len(_DOCUMENT) / CHARS_PER_TOKEN
    tasks = []
    for task in range(1, TASKS + 1):
        turns = range((task - 1) * ROUNDS + 1, task * ROUNDS + 1)
        chats = sum(persona_tokens + (turn - 1) * 2 * reply + reply for turn in turns) * AGENTS
        tasks.append(chats + ROUNDS * task * document)
    return tasks
