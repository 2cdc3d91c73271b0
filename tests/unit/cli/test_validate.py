from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from council.cli.context import CliState
from council.cli.validate import validate
from council.engine.receipts import IdBinding, Receipt, Receipts
from council.engine.records import FileIdentity
from council.errors import HomeNotFound, UsageError
from tests.harness import command, make_home, opened

app = typer.Typer()
app.command()(validate)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home")


def check(home: Path | None, file: Path, *options: str, flags: Path | None = None) -> tuple[int, str]:
    state = CliState(home_flag=home or flags, environ={})
    result = CliRunner().invoke(app, [str(file), *options], obj=state, catch_exceptions=False)
    return result.exit_code, result.stdout


def told(home: Path, file: Path) -> dict[str, Any]:
    code, text = check(home, file, "--json")
    found: dict[str, Any] = json.loads(text)
    assert code == (2 if not found["valid"] else 1 if found["missing"] else 0)
    return found


def write(folder: Path, name: str, text: str | dict[str, Any]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_a_valid_command_is_ok_and_its_output_path_is_told(home: Path, tmp_path: Path) -> None:
    file = write(tmp_path, "a.json", command("Choose a store.", output_artifact_path="artifacts/"))
    assert check(home, file) == (0, f"{file}: ok (deliberate, writes artifacts/choose-a-store.md)\n")


@pytest.mark.parametrize(
    ("name", "text", "line", "column"),
    [
        (
            "a.json",
            '{\n "task_description": "x",\n "output_artifact_path": "a.md",\n "config": {"max_rounds": 500}\n}',
            4,
            27,
        ),
        ("a.yaml", "task_description: x\noutput_artifact_path: a.md\nconfig:\n  max_rounds: 500\n", 4, 15),
        ("a.md", "---\noutput_artifact_path: a.md\nconfig:\n  max_rounds: 500\n---\nThe task.\n", 4, 15),
    ],
)
def test_a_value_out_of_range_is_told_with_line_column_field_and_fix(
    home: Path, tmp_path: Path, name: str, text: str, line: int, column: int
) -> None:
    file = write(tmp_path, name, text)
    code, shown = check(home, file)
    assert code == 2
    assert (
        shown.splitlines()[0] == f"{file}:{line}:{column}: error: `config.max_rounds` is 500, but must be at most 100"
    )
    assert shown.splitlines()[1].strip() == "fix: write a number that is at most 100"
    [problem] = told(home, file)["problems"]
    assert (problem["line"], problem["column"], problem["field"]) == (line, column, "config.max_rounds")


def test_all_problems_are_told_at_once(home: Path, tmp_path: Path) -> None:
    found = told(home, write(tmp_path, "a.json", {"confg": {}, "input_artifacts": "a.md"}))
    fields = {problem["field"] for problem in found["problems"]}
    assert fields == {"task_description", "output_artifact_path", "input_artifacts", "confg"}


@pytest.mark.parametrize(
    "path", ["../x.md", "commands/x.md", "/etc/x.md", "artifacts/x.txt", ".env.md", "personas/auditor.md"]
)
def test_an_output_path_that_admission_refuses_is_invalid_at_its_place(home: Path, tmp_path: Path, path: str) -> None:
    file = write(tmp_path, "a.yaml", f"task_description: x\noutput_artifact_path: {path}\n")
    [problem] = told(home, file)["problems"]
    assert (problem["field"], problem["line"], problem["column"]) == ("output_artifact_path", 2, 23)
    assert problem["fix"]


def test_an_unreadable_input_is_a_warning_and_the_command_stays_valid(home: Path, tmp_path: Path) -> None:
    (home / "there.md").write_text("text\n")
    file = write(tmp_path, "a.json", command(input_artifacts=["there.md", "gone.md", ".env"]))
    found = told(home, file)
    assert found["valid"] is True
    assert [warning["field"] for warning in found["warnings"]] == ["input_artifacts.1", "input_artifacts.2"]


def test_when_no_input_is_readable_it_says_that_the_run_would_fail(home: Path, tmp_path: Path) -> None:
    code, shown = check(home, write(tmp_path, "a.json", command(input_artifacts=["gone.md"])))
    first, fix, last = shown.splitlines()
    assert "gone.md" in first
    assert "the run would fail" in first
    assert fix.startswith("    fix: ")
    assert (code, last.partition(": ")[2].partition(" (")[0], last.rpartition(": ")[2]) == (
        1,
        "not ready",
        "the run would fail",
    )


def test_what_is_not_yet_a_document_is_told_with_its_place(home: Path, tmp_path: Path) -> None:
    [problem] = told(home, write(tmp_path, "a.json", '{\n  "task_description": "x",\n}'))["problems"]
    assert (problem["line"], problem["fix"]) == (3, "remove the comma before the closing bracket")


def test_a_note_that_is_no_command_is_invalid_and_told_how_to_become_one(home: Path, tmp_path: Path) -> None:
    [problem] = told(home, write(tmp_path, "a.md", "# Notes\n"))["problems"]
    assert "is not a command" in problem["message"]


@pytest.mark.parametrize("name", ["README.json", ".hidden.json", "notes.txt", "a.json.tmp"])
def test_a_name_that_the_inbox_ignores_is_a_problem(home: Path, tmp_path: Path, name: str) -> None:
    messages = [problem["message"] for problem in told(home, write(tmp_path, name, command()))["problems"]]
    assert f"{name} can never be the name of a command file" in messages


def test_an_id_that_belongs_to_another_command_is_a_conflict_here_as_in_the_daemon(home: Path, tmp_path: Path) -> None:
    file = FileIdentity("a.json", 1, 1, "0" * 64)
    at = "2026-11-20T00:00:00Z"
    receipt = Receipt("r-1", "succeeded", "deliberate", file, "0" * 64, "other", at, at)
    with opened(home) as store:
        Receipts(store).answer(receipt, 1, IdBinding("mine", "other", "r-1"))
    [problem] = told(home, write(tmp_path, "a.json", command(id="mine")))["problems"]
    assert problem["field"] == "id"
    assert "r-1" in problem["message"]


def test_a_memory_command_for_an_unknown_role_is_invalid(home: Path, tmp_path: Path) -> None:
    [problem] = told(home, write(tmp_path, "a.json", {"type": "memory", "role": "NOBODY", "action": "reset"}))[
        "problems"
    ]
    assert (problem["field"], "AUDITOR" in problem["fix"]) == ("role", True)


def test_cancelling_a_run_that_is_not_active_is_a_problem_as_it_is_for_the_daemon(home: Path, tmp_path: Path) -> None:
    found = told(home, write(tmp_path, "a.json", {"type": "cancel", "run": "r-1"}))
    assert found["valid"] is False
    assert [problem["field"] for problem in found["problems"]] == ["run"]


def test_resuming_a_run_that_cannot_go_on_is_a_problem_as_it_is_for_the_daemon(home: Path, tmp_path: Path) -> None:
    found = told(home, write(tmp_path, "a.json", {"type": "resume", "run": "r-1"}))
    assert found["valid"] is False
    assert "not known here" in found["problems"][0]["message"]


def test_a_refused_path_is_named_once_and_faults_come_in_the_order_of_the_file(home: Path, tmp_path: Path) -> None:
    for path in ("../x.md", "../it's.md"):
        [problem] = told(home, write(tmp_path, "a.json", {**command(), "output_artifact_path": path}))["problems"]
        assert problem["message"] == f"is `{path}`: a part of it is `..`."
    wrong = {"sessoin": "x", "config": {"max_rounds": 500}, **command(), "output_artifact_path": 5}
    columns = [problem["column"] for problem in told(home, write(tmp_path, "b.json", wrong))["problems"]]
    assert columns == sorted(columns)
    assert len(columns) > 1


def test_a_file_in_a_folder_recurring_is_checked_as_a_recurring_command(home: Path) -> None:
    folder = home / "commands" / "recurring"
    assert told(home, write(folder, "a.json", {**command(), "schedule": "0 7 * * 1-5"}))["valid"] is True
    [problem] = told(home, write(folder, "b.json", command()))["problems"]
    assert (problem["field"], problem["message"]) == ("schedule", "is missing")


def test_without_a_home_the_command_itself_is_checked_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, shown = check(None, write(tmp_path, "a.json", command()))
    assert code == 0
    assert "there is no home here" in shown
    assert check(None, write(tmp_path, "b.json", {"confg": 1}))[0] == 2


def test_a_home_that_was_named_and_is_none_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path, "a.json", command())
    with pytest.raises(HomeNotFound):
        check(None, file, flags=tmp_path / "no")


def test_a_file_that_is_not_there_is_a_usage_error(home: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        check(home, tmp_path / "gone.json")
