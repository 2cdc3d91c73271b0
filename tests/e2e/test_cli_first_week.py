"""The commands of a steward's first week, through real processes: validate, schema, init --vscode, doctor, agents, memory,
logs, completion."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from council.app import commands_of
from council.commands.schema import COMMAND_SCHEMA_NAME, RECURRING_SCHEMA_NAME, schema_files
from council.desk.all_systems import house
from council.errors import EXIT_CODES
from tests import warm
from tests.fake_gemini import FakeGemini, error, text
from tests.harness import (
    TIMEOUT_S,
    Daemon,
    command,
    drop_command,
    environment,
    make_home,
    on_a_terminal,
    receipts,
    run_cli,
    wait_until,
)

COMMANDS = commands_of(house())


@pytest.fixture
def remembered(home: Path, fake: FakeGemini, env: dict[str, str]) -> Path:
    """A home whose agents remember one task."""
    fake.reply = lambda request: text("The answer is forty-two herons.")
    drop_command(home, command("How many herons nest here?"))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    return home


def session(home: Path, role: str = "auditor") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "session_states" / f"{role}_session.json").read_bytes())
    return found


def archive(home: Path) -> list[Path]:
    """The auditor's pages, the oldest first."""
    return sorted((home / "session_states" / "archive" / "main" / "auditor").glob("*.md"), key=lambda path: path.stem)


# ── validate ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "text_"),
    [
        ("bad.json", '{"task_description": "x", "output_artifact_path": "../x.md"}'),
        ("bad.yaml", "task_description: x\noutput_artifact_path: commands/x.md\n"),
        ("bad.json", '{"task_description": "x", "output_artifact_path": "a.md", "config": {"max_rounds": 500}}'),
        ("bad.md", "---\noutput_artifact_path: a.txt\n---\nChoose.\n"),
        ("bad.json", '{"task_description": "x", "output_artifact_path": "a.md", "sessoin": "x"}'),
        ("bad.json", '{"type": "memory", "role": "NOBODY", "action": "reset"}'),
    ],
)
def test_validate_says_what_the_daemon_says_of_the_same_file(
    home: Path, tmp_path: Path, env: dict[str, str], name: str, text_: str
) -> None:
    (tmp_path / name).write_text(text_)
    said = run_cli("--home", str(home), "validate", str(tmp_path / name), "--json", cwd=tmp_path, env=env)
    assert said.returncode == 2
    [problem] = json.loads(said.stdout)["problems"]
    drop_command(home, text_.encode(), name)
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 2
    note = (home / "commands" / "failed" / f"{name}.error.md").read_text()
    assert problem["message"].rstrip(".") in note
    assert problem["fix"].rstrip(".") in note


