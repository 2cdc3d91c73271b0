"""A system that is added by one value works everywhere that the house's own do."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.harness import (
    Daemon,
    drop_command,
    environment,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
    wait_until,
)

SAMPLE = "tests.sample_daemon"
CANARY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
NOTE: dict[str, Any] = {"type": "note", "about": "apples", "words": "Apples keep for three months."}
SPEC: dict[str, Any] = {
    "role": "NOTE_COUNTER",
    "purpose": "Counts the notes on a subject for those who plan a harvest.",
    "dna_rules": ["Count every note once.", "Say so where you are not sure."],
    "output_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "tools": ["COUNT_NOTES"],
}
SCRIPT = """\
replies:
  - {role: AUDITOR, round: 0, text: "An auditor would count them."}
  - {role: AUDITOR, round: 1, text: "[ORCHESTRATOR_REQUEST: COUNT_NOTES(apples)]"}
default: {text: "Nothing to add."}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.5\n')


@pytest.fixture
def env() -> dict[str, str]:
    return faulty_environment()


def ask(home: Path, *arguments: str, env: dict[str, str], code: int = 0, module: str = SAMPLE) -> str:
    done = run_cli("--home", str(home), *arguments, cwd=home, env=env, module=module)
    assert done.returncode == code, done.stderr
    return done.stdout


def whole(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_note_is_judged_run_explained_audited_and_forgotten(home: Path, env: dict[str, str]) -> None:
    file = home / "note.json"
    file.write_text(json.dumps(NOTE))
    assert "ok (note, writes artifacts/apples.md)" in ask(home, "validate", str(file), env=env)
    file.write_text(json.dumps({**NOTE, "words": 3}))
    assert "`words` must be text in quotes" in ask(home, "validate", str(file), env=env, code=2)
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, {**NOTE, "outcome": NOTE["words"], "action": "555-0172"}, "note.json")
        ended = daemon.wait("run_ended")
        assert (ended["status"], ended["artifact"]) == ("succeeded", "artifacts/apples.md")
        assert NOTE["words"] in (home / "artifacts" / "apples.md").read_text()
        assert "noted" in ask(home, "journal", "last", env=env)
        steps = json.loads(ask(home, "explain", "last", "--json", env=env))["steps"]
        (remark,) = [step for step in steps if step["name"] == "remark"]
        assert (remark["kind"], remark["role"]) == ("turn", "AUDITOR")
        assert "note_taken" in ask(home, "audit", "tail", env=env)
        page = home / "artifacts" / "apples.md"
        assert ask(home, "replay", "last", env=env) == page.read_text()
        drop_command(home, {"type": "forget", "text": NOTE["words"], "salt": "0123456789abcdef"}, "forget.json")
        daemon.wait("run_ended", file="forget.json")
        drop_command(home, {"type": "forget", "text": "555-0172", "salt": "0123456789abcdef"}, "number.json")
        assert daemon.wait("run_ended", file="number.json")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert b"555-0172" not in whole(home)
    with closing(sqlite3.connect(home / ".council" / "council.db")) as database:
        [(about, words)] = database.execute("SELECT about, words FROM sample_notes").fetchall()
    assert (about, words[:11]) == ("apples", "[forgotten ")
    assert list((home / ".council" / "copies").iterdir())
    assert NOTE["words"].encode() not in whole(home).replace(file.read_bytes(), b"")


def test_a_secret_in_any_string_of_a_command_is_found_nowhere(home: Path, env: dict[str, str]) -> None:
    words = dict.fromkeys(("$schema", "title", "words", "outcome", "action"), f"The key is {CANARY}.")
    remarks = [{"said": f"It is {CANARY}.", "by": [CANARY, f"or {CANARY}"]}]
    name = "ofthequinceandofnobodyelse"  # a key that is spelled as any name may be
    with Daemon(home, env={**env, "GEMINI_API_KEY": name}, module=SAMPLE) as daemon:
        daemon.ready()
        for count, key in enumerate(("about", "session", "user"), start=1):
            drop_command(home, {**NOTE, key: name}, "named.json")
            assert name not in daemon.wait("command_refused", count=count)["error"]
            (home / "commands" / "failed" / "named.json").unlink()
        drop_command(home, {**NOTE, **words, "remarks": remarks}, "note.json")
        assert daemon.wait("run_ended")["status"] == "succeeded"
        drop_command(home, {"type": "ring", "times": 1, "for_whom": CANARY}, "ring.json")
        daemon.wait("control")
        drop_command(home, {**NOTE, "id": f"note {CANARY}"}, "named.json")
        assert "`id` has a secret in it" in daemon.wait("command_refused", count=4)["error"]
        (home / "commands" / "failed" / "named.json").unlink()
        assert daemon.stop() == 0
        assert not {canary for canary in (CANARY, name) if canary in json.dumps(daemon.events)}
    assert not {canary for canary in (CANARY, name) if canary.encode() in whole(home)}


