"""Pull the plug anywhere: the run goes on, nothing is lost, nothing runs twice.

The process kills itself (SIGKILL) before each single change it makes to the disk, in the real `council run`; then the
real daemon starts again. Whatever the instant, the result is the uninterrupted run's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import (
    FAULTY,
    command,
    drop_command,
    environment,
    faulty_environment,
    inbox,
    journal,
    make_home,
    receipts,
    run_cli,
    run_ids,
    steps,
    unfinished,
)

SECRET = "5e" * 32
VARIES = ("id", "created", "finished", "audit_head")
SCRIPT = """\
replies:
  - {role: COORDINATOR, round: 1, purpose: turn, text: "First I want the figures.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"}
  - {role: COORDINATOR, purpose: synthesis, text: "Do it [E1: a.md:1]."}
default: {text: "Nothing to add."}
"""
BY_THE_CLOCK = 16  # changes that one process makes and another does not: the state file is written on a timer, and what
# waits together is committed together
STRIDE = 11  # each test takes every 11th instant, so that the cases share the cores evenly


def prepared(folder: Path, database_url: str | None = None) -> Path:
    settings = 'model = "scripted:script.yaml"\nsettle_s = 0.2\nwatch = "poll"\n'
    if database_url is not None:
        settings += f"database_url = {json.dumps(database_url)}\n"
    home = make_home(folder, settings=settings)
    (home / "script.yaml").write_text(SCRIPT)
    (home / "a.md").write_text("alpha is the first fact\n")
    (home / "b.md").write_text("beta is the second fact\n")
    drop_command(home, command("Which fact counts?", input_artifacts=["a.md"]))
    return home


def run_with_fault(home: Path, fault: str) -> int:
    env = faulty_environment(
        COUNCIL_TEST_FAULT=fault, COUNCIL_TEST_FAULT_LOG=f"{home}.log", COUNCIL_TEST_RUN_SECRET=SECRET
    )
    return run_cli("run", "--once", "--log-format", "json", cwd=home, env=env, module=FAULTY).returncode


def changes_made(home: Path) -> int:
    """How many changes to the disk the process made."""
    return int(Path(f"{home}.log").read_text().splitlines()[-1].split()[0])


def body_and_front(home: Path) -> tuple[str, dict[str, str]]:
    text = (home / "artifacts" / "out.md").read_text()
    _, front, body = text.split("---\n", 2)
    keys = dict(line.split(": ", 1) for line in front.splitlines() if ": " in line)
    return body, {key: value for key, value in keys.items() if key not in VARIES}


def left_over(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.name.endswith((".staged", ".taken", ".tmp"))]


def begun_steps(home: Path) -> Counter[str]:
    """How often each step was begun, over all journals of the home."""
    counts: Counter[str] = Counter()
    for run_id in run_ids(home):
        for record in journal(home, run_id):
            if record["t"] == "begin" and record["name"] != "attempt":
                counts[record["name"]] += 1
    return counts


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = prepared(tmp_path_factory.mktemp("reference") / "home")
    assert run_with_fault(home, "count") == 0
    return home


@pytest.fixture(scope="module")
def reference(uninterrupted: Path) -> tuple[str, dict[str, str]]:
    return body_and_front(uninterrupted)


@pytest.mark.parametrize("start", range(1, STRIDE + 1))
def test_killed_before_any_change_to_the_disk_the_result_is_the_uninterrupted_runs(
    tmp_path: Path, uninterrupted: Path, reference: tuple[str, dict[str, str]], start: int
) -> None:
    made = changes_made(uninterrupted)
    for number in range(start, made + BY_THE_CLOCK, STRIDE):
        home = prepared(tmp_path / str(number))
        killed = run_with_fault(home, f"kill-before:{number}") == -9
        assert killed or number > made - BY_THE_CLOCK, number
        again = run_cli("run", "--once", cwd=home, env=environment(COUNCIL_TEST_RUN_SECRET=SECRET))
        assert again.returncode == 0, (number, again.stderr)
        assert body_and_front(home) == reference, number
        assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"], number
        assert sum(count - 1 for count in begun_steps(home).values()) <= 1, number
        assert inbox(home) == [], number
        assert left_over(home) == [], number
        assert unfinished(home) == set(), number
        for role in ("coordinator", "strategist", "auditor"):
            session = json.loads((home / "session_states" / f"{role}_session.json").read_bytes())
            assert len(session["tasks"]) == 1, number


@dataclass(frozen=True)
class Instant:
    """Where a kill comes, and what is there then."""

    text: str  # of the line of the trace before which it comes
    steps: tuple[str, ...] | None  # the turns that are recorded; None: there is no run
    asked: int = 4  # how many calls the process makes that goes on
    is_committed: bool = False
    is_visible: bool = False  # the receipt
    in_place: int = 0  # how many of the four files of the commit
    command: str = "command.json"  # what lies in commands/


TURNS = ("round/1/COORDINATOR", "round/1/STRATEGIST", "round/1/AUDITOR", "synthesis")
ENDING = {"steps": TURNS, "asked": 0}
SEALED = {**ENDING, "is_committed": True}
INSTANTS = {
    "before the admission": Instant("sql INSERT INTO runs", None),
    "before the call is reserved": Instant("sql INSERT INTO spending", ()),
    "during the reply": Instant("event text", ()),
    "before the reply's step": Instant("done round/1/COORDINATOR", ()),
    "behind the step": Instant("event turn_ended", TURNS[:1], asked=3),
    "before what is staged": Instant(".staged", **ENDING),
    "before the commit": Instant("sql UPDATE runs SET receipt", **ENDING),
    "before the 1st rename": Instant(".staged {home}/artifacts/out.md", **SEALED),
    "before the 2nd rename": Instant(".staged {home}/session_states/coordinator_session.json", **SEALED, in_place=1),
    "before the 3rd rename": Instant(".staged {home}/session_states/strategist_session.json", **SEALED, in_place=2),
    "before the 4th rename": Instant(".staged {home}/session_states/auditor_session.json", **SEALED, in_place=3),
    "before the receipt": Instant("sql UPDATE runs SET status", **SEALED, in_place=4),
    "before the taking": Instant("rename {home}/commands/command.json", **SEALED, in_place=4, is_visible=True),
    "behind the taking": Instant("unlink {home}/commands/.", **SEALED, in_place=4, is_visible=True, command=".taken"),
    "before the run is closed": Instant("sql UPDATE runs SET open", **SEALED, in_place=4, is_visible=True, command=""),
}


@pytest.mark.parametrize("name", INSTANTS)
def test_killed_between_any_two_acts_of_a_run_what_is_there_tells_how_far_it_was_and_no_more_is_done_again(
    tmp_path: Path, reference: tuple[str, dict[str, str]], name: str, database_url: str | None
) -> None:
    instant = INSTANTS[name]
    home = prepared(tmp_path / "home", database_url)
    assert run_with_fault(home, f"kill-at:1:{instant.text.format(home=home)}") == -9
    there = [] if instant.steps is None else [(instant.steps, instant.is_committed)]
    assert [recorded(home, run_id) for run_id in run_ids(home)] == there
    assert len(receipts(home)) == instant.is_visible
    assert len(files_in_place(home)) == instant.in_place
    assert [name for name in inbox(home) if name.endswith(instant.command)] == inbox(home)
    assert len(inbox(home)) == bool(instant.command)
    env = faulty_environment(COUNCIL_TEST_RUN_SECRET=SECRET, COUNCIL_TEST_CALLS=f"{home}.calls")
    assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == 0
    assert Path(f"{home}.calls").read_text().count("begin") == instant.asked
    assert body_and_front(home) == reference
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]
    assert (inbox(home), unfinished(home)) == ([], set())
    assert (home / ".council" / "council.db").exists() == (database_url is None)


def recorded(home: Path, run_id: str) -> tuple[tuple[str, ...], bool]:
    """A run's turns, and whether it is committed."""
    is_committed = "commit" in [record["t"] for record in journal(home, run_id)]
    return tuple(name for name in steps(home, run_id) if name in TURNS), is_committed


def files_in_place(home: Path) -> list[Path]:
    """The files of the commit that have their names."""
    page = home / "artifacts" / "out.md"
    is_decision = page.exists() and "status: succeeded" in page.read_text()
    return [*([page] if is_decision else []), *(home / "session_states").glob("*_session.json")]


def test_no_traceback_reaches_the_terminal(tmp_path: Path) -> None:
    home = prepared(tmp_path / "home")
    done = run_cli("run", "--once", cwd=home, env=environment(COUNCIL_TEST_RUN_SECRET=SECRET))
    assert not re.search(r"Traceback", done.stdout + done.stderr)
    assert inbox(home) == []