def test_what_validate_calls_ok_the_daemon_runs_and_writes_where_it_said(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "ask.md").write_text(
        "---\noutput_artifact_path: artifacts/\nconfig:\n  max_rounds: 1\n---\nChoose a store. Now.\n"
    )
    said = run_cli("validate", "ask.md", "--json", cwd=home, env=env)
    assert said.returncode == 0
    assert run_cli("submit", "ask.md", "--wait", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    assert receipt["artifact"]["path"] == json.loads(said.stdout)["output"] == "artifacts/choose-a-store.md"


# ── schema and editor ────────────────────────────────────────────────────────────────────────────────────────────────


def test_schema_prints_the_schema_and_write_puts_both_into_the_home(home: Path) -> None:
    printed = run_cli("schema", cwd=home)
    assert (printed.returncode, printed.stdout.encode()) == (0, schema_files(COMMANDS)[COMMAND_SCHEMA_NAME])
    assert json.loads(printed.stdout)["$schema"] == "http://json-schema.org/draft-07/schema#"
    recurring = run_cli("schema", "--recurring", cwd=home).stdout
    assert recurring.encode() == schema_files(COMMANDS)[RECURRING_SCHEMA_NAME]
    assert run_cli("schema", "--write", cwd=home).returncode == 0
    written = {path.name: path.read_bytes() for path in (home / "commands" / ".schema").iterdir()}
    assert written == schema_files(COMMANDS)


def test_init_writes_the_schema_and_for_vscode_settings_and_tasks_that_point_to_it(tmp_path: Path) -> None:
    assert run_cli("init", "home", "--vscode", cwd=tmp_path).returncode == 0
    home = tmp_path / "home"
    settings = json.loads((home / ".vscode" / "settings.json").read_text())
    urls = [entry["url"] for entry in settings["json.schemas"]] + list(settings["yaml.schemas"])
    assert [url for url in urls if not (home / url).is_file()] == []
    matched = {pattern for entry in settings["json.schemas"] for pattern in entry["fileMatch"]}
    assert {"/commands/*.json", "/commands/recurring/*.json"} <= matched
    tasks = json.loads((home / ".vscode" / "tasks.json").read_text())["tasks"]
    assert {task["label"] for task in tasks} == {
        "council: run",
        "council: submit current file",
        "council: validate current file",
        "council: show last",
        "council: report of the last run",
        "council: doctor",
    }


def test_the_problem_matcher_of_the_validate_task_reads_what_validate_prints(home: Path) -> None:
    assert run_cli("init", ".", "--vscode", cwd=home).returncode == 0
    tasks = json.loads((home / ".vscode" / "tasks.json").read_text())["tasks"]
    [pattern] = [task["problemMatcher"]["pattern"] for task in tasks if "validate" in task["label"]]
    (home / "bad.json").write_text('{"task_description": "x", "output_artifact_path": "../x.md"}')
    first = run_cli("validate", str(home / "bad.json"), cwd=home).stdout.splitlines()[0]
    match = re.fullmatch(pattern["regexp"], first)
    assert match is not None
    groups = [match[pattern[name]] for name in ("file", "line", "column", "severity")]
    assert groups == [str(home / "bad.json"), "1", "51", "error"]


def test_init_for_vscode_leaves_files_that_are_there_alone_and_prints_what_to_add(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    mine = tmp_path / ".vscode" / "settings.json"
    mine.write_text('{"editor.rulers": [100]}')
    done = run_cli("init", ".", "--vscode", cwd=tmp_path)
    assert mine.read_text() == '{"editor.rulers": [100]}'
    assert "settings.json already exists and was not changed. Add this to it:" in done.stdout
    assert '"json.schemas"' in done.stdout
    assert (tmp_path / ".vscode" / "tasks.json").is_file()


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_is_content_with_a_good_home_and_reaches_the_model_when_asked_to(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    assert run_cli("doctor", cwd=home, env=env).returncode == 0
    assert fake.requests == []
    done = run_cli("doctor", "--online", "--json", cwd=home, env=env)
    assert (done.returncode, len(fake.requests)) == (0, 1)
    checks = {check["name"]: check["status"] for check in json.loads(done.stdout)["checks"]}
    assert checks["model answers"] == "ok"


def test_doctor_ends_with_3_and_names_the_fix_when_the_key_is_missing_or_refused(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    done = run_cli("doctor", cwd=home)
    assert done.returncode == 3
    assert re.search(r"^fail  model .*\n +fix: echo 'GEMINI_API_KEY=…' >> ", done.stdout, re.MULTILINE)
    fake.reply = lambda request: error(400, "API_KEY_INVALID", message="API key not valid")
    done = run_cli("doctor", "--online", cwd=home, env=env)
    assert done.returncode == 3
    assert re.search(r"^fail  model answers ", done.stdout, re.MULTILINE)
    assert env["GEMINI_API_KEY"] not in done.stdout


def test_doctor_names_what_a_killed_daemon_left_and_is_content_after_the_next_run(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    held = threading.Event()
    fake.reply = lambda request: text("late" if held.wait(TIMEOUT_S) else "never")
    with Daemon(home, env=env) as daemon:
        drop_command(home, command())
        daemon.wait("turn_started")
        daemon.kill()
    held.set()
    done = run_cli("doctor", "--json", cwd=home, env=env)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (checks["unfinished runs"]["status"], checks["unfinished runs"]["fix"]) == ("warn", "council run --once")
    fake.reply = lambda request: text("quick")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    after = json.loads(run_cli("doctor", "--json", cwd=home, env=env).stdout)
    assert {check["name"] for check in after["checks"] if check["status"] != "ok"} <= {"sqlite"}  # its version's matter


# ── agents and memory ────────────────────────────────────────────────────────────────────────────────────────────────


def test_agents_are_listed_and_shown(home: Path) -> None:
    listed = json.loads(run_cli("agents", "list", "--json", cwd=home).stdout)
    assert {agent["role"] for agent in listed} >= {
        "AUDITOR",
        "COORDINATOR",
        "STRATEGIST",
        "CONDUCTOR",
        "TAX_SPECIALIST",
    }
    assert "AUDITOR" in run_cli("agents", "list", cwd=home).stdout
    shown = json.loads(run_cli("agents", "show", "auditor", "--json", cwd=home).stdout)
    assert shown["instructions"].strip() in (home / "personas" / "auditor.md").read_text()
    for group in ("agents", "memory"):
        misspelled = run_cli(group, "show", "auditr", cwd=home)
        assert (misspelled.returncode, misspelled.stderr) == (
            2,
            "error (agent_not_found): there is no agent AUDITR here.\n  fix: did you mean AUDITOR?\n",
        )


def test_memory_show_prints_the_tasks_and_the_very_digest_that_the_next_prompt_carries(
    remembered: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    told = json.loads(run_cli("memory", "show", "auditor", "--json", cwd=remembered).stdout)
    assert [task["title"] for task in told["tasks"]] == ["How many herons nest here?"]
    shown = run_cli("memory", "show", "AUDITOR", cwd=remembered).stdout
    assert "How many herons nest here? (" in shown
    before = len(fake.requests)
    drop_command(remembered, command("And how many storks?"))
    assert run_cli("run", "--once", cwd=remembered, env=env).returncode == 0
    prompts = ["\n".join(request.texts) for request in fake.requests[before:]]
    assert told["digest"].strip() in prompts[0]


def test_a_tool_that_does_not_exist_is_told_where_agents_are_listed(home: Path) -> None:
    persona = home / "personas" / "auditor.md"
    persona.write_text(persona.read_text().replace("QUERY_CORTEX", "QUERY_CORTX", 1))
    listed = run_cli("agents", "list", cwd=home)
    assert (
        listed.stderr
        == "warning: AUDITOR names the tool QUERY_CORTX, which does not exist; did you mean QUERY_CORTEX?\n"
    )


def test_a_damaged_memory_is_shown_from_its_last_good_copy(remembered: Path) -> None:
    (remembered / "session_states" / "auditor_session.json").write_text('{"broken')
    shown = run_cli("memory", "show", "auditor", cwd=remembered).stdout
    assert "warning: auditor_session.json is damaged" in shown
    assert "this is the last good copy" in shown
    assert "How many herons nest here? (" in shown


def test_memory_of_a_role_that_does_not_exist_is_a_usage_error(home: Path) -> None:
    done = run_cli("memory", "show", "nobody", cwd=home)
    assert (done.returncode, "see `council agents list`" in done.stderr) == (2, True)
    assert run_cli("memory", "show", "../x", cwd=home).returncode == 2


def test_reset_empties_one_agents_memory_leaves_a_receipt_only_and_archives_what_was_there(remembered: Path) -> None:
    artifacts = sorted((remembered / "artifacts").iterdir())
    done = run_cli("memory", "reset", "auditor", "--yes", "--json", cwd=remembered)  # no key is set: none is needed
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)
    assert (receipt["status"], receipt["type"], receipt.get("artifact")) == ("succeeded", "memory", None)
    assert session(remembered)["tasks"] == []
    assert len(session(remembered, "coordinator")["tasks"]) == 1
    [page] = archive(remembered)
    assert "How many herons nest here?" in page.read_text()
    assert sorted((remembered / "artifacts").iterdir()) == artifacts
    assert [path.name for path in (remembered / "commands").glob("*.json")] == []


def test_reset_asks_first_and_a_no_changes_nothing(remembered: Path) -> None:
    done = run_cli("memory", "reset", "auditor", cwd=remembered, stdin=b"n\n")
    assert done.returncode != 0
    assert len(session(remembered)["tasks"]) == 1


def test_a_reset_waits_for_its_lanes_turn_while_a_daemon_works(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    held = threading.Event()
    fake.reply = lambda request: text("Forty-two herons." if held.wait(TIMEOUT_S) else "never")
    with Daemon(home, env=env) as daemon, ThreadPoolExecutor() as threads:
        drop_command(home, command("How many herons nest here?"))
        started = daemon.wait("run_started")["run_id"]
        reset = threads.submit(run_cli, "memory", "reset", "auditor", "--yes", cwd=home)
        daemon.wait("run_queued", count=2)
        held.set()
        assert reset.result().returncode == 0
        daemon.wait("run_ended", count=2)
        daemon.stop()
    ended = [(event["run_id"], event["status"]) for event in daemon.events if event["event"] == "run_ended"]
    assert ended[0] == (started, "succeeded")
    assert session(home)["tasks"] == []
    assert len(archive(home)) == 1


def test_edit_from_a_file_replaces_the_answers_and_the_next_prompt_carries_them(
    remembered: Path, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    run_id = session(remembered)["tasks"][0]["run_id"]
    edited = tmp_path / "edited.yaml"
    edited.write_text(
        f"- run_id: {run_id}\n  answer: Forty-three herons, counted twice.\n- run_id: note\n  title: T\n  answer: N\n"
    )
    done = run_cli("memory", "edit", "auditor", "--file", str(edited), cwd=remembered)
    assert done.returncode == 0, done.stderr
    first, second = session(remembered)["tasks"]
    assert (first["title"], first["answer"]) == ("How many herons nest here?", "Forty-three herons, counted twice.")
    assert len(first["messages"]) == 2
    assert (second["run_id"], second["status"]) == ("note", "noted")
    lived, edited_page, note = archive(remembered)
    assert "forty-two herons" in lived.read_text()
    assert ["Forty-three herons" in page.read_text() for page in (edited_page, note)] == [True, False]
    before = len(fake.requests)
    drop_command(remembered, command("And how many storks?"))
    assert run_cli("run", "--once", cwd=remembered, env=env).returncode == 0
    prompts = ["\n".join(request.texts) for request in fake.requests[before:]]
    assert sum("Forty-three herons" in prompt for prompt in prompts) == 1


def test_edit_opens_the_editor_on_the_present_answers_and_an_unchanged_text_changes_nothing(
    remembered: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.yaml"
    editor = tmp_path / "editor.sh"
    editor.write_text(f'#!/bin/sh\ncp "$1" {seen}\n')
    editor.chmod(0o755)
    done = run_cli("memory", "edit", "auditor", cwd=remembered, env=environment(EDITOR=str(editor)))
    assert (done.returncode, done.stdout) == (0, "Nothing changed.\n")
    assert "How many herons nest here?" in seen.read_text()
    editor.write_text("#!/bin/sh\nsed -i 's/How many herons nest here?/Herons/' \"$1\"\n")
    assert run_cli("memory", "edit", "auditor", cwd=remembered, env=environment(EDITOR=str(editor))).returncode == 0
    assert [task["title"] for task in session(remembered)["tasks"]] == ["Herons"]


def test_an_edit_that_cannot_be_read_keeps_the_persons_text(remembered: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho "- answer: [" > "$1"\n')
    editor.chmod(0o755)
    env = environment(EDITOR=str(editor), TMPDIR=str(tmp_path))
    done = run_cli("memory", "edit", "auditor", cwd=remembered, env=env)
    assert done.returncode == 2
    kept = re.search(r"--file ([^`\s]+)", done.stderr)
    assert kept is not None
    assert Path(kept[1]).read_text() == "- answer: [\n"
    assert stat.S_IMODE(Path(kept[1]).stat().st_mode) == 0o600


def test_a_text_that_was_emptied_changes_nothing_and_the_way_to_clear_a_memory_is_named(
    remembered: Path, tmp_path: Path
) -> None:
    before = session(remembered)
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho > "$1"\n')
    editor.chmod(0o755)
    (tmp_path / "auditor.yaml").touch()
    for words in ([], ["--file", str(tmp_path / "auditor.yaml")]):
        env = environment(EDITOR=str(editor))
        done = run_cli("memory", "edit", "auditor", *words, cwd=remembered, env=env)
        assert (done.returncode, done.stderr.splitlines()) == (2, [
            "error (usage): auditor.yaml is empty, so nothing was changed.",
            "  fix: edit it again; to clear the memory, use `council memory reset`",
        ])  # fmt: skip
    assert session(remembered) == before


def test_an_edit_of_a_memory_that_changed_meanwhile_fails_and_keeps_the_newer_one(
    remembered: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    body = {"type": "memory", "role": "AUDITOR", "action": "replace", "answers": [], "base_sha256": "0" * 64}
    (remembered / "late.json").write_text(json.dumps(body))
    done = run_cli("submit", "late.json", "--wait", "--json", cwd=remembered, env=env)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "memory_changed"
    assert len(session(remembered)["tasks"]) == 1


def test_a_memory_command_killed_at_any_moment_is_done_exactly_once_after_the_restart(
    remembered: Path, env: dict[str, str]
) -> None:
    with Daemon(remembered, env=env) as daemon:
        daemon.ready()
        drop_command(remembered, {"type": "memory", "role": "AUDITOR", "action": "reset"}, "memory.json")
        daemon.wait("run_queued")
        daemon.kill()
    assert run_cli("run", "--once", cwd=remembered, env=env).returncode == 0
    assert [receipt["type"] for receipt in receipts(remembered)] == ["deliberate", "memory"]
    assert session(remembered)["tasks"] == []
    assert len(archive(remembered)) == 1
    assert list((remembered / "commands").glob("*.json")) == []


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_daemon_keeps_a_log_of_its_events_without_any_key_and_logs_prints_it(
    remembered: Path, env: dict[str, str]
) -> None:
    log = remembered / ".council" / "logs" / "council.jsonl"
    assert env["GEMINI_API_KEY"] not in log.read_text()
    told = run_cli("logs", cwd=remembered)
    assert "Artifact saved to artifacts/out.md" in told.stdout
    lines = run_cli("logs", "--json", "-n", "3", cwd=remembered).stdout.splitlines()
    assert [json.loads(line)["event"] for line in lines][-1] == "run_ended"
    assert len(lines) == 3


def test_log_records_stand_in_the_same_file(home: Path, env: dict[str, str]) -> None:
    (home / "session_states" / "auditor_session.json").write_text("damaged")
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode in (0, 7)
    records = [json.loads(line) for line in (home / ".council" / "logs" / "council.jsonl").read_text().splitlines()]
    [damage] = [record for record in records if "was damaged" in record.get("message", "")]
    assert (damage["level"], damage["run_id"]) == ("warning", receipts(home)[0]["run_id"])


def test_logs_without_a_log_says_so(home: Path) -> None:
    done = run_cli("logs", cwd=home)
    assert (done.returncode, done.stdout) == (0, "")
    assert "No log yet" in done.stderr


def test_following_the_log_prints_what_is_added(home: Path, env: dict[str, str]) -> None:
    process = warm.start("council", ("logs", "--follow", "--json"), cwd=home, env=environment())
    assert process.stdout is not None
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    events = []
    while "run_ended" not in events:
        events.append(json.loads(process.stdout.readline()).get("event"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert (events[0], process.returncode) == ("daemon_started", 130)


# ── completion, colours, help ────────────────────────────────────────────────────────────────────────────────────────


def with_council_on_the_path() -> dict[str, str]:
    return environment(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [("council st", {"stats", "status"}), ("council memory r", {"reset"}), ("council doctor --on", {"--online"})],
)
def test_bash_completes_commands_and_options_after_sourcing_the_script(
    tmp_path: Path, words: str, expected: set[str]
) -> None:
    script = f"""
        source <(council completion bash) || exit 9
        complete -p council > /dev/null || exit 8
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _council_completion council
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env=with_council_on_the_path(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize(
    ("shell", "part"),
    [
        ("bash", "complete -o default -F"),
        ("zsh", "compdef _council_completion council"),
        ("fish", "complete --command council"),
    ],
)
def test_each_shell_gets_the_script_it_is_asked_for(tmp_path: Path, shell: str, part: str) -> None:
    done = run_cli("completion", shell, cwd=tmp_path)
    assert done.returncode == 0
    assert part in done.stdout
    assert f"complete_{shell}" in done.stdout


@pytest.mark.parametrize(
    "variables", [{"complete": "zsh", "args": "council st"}, {"complete": "fish", "args": "council st"}]
)
def test_council_answers_the_scripts_of_zsh_and_fish(tmp_path: Path, variables: dict[str, str]) -> None:
    env = with_council_on_the_path() | {
        "_COUNCIL_COMPLETE": f"complete_{variables['complete']}",
        "_TYPER_COMPLETE_ARGS": variables["args"],
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(["council"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "status" in done.stdout


def test_an_unknown_shell_is_a_usage_error(tmp_path: Path) -> None:
    assert run_cli("completion", "cmd", cwd=tmp_path).returncode == 2


def test_colours_appear_on_a_terminal_only_and_not_when_no_color_is_set(home: Path) -> None:
    plain = environment(TERM="xterm")
    plain.pop("NO_COLOR", None)
    assert "\x1b[32mok" in on_a_terminal("doctor", "--model", "offline", cwd=home, env=plain)
    assert "\x1b" not in on_a_terminal("doctor", "--model", "offline", cwd=home, env={**plain, "NO_COLOR": "1"})
    assert "\x1b" not in run_cli("doctor", "--model", "offline", cwd=home, env=plain).stdout


def test_the_help_lists_every_exit_code_on_a_line_of_its_own(tmp_path: Path) -> None:
    lines = [line.split(maxsplit=1) for line in run_cli("--help", cwd=tmp_path).stdout.splitlines() if line.strip()]
    assert [line for line in ([str(code), meaning] for code, meaning in EXIT_CODES.items()) if line not in lines] == []


def test_the_help_of_a_group_tells_the_whole_first_sentence_of_each_command(tmp_path: Path) -> None:
    told = " ".join(run_cli("vault", "--help", cwd=tmp_path).stdout.split())
    assert "set Store a value from standard input; a terminal asks for it and does not show it." in told


def test_status_loads_neither_settings_nor_anything_heavy(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    script = "import sys; from council.cli.main import app; app(['status'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, env=environment(), capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    heavy = {
        "council.settings.table",
        "rich",
        "asyncio",
        "yaml",
        "watchdog",
        "google.genai",
        "docker",
        "sqlalchemy",
        "tantivy",
        "fastapi",
    }
    assert "typer" in loaded
    assert loaded & heavy == set()


def test_status_waits_neither_for_settings_to_be_mended_nor_for_a_database_to_be_made(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings="model = [")
    (home / ".council").mkdir()
    (home / ".council" / "council.db").touch()  # as a start leaves it that dies in its first instant
    done = run_cli("status", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_are_valid_where_that_shell_is_installed(
    tmp_path: Path, shell: str, require_service: Callable[[str, bool, str], None]
) -> None:
    require_service(shell, shutil.which(shell) is not None, f"install {shell}")
    script = run_cli("completion", shell, cwd=tmp_path).stdout
    (tmp_path / "script").write_text(script)
    assert subprocess.run([shell, "-n", "script"], cwd=tmp_path, check=False).returncode == 0


def test_a_daemon_that_is_running_shows_in_the_doctors_report(home: Path, env: dict[str, str]) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        done = run_cli("doctor", cwd=home, env=env)
        daemon.stop()
    assert f"running, pid {daemon.process.pid}" in done.stdout


def test_the_schema_folder_never_becomes_a_command(home: Path, env: dict[str, str]) -> None:
    assert run_cli("schema", "--write", cwd=home).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    wait_until(lambda: (home / "commands" / ".schema" / COMMAND_SCHEMA_NAME).is_file(), "the schema")
    assert receipts(home) == []