def let_the_auditor_count(home: Path, script: str) -> None:
    (home / "council.toml").write_text('model = "scripted:script.yaml"\n')
    (home / "script.yaml").write_text(script)
    persona = home / "personas" / "auditor.md"
    persona.write_text(persona.read_text().replace("QUERY_CORTEX", "COUNT_NOTES", 1))


def test_a_secret_in_the_argument_of_a_tool_is_found_nowhere(home: Path, env: dict[str, str]) -> None:
    let_the_auditor_count(home, SCRIPT.replace("(apples)", rf"(\"{CANARY}\")"))
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, NOTE, "note.json")
        daemon.wait("run_ended", file="note.json")
        drop_command(home, {"task_description": "How many?", "output_artifact_path": "artifacts/a.md"}, "task.json")
        daemon.wait("run_ended", file="task.json")
        asked = daemon.wait("request", role="AUDITOR")
        assert (asked["request"], asked["ok"]) == ('[ORCHESTRATOR_REQUEST: COUNT_NOTES("[secret]")]', True)
        assert daemon.stop() == 0
        assert CANARY not in json.dumps(daemon.events)
    (home / "script.yaml").unlink()
    assert CANARY.encode() not in whole(home)


def test_a_control_command_has_arguments_of_its_own_and_asks_who_gives_it(home: Path, env: dict[str, str]) -> None:
    ask(home, "users", "add", "ada", env=env)
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, {"type": "ring", "times": 2, "user": "ada"}, "hers.json")
        assert "who is not an administrator" in daemon.wait("command_refused")["error"]
        drop_command(home, {"type": "cancel", "run": "20261120-120000-abcdefgh", "user": "bob"}, "his.json")
        assert "there is no such user here" in daemon.wait("command_refused", count=2)["error"]
        drop_command(home, {"type": "ring", "times": 2}, "mine.json")
        assert daemon.wait("control")["title"] == "ring 2 times for nobody"
        assert (home / ".council" / "bell").read_text() == "dingding"
        assert daemon.stop() == 0
    [receipt] = receipts(home)
    assert (receipt["title"], receipt["notes"]) == ("ring 2 times for nobody", ["Rung by steward."])


def test_an_agent_is_asked_by_one_system_and_uses_the_tool_of_another(home: Path, env: dict[str, str]) -> None:
    let_the_auditor_count(home, SCRIPT)
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, NOTE, "note.json")
        daemon.wait("run_ended", file="note.json")
        assert "An auditor would count them." in (home / "artifacts" / "apples.md").read_text()
        drop_command(home, {"task_description": "How many?", "output_artifact_path": "artifacts/a.md"}, "task.json")
        daemon.wait("run_ended", file="task.json")
        asked = daemon.wait("request", role="AUDITOR")
        assert (asked["request"], asked["ok"]) == ("[ORCHESTRATOR_REQUEST: COUNT_NOTES(apples)]", True)
        assert daemon.stop() == 0
    assert "1 notes on apples" in ask(home, "journal", "last", "--jsonl", env=env)


def test_a_spec_may_name_a_tool_of_any_system_that_only_reads(home: Path, env: dict[str, str]) -> None:
    spec = home / "counter.json"
    spec.write_text(json.dumps(SPEC))
    assert "ok (as spec)" in ask(home, "check", str(spec), env=env)
    refused = run_cli("--home", str(home), "check", str(spec), cwd=home, env=environment())
    assert (refused.returncode, "COUNT_NOTES" in refused.stdout) == (6, True)


