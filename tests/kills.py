"""A home whose process is killed again and again while four lanes work, and what it must hold afterwards.

For the suite, and for thousands of kills in `benchmarks/`. The reference is a home with the same commands and no kill.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.faults import STATEMENT_CHARS
from tests.harness import (
    FAULTY,
    command,
    drop_command,
    faulty_environment,
    inbox,
    journal,
    make_home,
    receipts,
    rows_of,
    run_cli,
    run_ids,
    unfinished,
)

SECRET = "a7" * 32
LANES = ("north", "east", "south", "west")
COMMANDS_PER_LANE = 9  # more than ten lives can end; the reference has them all
PAUSE_S = 1
PAUSED = 75
MAX_TRIES = 6  # a life may end before its instant comes; then an earlier one is drawn
VARIES = {"id", "created", "finished", "attempts", "tokens_in", "tokens_out", "cost", "audit_head"}
OTHER_STEPS = {"synthesis": "synthesis", "other": "memory/summary"}  # the steps of calls that are no turns, by purpose
SETTINGS = """\
model = "scripted:script.yaml"
settle_s = 5
scan_interval_s = 0.2
max_attempts = 100
max_inline_wait_s = 0
read_roots = ["a.md", "given/**"]
"""
ROUND = """\
  - {role: COORDINATOR, round: 1, purpose: turn, times: 0, delay_s: 0.03, text: "The figures.\\n\\n[ORCHESTRATOR_REQUEST:\
 READ_FILE(given/b.md)]\\n\\n[ORCHESTRATOR_REQUEST: LIST_FILES(given)]\\n\\n[ORCHESTRATOR_REQUEST: QUERY_CORTEX(beta fact)]"}
  - {role: COORDINATOR, purpose: synthesis, times: 0, delay_s: 0.02, text: "Do it [E1: a.md:1]."}
"""
SCRIPT = f'replies:\n{ROUND}default: {{text: "Nothing to add.", delay_s: 0.03}}\n'
BUSY = f"""\
replies:
  - {{role: STRATEGIST, times: 0, error: {{kind: rate, retry_after_s: {PAUSE_S}}}}}
{ROUND}default: {{text: "Nothing to add.", delay_s: 0.03}}
"""


def made_home(folder: Path, settings: str = "") -> Path:
    home = make_home(folder, settings=settings + SETTINGS)
    (home / "script.yaml").write_text(SCRIPT)
    (home / "a.md").write_text("alpha is the first fact\n")
    (home / "given").mkdir()
    (home / "given" / "b.md").write_text("beta is the second fact\n")
    return home


def drop_next(home: Path, lane: str, number: int) -> None:
    name = f"{lane}-{number}"
    task = f"Question {number} of {lane}: which fact counts?"
    body = command(task, session=lane, input_artifacts=["a.md"], output_artifact_path=f"artifacts/{name}.md")
    drop_command(home, body, f"{name}.json")


def live(home: Path, fault: str = "count", *, once: bool = True) -> int:
    """One life of the real process; its exit code."""
    env = faulty_environment(
        COUNCIL_TEST_FAULT=fault,
        COUNCIL_TEST_FAULT_LOG=f"{home}.log",
        COUNCIL_TEST_RUN_SECRET=SECRET,
        COUNCIL_TEST_CALLS=f"{home}.calls",
    )
    until = ["--once"] if once else []
    return run_cli("run", *until, "--log-format", "json", cwd=home, env=env, module=FAULTY).returncode


def live_on(home: Path) -> int:
    """Lives until no provider's pause is left of the last kill; the exit code then."""
    for _ in range(MAX_TRIES):
        code = live(home)
        if code != PAUSED:
            break
        time.sleep(PAUSE_S)
    return code


def made_reference(folder: Path) -> Path:
    """All commands, and no kill."""
    home = made_home(folder)
    for number in range(1, COMMANDS_PER_LANE + 1):
        for lane in LANES:
            drop_next(home, lane, number)
    assert live(home) == 0
    assert len(receipts(home)) == COMMANDS_PER_LANE * len(LANES)
    return home


# ── what is looked at ────────────────────────────────────────────────────────────────────────────────────────────────


def require_readable(home: Path) -> None:
    """No file is damaged, nor any row of a journal."""
    for path in home.rglob("*.json"):
        json.loads(path.read_bytes())
    for run_id in run_ids(home):
        journal(home, run_id)


def acknowledged(home: Path) -> set[tuple[str, ...]]:
    """What the database said was committed, over all lives: runs, their rows and their ends, as `present` tells them."""
    found: set[tuple[str, ...]] = set()
    pending: list[tuple[str, ...]] = []
    last = 0
    for line in Path(f"{home}.log").read_text().splitlines():
        number, name, *words = line.split(" ")
        if int(number) < last or words[:1] == ["ROLLBACK"]:  # another life began, or this one thought better of it
            pending = []
        last = int(number)
        if name == "sql":
            pending += _told(" ".join(words))
        elif name == "done" and words[0].startswith("commit"):
            found.update(pending)
            pending = []
    return found


