"""Pull the plug anywhere: the run goes on, nothing is lost, nothing runs twice.

The process kills itself (SIGKILL) before each single change it makes to the disk, in the real `council run`; then the
real daemon starts again. Whatever the instant, the result is the uninterrupted run's.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.harness import (
    FAULTY,
    command,
    drop_command,
    environment,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
)

SECRET = "5e" * 32
VARIES = ("id", "created", "finished", "audit_head")
SCRIPT = """\
replies:
  - {role: COORDINATOR, round: 1, purpose: turn, text: "First I want the figures.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"}
  - {role: COORDINATOR, purpose: synthesis, text: "Do it [E1: a.md:1]."}
default: {text: "Nothing to add."}
"""
BY_THE_CLOCK = 8  # changes that a slower process makes and a quick one does not: the state file is written on a timer
STRIDE = 11  # each test takes every 11th instant, so that the cases share the cores evenly


def prepared(folder: Path) -> Path:
    home = make_home(folder, settings='model = "scripted:script.yaml"\nsettle_s = 0.2\nwatch = "poll"\n')
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


def begun_steps(home: Path) -> Counter[str]:
    """How often each step was begun, over all journals of the home."""
    counts: Counter[str] = Counter()
    for path in (home / ".council" / "runs").glob("*/journal.jsonl"):
        for line in path.read_text().rstrip("\n").split("\n"):  # a killed run may leave room behind its lines
            record = json.loads(line)["r"]
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
        left = sorted(path.name for path in (home / "commands").iterdir())
        assert left == ["README.md"], number
        leftovers = [path for path in home.rglob("*") if path.name.endswith((".staged", ".taken", ".tmp"))]
        assert leftovers == [], number
        assert list((home / ".council" / "active").iterdir()) == []
        for role in ("coordinator", "strategist", "auditor"):
            session = json.loads((home / "session_states" / f"{role}_session.json").read_bytes())
            assert len(session["tasks"]) == 1, number


def test_a_failing_sync_loses_nothing_and_the_run_goes_on(
    tmp_path: Path, reference: tuple[str, dict[str, str]]
) -> None:
    for number in (2, 5, 9, 14):
        home = prepared(tmp_path / str(number))
        code = run_with_fault(home, f"fail:fsync:{number}:EIO")
        again = run_cli("run", "--once", cwd=home, env=environment(COUNCIL_TEST_RUN_SECRET=SECRET))
        assert code in (0, 75), number
        assert again.returncode == 0, (number, again.stderr)
        assert body_and_front(home) == reference, number
        assert len(receipts(home)) == 1


@pytest.mark.parametrize(
    ("unsynced", "depends"),
    [
        ('"t":"done","name":"round/1/STRATEGIST"', '"t":"begin","name":"round/1/AUDITOR"'),
        ('"t":"commit"', ".staged out.md"),
    ],
)
def test_what_a_killed_process_wrote_and_did_not_sync_is_synced_before_anything_depends_on_it(
    tmp_path: Path, uninterrupted: Path, reference: tuple[str, dict[str, str]], unsynced: str, depends: str
) -> None:
    before, _ = trace_up_to(uninterrupted, unsynced)
    home = prepared(tmp_path / "home")
    assert run_with_fault(home, f"kill-at:{sum(' fdatasync ' in line for line in before) + 1}:fdatasync ") == -9
    [journal] = (home / ".council" / "runs").glob("2*/journal.jsonl")
    assert unsynced.encode() in journal.read_bytes()
    Path(f"{home}.log").unlink()
    assert run_with_fault(home, "count") == 0
    before, _ = trace_up_to(home, depends)
    _, written = trace_up_to(home, '{"c":"')  # into the same file
    assert f"fdatasync {written.split()[2]}" in [line.split(" ", 1)[1] for line in before]
    assert body_and_front(home) == reference


def trace_up_to(home: Path, text: str) -> tuple[list[str], str]:
    """The lines of a trace before the first that holds `text`, and that one."""
    lines = Path(f"{home}.log").read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if text in line)
    return lines[:at], lines[at]


def test_no_traceback_reaches_the_terminal(tmp_path: Path) -> None:
    home = prepared(tmp_path / "home")
    done = run_cli("run", "--once", cwd=home, env=environment(COUNCIL_TEST_RUN_SECRET=SECRET))
    assert not re.search(r"Traceback", done.stdout + done.stderr)
    assert os.listdir(home / "commands") == ["README.md"]


def test_an_admission_that_a_kill_cut_off_leaves_no_row_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    home = prepared(tmp_path / "home")
    env = faulty_environment(COUNCIL_TEST_FAULT="kill-at:1:event run_queued")
    assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == -9
    [cut_off] = (home / ".council" / "runs").glob("2*")
    assert run_cli("run", "--once", cwd=home).returncode == 0
    [receipt] = receipts(home)
    assert receipt["run_id"] != cut_off.name
    assert run_cli("repair", "--dry-run", cwd=home).stdout == "Everything is in order.\n"