def test_a_run_that_waits_for_a_person_is_shown_as_waiting_and_goes_on_with_the_answer(
    home: Path, env: dict[str, str]
) -> None:
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, {**NOTE, "words": "How many?"}, "note.json")
        wait = daemon.wait("run_waiting")
        assert (wait["reason"], wait["seconds"], wait["error"]) == ("answer", 30 * 86_400, "nobody has answered yet.")
        [run] = json.loads(ask(home, "status", "--json", env=env))["runs"]
        assert (run["status"], run["waiting_for"]) == ("waiting", "answer")
        answer = home / "answer.json"
        answer.write_text(json.dumps({"type": "answer", "run": run["run_id"], "answer": "Seven."}))
        said = f"the run '{run['run_id']}' asks nothing now."
        assert f"error: `run` is refused: {said}" in ask(home, "validate", str(answer), env=env, code=2)
        drop_command(home, answer.read_bytes(), "answer.json")
        assert daemon.wait("command_refused")["error"] == said
        assert daemon.stop() == 0
    assert "waiting for a person's answer" in ask(home, "status", env=env)
    (home / "answer.txt").write_text("Seven apples.")
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert "Seven apples." in (home / "artifacts" / "apples.md").read_text()


def test_a_persona_for_which_a_command_is_not_admitted_refuses_it_here_as_in_the_daemon(
    home: Path, env: dict[str, str]
) -> None:
    (home / "personas" / "auditor.md").unlink()
    file = home / "note.json"
    file.write_text(json.dumps(NOTE))
    said = json.loads(ask(home, "validate", "--json", str(file), env=env, code=2))
    [problem] = said["problems"]
    assert problem["message"].startswith("no persona for AUDITOR in personas/")
    drop_command(home, NOTE, "note.json")
    ask(home, "run", "--once", env=faulty_environment(), code=2)
    note = (home / "commands" / "failed" / "note.json.error.md").read_text()
    assert f"Error code: `{said['code']}`" in note
    assert "no persona for AUDITOR in personas/" in note


# ── companions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_companion_that_dies_is_shown_and_started_again(home: Path, env: dict[str, str]) -> None:
    heart, stop = home / ".council" / "heart", home / "stop-heart"
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        wait_until(heart.exists, "the heart beats")
        why = home / "why"
        why.write_text(f"stopped\n  by {CANARY} {'x' * 400}")
        why.rename(stop)  # whole: the heart reads it as soon as it is there
        failed = daemon.wait("companion_failed")
        assert (failed["name"], failed["again_s"]) == ("heart", 1)
        wait_until(
            lambda: json.loads((home / ".council" / "state.json").read_bytes())["degraded"], "state.json says so"
        )
        degraded = json.loads(ask(home, "status", "--json", env=env))["degraded"]
        assert degraded["heart"].startswith("stopped by ")
        assert len(degraded["heart"]) == 300
        assert "degraded: heart: stopped by" in ask(home, "status", env=env)
        assert daemon.wait("companion_failed", count=2)["again_s"] == 2
        heart.unlink(missing_ok=True)
        stop.unlink()
        wait_until(heart.exists, "the heart beats again")
        assert daemon.stop() == 0
    assert CANARY not in json.dumps([degraded, *daemon.events])


def test_no_companion_runs_beside_a_daemon_that_drains_and_leaves(home: Path) -> None:
    drop_command(home, NOTE, "note.json")
    done = run_cli("--home", str(home), "run", "--once", cwd=home, env=faulty_environment(), module=SAMPLE)
    assert done.returncode == 0, done.stderr
    assert not (home / ".council" / "heart").exists()


def test_without_the_sample_its_types_are_not_known(home: Path) -> None:
    file = home / "note.json"
    file.write_text(json.dumps(NOTE))
    told = run_cli("--home", str(home), "validate", str(file), cwd=home, env=environment())
    assert told.returncode == 2
    assert "is 'note'; known types: deliberate, cancel, resume, retry, answer, plan, confirm, reject, " in told.stdout


def test_a_council_without_the_sample_names_the_type_of_its_runs_and_tells_what_it_can(home: Path) -> None:
    drop_command(home, NOTE, "note.json")
    ask(home, "run", "--once", env=faulty_environment())
    page = (home / "artifacts" / "apples.md").read_text()
    assert ask(home, "replay", "last", env=environment()) == page
    (home / "artifacts" / "apples.md").unlink()
    assert NOTE["words"] in ask(home, "show", "last", env=environment())
    for asked in ("replay", "show"):
        refused = run_cli("--home", str(home), asked, "last", cwd=home, env=environment())
        assert refused.returncode == 1
        assert "error (unknown_type): run " in refused.stderr
        assert "is of type 'note', which no system of this council knows." in refused.stderr
    explained = json.loads(ask(home, "explain", "last", "--json", env=environment(), module="council"))
    assert explained["missing"] == [
        "No system of this council knows runs of type `note`, so it cannot say what its agents did."
    ]