def _told(statement: str) -> list[tuple[str, ...]]:
    verb, values = statement[:STATEMENT_CHARS].strip(), statement[STATEMENT_CHARS:].split(" ")[1:]
    if verb.startswith("INSERT INTO steps"):
        return [("step", *values[:4])]
    if verb.startswith("INSERT INTO runs"):
        return [("run", values[0])]
    return []


def present(home: Path) -> set[tuple[str, ...]]:
    """What a database holds of all that."""
    return {
        *(
            ("step", str(run), str(seq), kind, name)
            for run, seq, kind, name in rows_of(home, "SELECT run, seq, kind, name FROM steps")
        ),
        *(("run", run_id) for (run_id,) in rows_of(home, "SELECT run_id FROM runs")),
    }


def open_calls(home: Path) -> Counter[tuple[str, str]]:
    """The model calls that are begun and not answered, by task and step."""
    found: Counter[tuple[str, str]] = Counter()
    for run_id in run_ids(home):
        header, *records = journal(home, run_id)
        begun, done = ({record["name"] for record in records if record["t"] == kind} for kind in ("begin", "done"))
        task = header["command"]["task_description"]
        found.update((task, step) for step in begun - done if step in OTHER_STEPS.values() or step.count("/") == 2)
    return found


def repeated_calls(home: Path) -> Counter[tuple[str, str]]:
    """How often each model call was made beyond once; refused ones were not made."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in Path(f"{home}.calls").read_text().splitlines():
        word, task, purpose, round_no, role = line.split("\t")
        step = OTHER_STEPS.get(purpose, f"round/{round_no}/{role}")
        counts[(task, step)] += {"begin": 1, "end": 0, "refused": -1}[word]
    return counts - Counter(counts.keys())


def decision(home: Path, name: str) -> tuple[dict[str, Any], str]:
    _, front, body = (home / "artifacts" / f"{name}.md").read_text().split("---\n", 2)
    return {key: value for key, value in yaml.safe_load(front).items() if key not in VARIES}, body


def memory(home: Path, lane: str, role: str, count: int) -> list[dict[str, Any]]:
    session = json.loads((home / "session_states" / lane / f"{role}_session.json").read_bytes())
    return [{key: task[key] for key in ("title", "status", "answer", "messages")} for task in session["tasks"][:count]]


def require_the_outcome_of(reference: Path, home: Path, dropped: dict[str, int]) -> None:
    names = sorted(f"{lane}-{number}" for lane, count in dropped.items() for number in range(1, count + 1))
    assert sorted(receipt["command_file"]["name"] for receipt in receipts(home)) == [f"{name}.json" for name in names]
    assert {receipt["status"] for receipt in receipts(home)} == {"succeeded"}
    for name in names:
        assert decision(home, name) == decision(reference, name)
    for lane, count in dropped.items():
        for role in ("coordinator", "strategist", "auditor"):
            assert memory(home, lane, role, count + 1) == memory(reference, lane, role, count)


def require_nothing_left_over(home: Path) -> None:
    assert inbox(home) == []
    assert [path for path in home.rglob("*") if path.name.endswith((".tmp", ".staged", ".taken"))] == []
    assert unfinished(home) == set()
    assert run_ids(home) == sorted(receipt["run_id"] for receipt in receipts(home))


def drop_more(home: Path, dropped: dict[str, int]) -> None:
    """A lane without a command gets its next one, and one lane another besides."""
    waiting = Counter(path.stem.split("-")[0] for path in (home / "commands").glob("*.json"))
    idle = [lane for lane in LANES if waiting[lane] == 0]
    for lane in idle or [min(LANES, key=lambda lane: dropped[lane])]:
        if dropped[lane] < COMMANDS_PER_LANE:
            dropped[lane] += 1
            drop_next(home, lane, dropped[lane])


def outlive(home: Path, reference: Path, kills: Iterable[Callable[[dict[str, int]], object]]) -> int:
    """A home whose process dies of each of `kills`, and is then left alone: how many acknowledged writes it still holds.
    All of them, every command once, the outcome of the home without a kill, and no call twice but those in flight."""
    dropped = dict.fromkeys(LANES, 0)
    in_flight: Counter[tuple[str, str]] = Counter()
    instants = []
    for kill in kills:
        instants.append(kill(dropped))
        require_readable(home)
        in_flight += open_calls(home)
    code = live_on(home)
    assert code == 0, (code, instants)
    missing = acknowledged(home) - present(home)
    assert missing == set(), instants
    assert repeated_calls(home) - in_flight == Counter(), instants
    require_readable(home)
    require_the_outcome_of(reference, home, dropped)
    require_nothing_left_over(home)
    return len(acknowledged(home))


def kill_at_random(home: Path, dropped: dict[str, int], rng: random.Random, within_us: int = 600_000) -> str:
    """Lives until a kill hits, so long at most after the first line of the trace; the instant at which it did."""
    for tries in range(MAX_TRIES):
        drop_more(home, dropped)
        instant = f"kill-in:1:{rng.randrange(within_us) >> tries}:"
        if live(home, instant) == -9:
            return instant
    raise AssertionError("no life lasted so long")
