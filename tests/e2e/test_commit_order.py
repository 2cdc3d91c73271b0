"""The order in which a command comes to the disk, from the trace of the real process (tests/faults.py).

A sync that is left out, a rename before its commit or a receipt that is seen too early harms nobody until the power fails:
here it fails a test.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import FAULTY, command, drop_command, faulty_environment, make_home, receipts, run_cli

SETTINGS = 'model = "scripted:script.yaml"\nsettle_s = 0.2\nwatch = "poll"\n'
FILES = (
    "artifacts/out.md",
    "session_states/auditor_session.json",
    "session_states/coordinator_session.json",
    "session_states/strategist_session.json",
)
COPIES = tuple(f"session_states/archive/main/{role}/RUN.md" for role in ("auditor", "coordinator", "strategist"))
STAGED = {file: re.sub(r"([^/]+)$", r".\1.RUN.staged", file) for file in (*FILES, *COPIES)}
FOLDERS = ("artifacts", "session_states")
END = (  # all of a group before all of the next; copies of what the session files say are not synced
    [f"fsync {path}" for path in (*(STAGED[file] for file in FILES), *FOLDERS)],
    ["commit of the commit record"],
    [f"replace {staged} {file}" for file, staged in STAGED.items()],
    [f"fsync {folder}" for folder in FOLDERS],
    ["commit of the receipt"],
    ["rename commands/command.json commands/.RUN.taken"],
    ["unlink commands/.RUN.taken"],
)
TURNS = ("round/1/COORDINATOR", "round/1/STRATEGIST", "round/1/AUDITOR", "synthesis")
FIXED_SYNCS = 10  # admission, four staged files and two folders, commit, the two folders after the renames


class Act(NamedTuple):
    """A change to the disk; `begun` and `done` are numbers of lines of the trace."""

    name: str
    begun: int
    done: int


class Trace:
    """What a process did for one command, with the home's and the run's names left out."""

    def __init__(self, home: Path, run_id: str) -> None:
        text = Path(f"{home}.log").read_text().replace(f"{home}/", "").replace(run_id, "RUN")
        lines = [line.split(" ", 1)[1] for line in re.sub(r"\.[0-9a-f]{12}\.tmp", ".TMP", text).splitlines()]
        first = next(number for number, line in enumerate(lines) if line.startswith("sql INSERT INTO runs"))
        last = next(number for number, line in enumerate(lines) if line.startswith("event run_ended"))
        self.lines = lines[first:last]

    def acts(self) -> list[Act]:
        """Commits are named by what they hold. Left out: what was deferred, and files that only tell what stands elsewhere."""
        found, statements = [], []
        for number, line in enumerate(self.lines):
            name = line.split(" ", 1)[0]
            if name == "sql":
                statements.append(line)
            elif name in ("fsync", "fdatasync", "replace", "rename", "unlink", "commit", "commit-unsynced"):
                done = self.lines.index(f"done {line}", number)
                held, statements = (statements, []) if name.startswith("commit") else ([], statements)
                found.append(Act(_told(line, held), number, done))
        aside = ("audit.head", "state.json", "commit-unsynced")
        return [act for act in found if not any(name in act.name for name in aside)]

    def at(self, beginning: str) -> int:
        return next(number for number, line in enumerate(self.lines) if line.startswith(beginning))


def _told(line: str, statements: list[str]) -> str:
    is_synced = line.startswith("commit ")
    has_receipt = line.startswith("commit") and any(
        said.startswith("sql UPDATE runs SET status") for said in statements
    )
    if is_synced and any(re.search(r"\d commit ", said) for said in statements):
        return "commit of the commit record" + " and the receipt" * has_receipt
    if has_receipt:
        return "commit of the receipt"
    if is_synced and any(said.startswith("sql INSERT INTO runs") for said in statements):
        return "commit of the admission"
    turns = [turn for turn in TURNS if any(f" done {turn} " in said for said in statements)]
    return " ".join(["commit of", *turns]) if is_synced and turns else line.strip()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Of the second command of a home: keys, tables and the audit's chain are there."""
    home = make_home(tmp_path_factory.mktemp("traced") / "home", settings=SETTINGS)
    (home / "script.yaml").write_text('default: {text: "Nothing to add."}\n')
    for page in ("first", "out"):
        Path(f"{home}.log").unlink(missing_ok=True)
        drop_command(home, command(output_artifact_path=f"artifacts/{page}.md"))
        env = faulty_environment(COUNCIL_TEST_FAULT_LOG=f"{home}.log")
        assert run_cli("run", "--once", cwd=home, env=env, module=FAULTY).returncode == 0
    return Trace(home, receipts(home)[-1]["run_id"])


def test_staged_files_commit_names_receipt_and_taking_come_to_the_disk_in_this_order(trace: Trace) -> None:
    acts = trace.acts()
    acts = acts[next(number for number, act in enumerate(acts) if act.name in END[0]) :]
    expected = {name for group in END for name in group}
    assert [act.name for act in acts if act.name not in expected] == []
    earlier = -1
    for group in END:
        now, acts = acts[: len(group)], acts[len(group) :]
        assert sorted(act.name for act in now) == sorted(group)
        assert min(act.begun for act in now) > earlier
        earlier = max(act.done for act in now)


def test_a_command_is_on_the_disk_before_it_is_a_run_and_a_reply_before_its_turn_has_ended(trace: Trace) -> None:
    done = {act.name: act.done for act in trace.acts()}
    assert done["commit of the admission"] < trace.at("event run_queued")
    ended = {f"round/1/{role}": f'event turn_ended RUN {{"role": "{role}"' for role in ("COORDINATOR", "STRATEGIST")}
    for turn, event in ended.items():
        assert done[f"commit of {turn}"] < trace.at(event)
    assert done["commit of synthesis"] < trace.at("event state")


def test_a_call_is_reserved_before_it_is_made(trace: Trace) -> None:
    reserved = trace.lines.index("done commit-unsynced ", trace.at("sql INSERT INTO spending"))
    assert trace.at("event turn_started") < reserved < trace.at("event text")


def test_an_ordinary_command_syncs_ten_times_and_once_for_each_call(trace: Trace) -> None:
    syncs = [line for line in trace.lines if line.startswith(("fsync ", "fdatasync ", "commit "))]
    assert len(syncs) <= FIXED_SYNCS + len(TURNS), syncs
