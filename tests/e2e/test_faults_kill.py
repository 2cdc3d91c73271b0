"""`kill -9` at random instants, spread over the states of a run: the outcome is the uninterrupted one.

Four lanes work side by side in one home while the real process is killed ten times, once in each state, by another
process (tests/faults.py); then it is left alone. Every decision, memory and receipt is then what a home without a kill
has, and no more calls were made twice than were in flight when a kill came. 200 kills in all, in two tests.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from council.engine.journal import FileJournal, read_records
from council.engine.records import StepBegun, StepDone
from tests.harness import FAULTY, command, drop_command, faulty_environment, make_home, receipts, run_cli

SECRET = "a7" * 32
SEED = 20_261_120
LANES = ("north", "east", "south", "west")
COMMANDS_PER_LANE = 9  # more than ten lives can end; the reference has them all
HOMES_PER_TEST = 10
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


@dataclass(frozen=True)
class State:
    """Where a kill is to come: up to `within_us` after the n-th line of the trace that holds `text`, n up to `most`."""

    text: str
    most: int
    within_us: int
    busy: bool = False  # with a provider that has no time for STRATEGIST, in a daemon that waits for it


STATES = {
    "queued": State("event run_queued", 2, 4_000),
    "turn in flight": State("event turn_started", 8, 30_000),
    "between steps": State("event turn_ended", 8, 4_000),
    "tools": State('"name":"round/1/COORDINATOR/request/', 6, 8_000),
    "producing the artifact": State("PRODUCING_ARTIFACT", 2, 12_000),
    "commit": State('"t":"commit"', 2, 10_000),
    "taking": State(".taken", 2, 2_000),
    "waiting": State("event run_waiting", 1, 500_000, busy=True),
    "recovery": State("event daemon_started", 1, 30_000),
    "anywhere": State("", 1, 500_000),
}


def made_home(folder: Path) -> Path:
    home = make_home(folder, settings=SETTINGS)
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
        COUNCIL_TEST_FAULT=fault, COUNCIL_TEST_RUN_SECRET=SECRET, COUNCIL_TEST_CALLS=f"{home}.calls"
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


# ── what is looked at ────────────────────────────────────────────────────────────────────────────────────────────────


def journals(home: Path) -> list[Path]:
    return sorted((home / ".council" / "runs").glob("2*/journal.jsonl"))


def require_readable(home: Path) -> None:
    """No file is unreadable: the torn end of a journal is what every reader leaves out."""
    for path in home.rglob("*.json"):
        json.loads(path.read_bytes())
    for path in journals(home):
        if b"\n" in path.read_bytes():
            FileJournal.read(path)


def open_calls(home: Path) -> Counter[tuple[str, str]]:
    """The model calls that are begun and not answered, by task and step."""
    found: Counter[tuple[str, str]] = Counter()
    for path in journals(home):
        data = path.read_bytes()
        if b"\n" not in data:  # the process died before there was a run
            continue
        records, _, _ = read_records(path, data)
        task = records[0].command["task_description"]  # type: ignore[union-attr]
        begun = {record.name for record in records if isinstance(record, StepBegun)}
        done = {record.name for record in records if isinstance(record, StepDone)}
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
    assert [path.name for path in (home / "commands").iterdir()] == ["README.md"]
    assert [path for path in home.rglob("*") if path.name.endswith((".tmp", ".staged", ".taken"))] == []
    assert list((home / ".council" / "active").iterdir()) == []
    assert sorted(path.name for path in (home / ".council" / "runs").iterdir()) == sorted(
        receipt["run_id"] for receipt in receipts(home)
    )
    for path in journals(home):
        data = path.read_bytes()
        assert read_records(path, data)[1] == len(data)


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All commands, and no kill."""
    home = made_home(tmp_path_factory.mktemp("uninterrupted") / "home")
    for number in range(1, COMMANDS_PER_LANE + 1):
        for lane in LANES:
            drop_next(home, lane, number)
    assert live(home) == 0
    assert len(receipts(home)) == COMMANDS_PER_LANE * len(LANES)
    return home


def drop_more(home: Path, dropped: dict[str, int]) -> None:
    """A lane without a command gets its next one, and one lane another besides."""
    waiting = Counter(path.stem.split("-")[0] for path in (home / "commands").glob("*.json"))
    idle = [lane for lane in LANES if waiting[lane] == 0]
    for lane in idle or [min(LANES, key=lambda lane: dropped[lane])]:
        if dropped[lane] < COMMANDS_PER_LANE:
            dropped[lane] += 1
            drop_next(home, lane, dropped[lane])


def kill_once_in(state: State, home: Path, dropped: dict[str, int], rng: random.Random) -> str:
    """Lives until a kill hits; the instant at which it did."""
    (home / "script.yaml").write_text(BUSY if state.busy else SCRIPT)
    for tries in range(MAX_TRIES):
        drop_more(home, dropped)
        count = rng.randint(1, max(1, state.most >> tries))
        instant = f"kill-in:{count}:{rng.randrange(state.within_us) >> tries}:{state.text}"
        if live(home, instant, once=not state.busy) == -9:
            (home / "script.yaml").write_text(SCRIPT)
            return instant
    raise AssertionError(f"no life came so far: {state}")


@pytest.mark.parametrize("half", [1, 2])
def test_killed_at_100_random_instants_in_every_state_the_outcome_is_the_uninterrupted_one(
    tmp_path: Path, reference: Path, half: int
) -> None:
    rng = random.Random(SEED + half)
    for number in range(HOMES_PER_TEST):
        home = made_home(tmp_path / str(number))
        dropped = dict.fromkeys(LANES, 0)
        in_flight: Counter[tuple[str, str]] = Counter()
        instants = []
        for name in rng.sample(sorted(STATES), len(STATES)):
            instants.append(kill_once_in(STATES[name], home, dropped, rng))
            require_readable(home)
            in_flight += open_calls(home)
        assert live_on(home) == 0, instants
        assert repeated_calls(home) - in_flight == Counter(), instants
        require_readable(home)
        require_the_outcome_of(reference, home, dropped)
        require_nothing_left_over(home)
