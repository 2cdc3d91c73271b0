"""The judgement of `council validate` and that of the daemon on the same file: the same words, with the same code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from council.cli.context import CliState
from council.cli.validate import validate
from tests.harness import (
    Daemon,
    command,
    drop_command,
    execute,
    inbox,
    make_home,
    receipts,
    rows_of,
    run_cli,
    unfinished,
    wait_until,
)

app = typer.Typer()
app.command()(validate)

NOTE = {"tool": "createNote", "arguments": {"title": "Soil", "content": "Dig in March."}}
PLAN = {"type": "plan", "kind": "notes", "operations": [NOTE]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.1\n')


@pytest.fixture
def ids(home: Path) -> dict[str, str]:
    """A home with people, runs and plans, by the names that the cases below use for them."""
    for words in (("add", "ann"), ("add", "gone"), ("roles", "gone", "--revoke", "user")):
        assert run_cli("users", *words, cwd=home).returncode == 0
    drop_command(home, command(id="taken"), "good.json")
    drop_command(home, command(input_artifacts=["no.md"], output_artifact_path="artifacts/bad.md"), "bad.json")
    for name, whose in {"mine": {}, "hers": {"user": "ann"}, "altered": {}}.items():
        drop_command(home, {**PLAN, **whose, "title": name}, f"{name}.json")
    assert run_cli("run", "--once", cwd=home).returncode == 1
    found = {Path(receipt["command_file"]["name"]).stem: receipt["run_id"] for receipt in receipts(home)}
    plans = {json.loads(advice)["title"]: plan for plan, advice in rows_of(home, "SELECT plan_id, advice FROM plans")}
    execute(
        home, "UPDATE plans SET operations = replace(operations, 'March', 'April') WHERE plan_id = ?", plans["altered"]
    )
    return found | plans


def judged(home: Path, file: Path) -> tuple[int, dict[str, Any]]:
    """The exit code of `council validate`, and its JSON."""
    done = CliRunner().invoke(
        app, [str(file), "--json"], obj=CliState(home_flag=home, environ={}), catch_exceptions=False
    )
    return done.exit_code, json.loads(done.stdout)


def operation(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def plan(*operations: dict[str, Any], kind: str = "notes", **keys: Any) -> dict[str, Any]:
    return {"type": "plan", "kind": kind, "operations": list(operations), **keys}


# A word in angle brackets is the id of that name.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "deliberate-user": (command(user="nobody"), "no_principal"),
    "deliberate-path": (command(output_artifact_path="/etc/x.md"), "command_invalid"),
    "deliberate-agent": (command(config={"agents": ["NOBODY"]}), "command_invalid"),
    "deliberate-agent-and-path": (
        command(output_artifact_path="../x.md", config={"agents": ["NOBODY"]}),
        "command_invalid",
    ),
    "deliberate-id": (command("Another question.", id="taken"), "id_conflict"),
    "memory-role": ({"type": "memory", "role": "NOBODY", "action": "reset"}, "command_invalid"),
    "memory-user": ({"type": "memory", "role": "AUDITOR", "action": "reset", "user": "ann"}, "command_invalid"),
    "memory-keys": ({"type": "memory", "role": "AUDITOR", "action": "reset", "answers": []}, "command_invalid"),
    "forget-run": ({"type": "forget", "run": "nothing"}, "command_invalid"),
    "forget-half-an-id": ({"type": "forget", "run": "20"}, "command_invalid"),
    "forget-user": ({"type": "forget", "text": "Dig in March.", "user": "ann"}, "command_invalid"),
    "cancel-run": ({"type": "cancel", "run": "nothing"}, "command_invalid"),
    "cancel-ended": ({"type": "cancel", "run": "<good>"}, "command_invalid"),
    "cancel-user": ({"type": "cancel", "run": "<good>", "user": "ann"}, "command_invalid"),
    "resume-run": ({"type": "resume", "run": "nothing"}, "command_invalid"),
    "resume-good": ({"type": "resume", "run": "<good>"}, "command_invalid"),
    "resume-user": ({"type": "resume", "run": "<bad>", "user": "ann"}, "command_invalid"),
    "retry-run": ({"type": "retry", "run": "nothing"}, "command_invalid"),
    "retry-step": ({"type": "retry", "run": "<good>", "from": "nothing"}, "command_invalid"),
    "retry-user": ({"type": "retry", "run": "<good>", "user": "ann"}, "command_invalid"),
    "answer-run": ({"type": "answer", "run": "nothing", "answer": "Yes."}, "command_invalid"),
    "answer-ended": ({"type": "answer", "run": "<good>", "answer": "Yes."}, "command_invalid"),
    "answer-user": ({"type": "answer", "run": "<good>", "answer": "Yes.", "user": "gone"}, "no_principal"),
    "plan-kind": (plan(NOTE, kind="nothing"), "unknown_kind"),
    "plan-tool": (plan(operation("createTask", title="Sow")), "tool_not_allowed"),
    "plan-arguments": (plan(operation("createNote", title="Soil")), "bad_arguments"),
    "plan-row": (plan(operation("deleteNote", noteId="nothing")), "not_found"),
    "plan-twice": (plan(*[{**NOTE, "clientRequestId": "one"}] * 2), "request_conflict"),
    "plan-fact": (plan(operation("keepFact", fact="I like tea."), kind="memory"), "memory_off"),
    "plan-revises": (plan(NOTE, revises="<hers>"), "foreign_plan"),
    "confirm-plan": ({"type": "confirm", "plan": "nothing"}, "command_invalid"),
    "confirm-hers": ({"type": "confirm", "plan": "<hers>"}, "foreign_plan"),
    "confirm-altered": ({"type": "confirm", "plan": "<altered>"}, "plan_altered"),
    "confirm-edit": (
        {"type": "confirm", "plan": "<mine>", "edits": [{"index": 1, "arguments": {"colour": "red"}}]},
        "bad_arguments",
    ),
    "confirm-number": ({"type": "confirm", "plan": "<mine>", "leave_out": [2]}, "no_such_operation"),
    "reject-plan": ({"type": "reject", "plan": "nothing"}, "command_invalid"),
    "reject-hers": ({"type": "reject", "plan": "<hers>"}, "foreign_plan"),
    "reject-altered": ({"type": "reject", "plan": "<altered>"}, "plan_altered"),
    "apply-plan": ({"type": "apply", "plan": "nothing"}, "command_invalid"),
    "apply-lane": ({"type": "apply", "plan": "<mine>", "session": "main"}, "command_invalid"),
    "apply-user": ({"type": "apply", "plan": "<mine>", "user": "nobody"}, "no_principal"),
    "undo-plan": ({"type": "undo", "plan": "nothing"}, "command_invalid"),
    "undo-lane": ({"type": "undo", "plan": "<mine>", "session": "main"}, "command_invalid"),
    "undo-user": ({"type": "undo", "plan": "<mine>", "user": "gone"}, "no_principal"),
    "ask-end": ({"type": "ask", "end": True}, "command_invalid"),
    "ask-user": ({"type": "ask", "request": "Which?", "user": "nobody"}, "no_principal"),
    "ask-blank": ({"type": "ask", "request": " "}, "command_invalid"),
    "prefs-name": ({"type": "prefs", "action": "set", "name": "colour", "value": "red"}, "command_invalid"),
    "prefs-value": ({"type": "prefs", "action": "set", "name": "tone"}, "command_invalid"),
    "prefs-lines": ({"type": "prefs", "action": "set", "name": "tone", "value": "x\n\n## Rules"}, "command_invalid"),
    "prefs-user": ({"type": "prefs", "action": "forget", "user": "nobody"}, "no_principal"),
    "world-land": ({"type": "world_init", "members": 400}, "command_invalid"),
    "world-user": ({"type": "world_init", "user": "ann"}, "command_invalid"),
    "world-pause": ({"type": "world_pause"}, "no_world"),
    "world-resume": ({"type": "world_resume"}, "no_world"),
    "world-ban": ({"type": "world_ban", "agent": 1}, "no_world"),
    "world-unban": ({"type": "world_unban", "agent": 1}, "no_world"),
    "world-rollback": ({"type": "world_rollback", "to_round": 0}, "no_world"),
    "create-user": ({"type": "create_specialist", "request": "Convert units.", "user": "gone"}, "no_principal"),
    "create-role": ({"type": "create_specialist", "request": "Convert.", "changes": "A B"}, "command_invalid"),
    "create-blank": ({"type": "create_specialist", "request": " "}, "command_invalid"),
    "train-user": ({"type": "train_specialist", "role": "converter", "user": "nobody"}, "no_principal"),
    "train-role": ({"type": "train_specialist", "role": "x"}, "command_invalid"),
    "train-lane": ({"type": "train_specialist", "role": "converter", "session": "other"}, "command_invalid"),
}  # fmt: skip


def test_what_the_daemon_refuses_is_refused_before_it_is_dropped_in_the_same_words(
    home: Path, ids: dict[str, str], tmp_path: Path
) -> None:
    names = {type_.name for type_ in CliState(home_flag=home, environ={}).commands}
    assert {body.get("type", "deliberate") for body, _ in REFUSED.values()} == names
    said = {}
    for name, (body, _) in REFUSED.items():
        file = tmp_path / f"{name}.json"
        file.write_text(re.sub(r"<(\w+)>", lambda found: ids[found[1]], json.dumps(body)))
        said[name] = judged(home, file)
    assert {name: (code, told["code"]) for name, (code, told) in said.items()} == {
        name: (2, code) for name, (_, code) in REFUSED.items()
    }
    for name in REFUSED:
        drop_command(home, (tmp_path / f"{name}.json").read_bytes(), f"{name}.json")
    assert run_cli("run", "--once", cwd=home).returncode == 2
    both = said["deliberate-agent-and-path"][1]["problems"]
    assert [one["field"] for one in both] == ["config.agents", "output_artifact_path"]
    assert all(one["line"] for one in both)
    for name, (_, told) in said.items():
        note = (home / "commands" / "failed" / f"{name}.json.error.md").read_text().replace("\\", "")
        assert f"Error code: `{told['code']}`" in note
        for problem in told["problems"]:
            assert problem["message"].removeprefix("is refused: ").rstrip(".").replace("\\", "") in note


@pytest.mark.parametrize("name", ["ask-user", "memory-role", "forget-run", "train-user", "apply-user"])
def test_submit_drops_no_run_of_any_type_that_the_daemon_would_refuse(home: Path, name: str) -> None:
    (home / "asked.json").write_text(json.dumps(REFUSED[name][0]))
    done = run_cli("submit", "asked.json", cwd=home)
    assert (done.returncode, inbox(home)) == (2, [])
    assert "Nothing was dropped." in done.stderr


FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "inputs": (command(input_artifacts=["no.md"]), "input_unreadable"),
    "denied-input": (command(input_artifacts=[".env"]), "input_unreadable"),
    "memory": ({"type": "memory", "role": "AUDITOR", "action": "reset", "base_sha256": "0" * 64}, "memory_changed"),
    "draft": ({"type": "apply", "plan": "<mine>"}, "not_confirmed"),
    "apply-altered": ({"type": "apply", "plan": "<altered>"}, "not_confirmed"),
    "undo-draft": ({"type": "undo", "plan": "<mine>"}, "plan_draft"),
    "undo-hers": ({"type": "undo", "plan": "<hers>"}, "foreign_plan"),
    "create": ({"type": "create_specialist", "request": "Convert units."}, "config_invalid"),
    "train": ({"type": "train_specialist", "role": "converter"}, "config_invalid"),
}


def test_a_command_whose_run_would_fail_is_judged_with_the_code_of_that_failure(
    home: Path, ids: dict[str, str], tmp_path: Path
) -> None:
    said = {}
    for name, (body, _) in FAILING.items():
        file = tmp_path / f"{name}.json"
        file.write_text(re.sub(r"<(\w+)>", lambda found: ids[found[1]], json.dumps(body)))
        said[file.name] = judged(home, file)
        drop_command(home, file.read_bytes(), file.name)
    assert {name: (code, told["valid"], told["code"]) for name, (code, told) in said.items()} == {
        f"{name}.json": (1, True, code) for name, (_, code) in FAILING.items()
    }
    assert run_cli("run", "--once", cwd=home).returncode == 1
    failed = {
        receipt["command_file"]["name"]: receipt["error"]["code"]
        for receipt in receipts(home)
        if receipt["command_file"]["name"] in said
    }
    assert failed == {f"{name}.json": code for name, (_, code) in FAILING.items()}


@pytest.mark.parametrize("place", ["command", "persona", "setting", "fallback"])
def test_a_model_that_cannot_be_built_is_told_before_the_run_in_the_words_of_its_failure(
    tmp_path: Path, place: str
) -> None:
    settings = {"setting": '[agent_models]\nAUDITOR = ["bogus:x"]\n', "fallback": 'fallback_models = ["bogus:x"]\n'}
    home = make_home(tmp_path / "home", settings=f'model = "ollama:own"\nsettle_s = 0.1\n{settings.get(place, "")}')
    if place == "persona":
        persona = home / "personas" / "auditor.md"
        persona.write_text(persona.read_text().replace("role: AUDITOR\n", "role: AUDITOR\nmodel: bogus:x\n"))
    file = drop_command(home, command(**({"config": {"model": "bogus:x"}} if place == "command" else {})), "a.json")
    code, told = judged(home, file)
    assert (code, told["code"]) == (1, "config_invalid")
    assert run_cli("run", "--once", cwd=home).returncode == 1
    [failed] = receipts(home)
    assert failed["error"]["message"] == "there is no provider 'bogus'."
    assert [(each["message"], each["fix"]) for each in told["warnings"]] == [
        (f"as things are, the run would fail: {failed['error']['message']}", failed["error"]["fix"])
    ]


def test_what_validate_finds_right_about_a_plan_changes_nothing_and_the_daemon_does_it(
    home: Path, ids: dict[str, str], tmp_path: Path
) -> None:
    tables = ("plans", "audit_records", "plan_requests", "workspace_notes")
    before = [rows_of(home, f"SELECT * FROM {table}") for table in tables]
    file = tmp_path / "decision.json"
    for body in (PLAN, {"type": "confirm", "plan": ids["mine"]}, {"type": "reject", "plan": ids["mine"]}):
        file.write_text(json.dumps(body))
        code, told = judged(home, file)
        assert (code, told["warnings"]) == (0, [])
    assert [rows_of(home, f"SELECT * FROM {table}") for table in tables] == before
    drop_command(home, {"type": "confirm", "plan": ids["mine"]}, "confirm.json")
    assert run_cli("run", "--once", cwd=home).returncode == 0
    file.write_text(json.dumps({"type": "apply", "plan": ids["mine"]}))
    assert judged(home, file)[0] == 0
    assert rows_of(home, "SELECT * FROM workspace_notes") == []
    drop_command(home, file.read_bytes(), "apply.json")
    assert run_cli("run", "--once", cwd=home).returncode == 0
    assert len(rows_of(home, "SELECT * FROM workspace_notes")) == 1


def test_a_run_that_waits_is_judged_as_the_daemon_treats_it(home: Path, tmp_path: Path) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write("day_max_calls = 1\n")
    for name in ("spends.json", "waits.json"):  # the one call of the day, and what waits for the next
        drop_command(home, command(output_artifact_path="artifacts/"), name)
    assert run_cli("run", "--once", cwd=home).returncode == 75
    [run] = unfinished(home)
    refused = {
        "model": {"type": "resume", "run": run, "model": "offline"},
        "retry": {"type": "retry", "run": run},
        "answer": {"type": "answer", "run": run, "answer": "Yes."},
    }
    taken = {
        "forget": {"type": "forget", "run": run, "session": "other"},
        "resume": {"type": "resume", "run": run},
        "cancel": {"type": "cancel", "run": run},
    }
    said = {}
    for name, body in {**refused, **taken}.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(body))
        said[name] = judged(home, file)
    codes = {name: (code, told["code"]) for name, (code, told) in said.items()}
    assert codes == {
        **dict.fromkeys(refused, (2, "command_invalid")),
        "forget": (1, "cannot_forget"),
        **dict.fromkeys(("resume", "cancel"), (0, "")),
    }
    with Daemon(home) as daemon:
        daemon.wait("run_waiting")  # before, it goes on by itself and is not resumed
        for name, body in {**refused, "forget": taken["forget"], "resume": taken["resume"]}.items():
            drop_command(home, body, f"{name}.json")
        for name in refused:
            daemon.wait("command_refused", file=f"{name}.json")
        ended = wait_until(
            lambda: (
                by_file
                if (by_file := {each["command_file"]["name"]: each for each in receipts(home)}).keys()
                >= {"forget.json", "resume.json"}
                else None
            ),
            "the ends of both commands",
        )
        drop_command(home, taken["cancel"], "cancel.json")
        assert daemon.wait("run_ended", run_id=run)["status"] == "cancelled"
    for name in refused:
        note = (home / "commands" / "failed" / f"{name}.json.error.md").read_text()
        [problem] = said[name][1]["problems"]
        assert problem["message"].removeprefix("is refused: ").rstrip(".") in note
    assert ended["forget.json"]["error"]["code"] == "cannot_forget"
    assert ended["resume.json"]["status"] == "succeeded"
    assert unfinished(home) == set()


def test_a_recurring_control_command_is_refused_where_it_is_judged(home: Path) -> None:
    file = home / "commands" / "recurring" / "each.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"type": "cancel", "run": "r1", "schedule": "0 7 * * *"}))
    code, told = judged(home, file)
    [problem] = told["problems"]
    assert (code, problem["field"], problem["message"]) == (
        2,
        "type",
        "cannot be 'cancel' in a recurring command",
    )
    listed = run_cli("schedule", "list", cwd=home)
    assert "in a recurring command" in listed.stdout
