"""The command line: what each command does, says and ends with, against real homes and real daemons."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from council import __version__
from tests import warm
from tests.documents import pdf
from tests.e2e.gate import Gate, is_closing
from tests.fake_gemini import FakeGemini, error, slow, text
from tests.harness import (
    TIMEOUT_S,
    Daemon,
    command,
    drop_command,
    environment,
    make_home,
    receipts,
    run_cli,
    wait_until,
)

KEY = "AIzaSyD-1234567890abcdefghijklmnopqrstu"


def write_command(folder: Path, body: dict[str, Any] | bytes, name: str = "question.json") -> Path:
    path = folder / name
    path.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    return path


def start_cli(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    return warm.start("council", arguments, cwd=cwd, env=env, stdin=subprocess.DEVNULL)


# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_submit_without_a_daemon_drops_the_command_and_says_that_nobody_is_there(quick: Path) -> None:
    path = write_command(quick, command())
    for name in ("question.json", "question-2.json"):
        done = run_cli("submit", "question.json", cwd=quick)
        assert done.returncode == 0
        assert f"Dropped commands/{name}." in done.stdout
        assert "No daemon is running" in done.stdout
        assert "council run" in done.stdout
        assert (quick / "commands" / name).read_bytes() == path.read_bytes()
    assert receipts(quick) == []
    assert not (quick / "artifacts" / "out.md").exists()


def test_submit_with_a_daemon_names_it_and_does_not_wait(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    write_command(home, command())
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        done = run_cli("submit", "question.json", cwd=home, env=env)
        assert done.returncode == 0
        assert f"pid {daemon.process.pid}" in done.stdout
        gate.open()
        assert daemon.wait("run_ended", file="question.json")["status"] == "succeeded"


def test_submit_json_tells_where_the_file_went_and_who_serves(quick: Path) -> None:
    write_command(quick, command())
    done = run_cli("submit", "question.json", "--name", "other.json", "--json", cwd=quick)
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["file"] == str(quick / "commands" / "other.json")
    assert said["daemon"] is None


def test_submit_from_standard_input(quick: Path) -> None:
    data = json.dumps(command("A question from a pipe.")).encode()
    assert run_cli("submit", "-", cwd=quick, stdin=data).returncode == 0
    assert (quick / "commands" / "command.json").read_bytes() == data
    assert run_cli("submit", "-", "--name", "piped.json", cwd=quick, stdin=data).returncode == 0
    assert (quick / "commands" / "piped.json").read_bytes() == data


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere.json",), 2, "cannot read nowhere.json"),
        (("council.toml",), 6, 'To ask about a document, use `council submit --wait --task "…" FILE`'),
        (("question.json", "--name", "../x.json"), 6, "../x.json"),
        (("question.json", "--name", "README.json"), 6, "README.json"),
    ],
)
def test_submit_refuses_what_would_never_be_read_as_a_command(
    quick: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    write_command(quick, command())
    before = sorted(quick.rglob("*"))
    done = run_cli("submit", *arguments, cwd=quick)
    assert done.returncode == code
    assert said in done.stderr
    assert "fix:" in done.stderr
    assert sorted(quick.rglob("*")) == before


def test_submit_wait_without_a_daemon_runs_this_command_alone_and_prints_the_answer(quick: Path) -> None:
    other = drop_command(quick, command(output_artifact_path="artifacts/other.md"), "other.json")
    broken = drop_command(quick, b"[]", "broken.json")
    write_command(quick, command("Is a<b, or [c] a_b_ & d?"))
    done = run_cli("submit", "--wait", "question.json", cwd=quick)
    assert done.returncode == 0
    assert done.stdout.startswith("# Is a<b, or [c] a_b_ & d?\n")
    assert "Nothing to add." in done.stdout
    assert done.stdout.endswith("Status: succeeded. The whole record: artifacts/out.md\n")
    events = [json.loads(line)["event"] for line in done.stderr.splitlines() if line]
    assert (events[0], events[-1]) == ("daemon_started", "run_ended")
    assert other.exists()
    assert broken.exists()
    assert [receipt["command_file"]["name"] for receipt in receipts(quick)] == ["question.json"]
    assert not (quick / "commands" / "question.json").exists()
    assert json.loads(run_cli("status", "--json", cwd=quick).stdout)["daemon"] is None


def test_submit_wait_json_prints_the_receipt_and_nothing_else(quick: Path) -> None:
    write_command(quick, command())
    done = run_cli("submit", "--wait", "--json", "question.json", cwd=quick)
    assert done.returncode == 0
    assert json.loads(done.stdout) == receipts(quick)[0]


def test_submit_wait_with_a_daemon_lets_it_answer(quick: Path) -> None:
    write_command(quick, command("What is to be done?"))
    with Daemon(quick) as daemon:
        daemon.ready()
        done = run_cli("submit", "--wait", "question.json", cwd=quick)
        assert done.returncode == 0
        assert "# What is to be done" in done.stdout
        assert daemon.wait("run_ended", file="question.json")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert len(receipts(quick)) == 1


@pytest.mark.parametrize("served", [False, True], ids=["without a daemon", "with a daemon"])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (json.dumps({**command(), "config": {"max_rounds": "3"}}).encode(), "`config.max_rounds`"),
        (b'{"task_description": ', "question.json:1:22: error: not JSON"),
    ],
    ids=["invalid", "malformed"],
)
def test_submit_wait_of_a_bad_command_ends_with_2_and_the_reason_and_keeps_it_out_of_the_inbox(
    quick: Path, data: bytes, said: str, served: bool
) -> None:
    write_command(quick, data)
    if served:
        with Daemon(quick) as daemon:
            daemon.ready()
            done = run_cli("submit", "--wait", "question.json", cwd=quick)
    else:
        done = run_cli("submit", "--wait", "question.json", cwd=quick)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Nothing was dropped." in done.stderr
    assert not (quick / "commands" / "question.json").exists()
    assert not (quick / "commands" / "failed").exists()


def test_submit_wait_with_an_id_that_was_answered_prints_that_answer_again(quick: Path) -> None:
    write_command(quick, command("What is to be done?", id="order-7"))
    first = run_cli("submit", "--wait", "--json", "question.json", cwd=quick)
    second = run_cli("submit", "--wait", "--json", "question.json", cwd=quick)
    assert (first.returncode, second.returncode) == (0, 0)
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert len(receipts(quick)) == 1


def test_submit_wait_ends_with_the_code_of_its_run(quick: Path) -> None:
    write_command(quick, command(input_artifacts=["gone.md"]), "failing.json")
    (quick / "a.md").write_text("alpha\n")
    write_command(quick, command(input_artifacts=["a.md", "gone.md"]), "degraded.json")
    assert run_cli("submit", "--wait", "failing.json", cwd=quick).returncode == 1
    assert run_cli("submit", "--wait", "degraded.json", cwd=quick).returncode == 7


def test_submit_wait_gives_up_after_its_time_while_the_run_goes_on(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    write_command(home, command())
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        done = run_cli("submit", "--wait", "--timeout-s", "0.5", "question.json", cwd=home, env=env)
        assert done.returncode == 5
        assert "council status" in done.stderr
        gate.open()
        assert daemon.wait("run_ended", file="question.json")["status"] == "succeeded"


def test_submit_wait_without_a_daemon_leaves_a_parked_run_with_75(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: error(429, "RESOURCE_EXHAUSTED", retry_after=3600)
    write_command(home, command())
    done = run_cli("submit", "--wait", "--timeout-s", "10", "question.json", cwd=home, env=env)
    assert done.returncode == 75
    assert (home / "commands" / "question.json").exists()


@pytest.mark.parametrize(
    ("typed", "file"), [(("submit", "--wait", "question.json"), "question.json"), (("ask", "Which roof?"), "ask.json")]
)
def test_a_door_that_cannot_build_the_council_keeps_the_command_and_says_so(
    home: Path, typed: tuple[str, ...], file: str
) -> None:
    write_command(home, command())
    done = run_cli(*typed, cwd=home)
    assert done.returncode == 3
    assert "GEMINI_API_KEY" in done.stderr
    assert f"{file} stays in commands/" in done.stderr
    assert (home / "commands" / file).exists()


# ── status, show, cancel ─────────────────────────────────────────────────────────────────────────────────────────────


def test_status_without_a_daemon(quick: Path) -> None:
    drop_command(quick, command(), "waiting.json")
    human = run_cli("status", cwd=quick)
    assert human.returncode == 0
    assert "not running" in human.stdout
    assert "council run" in human.stdout
    assert "waiting.json" in human.stdout
    view = json.loads(run_cli("status", "--json", cwd=quick).stdout)
    assert (view["state"], view["daemon"], view["runs"], view["recent"]) == ("STOPPED", None, [], [])
    assert view["waiting_files"] == ["waiting.json"]
    assert view["home"] == str(quick)


def test_status_of_an_idle_daemon_and_after_it_stopped(quick: Path) -> None:
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, command())
        run_id = daemon.wait("run_ended")["run_id"]
        daemon.wait("idle", count=2)
        wait_until(lambda: _view(quick)["state"] == "AWAITING_COMMAND", "the state is published")
        view = _view(quick)
        assert view["daemon"]["pid"] == daemon.process.pid
        assert view["runs"] == []
        assert view["model"] == "scripted:script"
        assert [(run["run_id"], run["status"], run["artifact"]) for run in view["recent"]] == [
            (run_id, "succeeded", "artifacts/out.md")
        ]
        human = run_cli("status", cwd=quick).stdout
        assert f"AWAITING_COMMAND, pid {daemon.process.pid}, model scripted:script" in human
        assert run_id in human
        assert daemon.stop() == 0
    assert _view(quick)["state"] == "STOPPED"
    assert _view(quick)["daemon"] is None


def test_settings_edited_beside_a_daemon_are_told_until_it_is_restarted(quick: Path) -> None:
    settings = quick / "council.toml"
    with Daemon(quick) as daemon:
        daemon.ready()
        assert _view(quick)["edited_settings"] == []
        settings.write_text(settings.read_text() + "day_max_calls = 2000\n")
        os.utime(settings, (time.time() + 5,) * 2)
        assert _view(quick)["edited_settings"] == ["council.toml"]
        advice = "council.toml was edited after the daemon started: restart it to use the change"
        assert f"  {advice}\n" in run_cli("status", cwd=quick).stdout
        assert advice in run_cli("config", "show", cwd=quick).stdout
        assert "it does not know the changes in council.toml" in run_cli("doctor", cwd=quick).stdout
    assert _view(quick)["edited_settings"] == []


def _view(home: Path) -> dict[str, Any]:
    view = json.loads(run_cli("status", "--json", cwd=home).stdout)
    assert isinstance(view, dict)
    return view


def test_status_of_a_running_run_tells_round_speaker_and_queue(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("The running task.", rounds=2))
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, command("The queued task."), "second.json")
        daemon.wait("run_queued", file="second.json")
        view = wait_until(
            lambda: (
                len(_view(home)["runs"]) == 2 and _view(home)["runs"][0].get("role") == "STRATEGIST" and _view(home)
            ),
            "the state is published",
        )
        assert view["state"] == "EXECUTING_TASK"
        running, queued = view["runs"]
        assert (running["run_id"], running["status"], running["title"]) == (run_id, "running", "The running task")
        assert (running["round"], running["max_rounds"], running["file"]) == (1, 2, "command.json")
        assert (queued["status"], queued["title"]) == ("queued", "The queued task")
        assert view["waiting_files"] == []
        assert f"{run_id}  running, round 1 of 2, STRATEGIST: The running task" in run_cli("status", cwd=home).stdout


def test_show_prints_the_last_answer_the_one_of_a_prefix_and_the_receipt(quick: Path) -> None:
    drop_command(quick, command("The first question.", output_artifact_path="artifacts/1.md"))
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    [first] = receipts(quick)
    last = run_cli("show", cwd=quick)
    assert last.returncode == 0
    assert last.stdout.startswith("# The first question\n")
    assert "Status: succeeded. The whole record: artifacts/1.md" in last.stdout
    assert "## Deliberation" not in last.stdout
    assert run_cli("show", "last", cwd=quick).stdout == last.stdout
    assert run_cli("show", first["run_id"][:-3], cwd=quick).stdout == last.stdout
    assert json.loads(run_cli("show", first["run_id"], "--json", cwd=quick).stdout) == first


def test_the_last_run_is_the_one_that_ended_last_also_within_one_second(quick: Path) -> None:
    for number in range(6):
        drop_command(quick, command(f"Question number {number}.", output_artifact_path=f"artifacts/{number}.md"))
    with Daemon(quick, "--once") as daemon:
        assert daemon.process.wait(60) == 0
        daemon.wait("run_ended", count=6)
        ended = [event["title"] for event in daemon.events if event["event"] == "run_ended"]
    assert ended == [f"Question number {number}" for number in range(6)]
    assert run_cli("show", "last", cwd=quick).stdout.startswith("# Question number 5\n")
    assert [run["title"] for run in _view(quick)["recent"]] == ended[::-1]


def test_cancel_ends_a_run_through_the_inbox(home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        done = run_cli("cancel", run_id, cwd=home, env=env)
        assert done.returncode == 0
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "cancelled"
    assert "\nstatus: cancelled\n" in (home / "artifacts" / "out.md").read_text()


# ── run: exit codes and output ───────────────────────────────────────────────────────────────────────────────────────


def test_once_ends_with_the_code_of_the_worst_run(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def once() -> int:
        return run_cli("run", "--once", cwd=home, env=env).returncode

    assert once() == 0  # nothing to do
    drop_command(home, command())
    assert once() == 0
    drop_command(home, b"[]", "bad.json")
    drop_command(home, command())
    assert once() == 2
    (home / "a.md").write_text("alpha\n")
    drop_command(home, command(input_artifacts=["a.md", "gone.md"]))
    drop_command(home, command(), "good.json")
    assert once() == 7
    drop_command(home, command(input_artifacts=["gone.md"]))
    drop_command(home, b"[]", "bad.json")
    assert once() == 1


def test_once_ends_with_8_after_a_cancelled_run(home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate) -> None:
    drop_command(home, command())
    with Daemon(home, "--once", env=env) as daemon:
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, {"type": "cancel", "run": run_id}, "stop.json")
        daemon.wait("run_ended", status="cancelled")
        assert daemon.process.wait(20) == 8


def test_without_a_key_nothing_starts_and_the_way_out_is_named(home: Path) -> None:
    path = drop_command(home, command())
    done = run_cli("run", "--once", cwd=home)
    assert done.returncode == 3
    assert "GEMINI_API_KEY" in done.stderr
    assert "--model offline" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.exists()
    assert receipts(home) == []


def test_an_unknown_flag_ends_with_2_and_names_the_nearest(quick: Path) -> None:
    done = run_cli("run", "--modle", "offline", cwd=quick)
    assert done.returncode == 2
    assert "--modle" in done.stderr
    assert "--model" in done.stderr.replace("--modle", "")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("stauts", "Did you mean 'stats', 'status'?\n"),
        ("persona", "No such command 'persona'. Did you mean 'agents'?\n"),
        ("quarrel", "No such command 'quarrel'.\n"),
    ],
)
def test_an_unknown_command_brings_those_with_a_name_or_a_purpose_like_it(quick: Path, word: str, said: str) -> None:
    done = run_cli(word, cwd=quick)
    assert (done.returncode, done.stderr.endswith(said)) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("submit", "--rounds", "some"),
            "Invalid value for '--rounds': must be a whole number, not the text \"some\"\n",
        ),
        (("runs", "-n", "0"), "Invalid value for '-n': is 0, but must be at least 1\n"),
        (("submit", "--timeout-s", "x"), "Invalid value for '--timeout-s': must be a number, not the text \"x\"\n"),
    ],
)
def test_a_wrong_value_of_an_option_is_told_in_words(quick: Path, words: tuple[str, ...], said: str) -> None:
    done = run_cli(*words, cwd=quick)
    assert (done.returncode, done.stderr.endswith(said)) == (2, True)


@pytest.mark.parametrize("words", [[], ["status"], ["workspace"], ["workspace", "tasks"]], ids=" ".join)
def test_help_before_a_command_is_help_behind_it(tmp_path: Path, words: list[str]) -> None:
    asked, usual = run_cli("help", *words, cwd=tmp_path), run_cli(*words, "--help", cwd=tmp_path)
    assert (asked.returncode, asked.stdout) == (0, usual.stdout)


def test_without_a_home_the_way_to_make_one_is_named(tmp_path: Path) -> None:
    for arguments in (("run",), ("status",), ("submit", "-"), ("show",), ("--home", str(tmp_path), "run")):
        done = run_cli(*arguments, cwd=tmp_path)
        assert done.returncode == 3
        assert "council init" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_script_speaks_for_the_model_and_the_page_says_so(home: Path) -> None:
    (home / "talk.yaml").write_text(
        "model: rehearsal\n"
        "replies:\n"
        '  - {role: STRATEGIST, round: 1, purpose: turn, text: "I would ship on Friday."}\n'
        '  - {purpose: synthesis, text: "Ship on Monday."}\n'
        'default: {text: "Nothing to add."}\n'
    )
    drop_command(home, command())
    assert run_cli("run", "--once", "--model", "scripted:talk.yaml", cwd=home).returncode == 0
    page = (home / "artifacts" / "out.md").read_text()
    assert page.index("Ship on Monday.") < page.index("I would ship on Friday.")
    [receipt] = receipts(home)
    assert (receipt["model"], receipt["details"]["mode"]) == ("scripted:rehearsal", "scripted")


def test_away_from_a_terminal_every_line_of_run_is_json(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: text("Two\nlines, and \x1b[31mred\x1b[0m.")
    drop_command(home, command("A task\nof two lines: é \u2028 x."))
    drop_command(home, b"[]", "bad.json")
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode == 2
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"daemon_started", "run_queued", "run_started", "turn_ended", "run_ended", "command_refused"} <= {
        event["event"] for event in events
    }
    assert all(event["time"].endswith("Z") for event in events)
    assert all(json.loads(line)["level"] for line in done.stderr.splitlines())


def test_lines_for_people_tell_the_story_without_control_characters(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command("A task with \x1b[31mred\x1b[0m words."))
    drop_command(home, b"[]", "bad.json")
    done = run_cli("run", "--once", "--log-format", "human", cwd=home, env=env)
    assert done.returncode == 2
    for words in (
        "Command file detected: commands/command.json",
        "--- ROUND 1 of 1 ---",
        "bad.json",
        "artifacts/out.md",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout
    assert "{" not in done.stdout


def test_an_interrupt_ends_the_daemon_with_130_and_keeps_the_command(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="STRATEGIST")
        daemon.signal(signal.SIGINT)
        daemon.wait("stopping")
        gate.open()
        assert daemon.process.wait(20) == 130
    assert (home / "commands" / "command.json").exists()
    assert receipts(home) == []


@pytest.mark.parametrize("served", [False, True], ids=["without a daemon", "with a daemon"])
def test_an_interrupt_ends_submit_wait_with_130_and_keeps_the_command(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, served: bool
) -> None:
    write_command(home, command())
    daemon = Daemon(home, env=env).ready() if served else None
    waiting = start_cli("submit", "--wait", "question.json", cwd=home, env=env)
    try:
        fake.wait_for_requests(2)  # STRATEGIST thinks
        waiting.send_signal(signal.SIGINT)
        gate.open()
        stderr = waiting.communicate(timeout=20)[1]
    finally:
        waiting.kill()
        waiting.communicate()
        if daemon is not None:
            daemon.kill()
            daemon.__exit__()
    assert waiting.returncode == 130
    assert "Traceback" not in stderr


def test_whoever_interrupts_a_request_is_told_that_it_is_still_there_and_how_it_ends(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(3)
    with start_cli("ask", "Which one?", cwd=home, env=env) as asking:
        fake.wait_for_requests(1)
        asking.send_signal(signal.SIGINT)
        said = asking.communicate(timeout=60)[1]
    assert (asking.returncode, "`council cancel last` ends it" in said) == (130, True)
    assert run_cli("cancel", "last", cwd=home, env=env).returncode == 0


# ── first minutes, help, configuration ───────────────────────────────────────────────────────────────────────────────


def test_what_an_output_cannot_take_ends_nothing_with_a_traceback(quick: Path) -> None:
    write_command(quick, command("Is “it” done?"))
    assert run_cli("submit", "--wait", "question.json", cwd=quick).returncode == 0
    told = "PYTHONIOENCODING=latin-1 {0} show; {0} runs >&-; {0} runs >/dev/full".format(f"{sys.executable} -m council")
    done = subprocess.run(["sh", "-c", told], cwd=quick, env=environment(), capture_output=True, timeout=TIMEOUT_S)
    assert b"Is \\u201cit\\u201d done?" in done.stdout
    assert done.returncode == 1
    assert done.stderr.startswith(b"error (storage_failed): Cannot write: No space left on device.")


def test_version(tmp_path: Path) -> None:
    assert json.loads(run_cli("version", "--json", cwd=tmp_path).stdout) == {"version": __version__}
    assert run_cli("version", cwd=tmp_path).stdout == f"council {__version__}\n"


def test_forget_asks_nobody_where_there_is_no_home(tmp_path: Path) -> None:
    refused = run_cli("forget", "the word", cwd=tmp_path)
    assert (refused.returncode, "no home in" in refused.stderr, "Continue?" in refused.stderr) == (3, True, False)


def test_forget_refuses_a_text_that_is_too_short_before_it_asks_anybody(quick: Path) -> None:
    refused = run_cli("forget", "abc", cwd=quick)
    assert refused.returncode == 2
    assert "`text` must be at least 4 characters" in refused.stderr
    assert "Continue?" not in refused.stderr


def test_help_tells_the_exit_codes_and_needs_no_home(tmp_path: Path) -> None:
    done = run_cli("--help", cwd=tmp_path)
    assert done.returncode == 0
    for code, meaning in (
        (0, "all is well"),
        (1, "a run failed"),
        (7, "degraded"),
        (75, "waiting"),
        (130, "interrupted"),
    ):
        assert re.search(rf"(?m)^ *{code}:? +.*{meaning}", done.stdout) is not None


def test_a_new_home_runs_a_command(tmp_path: Path) -> None:
    done = run_cli("init", "fresh", cwd=tmp_path)
    assert done.returncode == 0
    assert "GEMINI_API_KEY" in done.stdout
    home = tmp_path / "fresh"
    for folder in ("commands", "artifacts", "personas", "session_states"):
        assert (home / folder / "README.md").is_file()
    assert '"protocol": "independent"' in (home / "commands" / "README.md").read_text()
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert run_cli("init", "fresh", cwd=tmp_path).returncode == 0
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    (home / "notes.md").write_text("# Notes\n\nThe roof of the library was last mended in 2019.\n")
    drop_command(home, command("Find out when the roof of the library was last mended.", input_artifacts=["notes.md"]))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    page = (home / "artifacts" / "out.md").read_text()
    assert "The roof of the library was last mended in 2019." in page
    assert "no language model" in page


def test_the_demo_runs_end_to_end_without_a_key(tmp_path: Path) -> None:
    done = run_cli("demo", "try", cwd=tmp_path)
    assert done.returncode == 0
    home = tmp_path / "try"
    assert len(list((home / "docs").glob("*.md"))) == 3
    [receipt] = receipts(home)
    assert receipt["status"] == "succeeded"
    page = (home / receipt["artifact"]["path"]).read_text()
    for words in ("Figures that differ", "Offline, extractive, no language model", "900 EUR", "1,200 EUR"):
        assert words in page
        assert words in done.stdout
    assert "docs/restore-test.md" in page  # asked for by an agent, not given with the command
    assert "Fulfilled Request" in page
    assert page.count("### ROUND") == 1
    assert "set GEMINI_API_KEY, start `council run --model gemini`, and drop the command again." in page
    assert page.count(" says ") == 12  # three pairs, told by the AUDITOR and in the extract
    again = run_cli("demo", "try", cwd=tmp_path)
    assert again.returncode == 0
    assert len(receipts(home)) == 2


LETTER = (
    "Le comité a décidé lors de la réunion que le toit de la cabane doit être réparé avant le début de cet hiver. " * 3
)
STATUTES = "Die Aufnahmegebühr beträgt 150,00 €, zahlbar an den Kassenwart.\n"
FEES = (
    "| Position | Betrag |\n|---|--:|\n| Aufnahmegebühr | 175,00 € |\n| Mahnung | 5,00 € |\n| Summe | 190,00 € |\n"
    "| 19 % MwSt. | 33,00 € |\n"
)


def test_offline_reads_german_checks_totals_and_says_first_what_it_cannot_read(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    for name, words in (("lettre.md", LETTER), ("satzung.md", STATUTES), ("gebuehren.md", FEES)):
        (home / name).write_text(words)
    body = command("Wie hoch ist die Aufnahmegebühr?", input_artifacts=["lettre.md", "satzung.md", "gebuehren.md"])
    del body["config"]
    drop_command(home, body)
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    page = (home / "artifacts" / "out.md").read_text()
    extract = page.split("## Extract")[1].split("## Task")[0]
    first = extract.index("**This engine reads English and German only.** `lettre.md`")
    assert first < extract.index("Closest to an answer") < extract.index("says 150,00 €, “Aufnahmegebühr | 175,00 €”")
    assert "says 190,00 €; the figures above it make 180 € [[E3 gebuehren.md:3-4](../gebuehren.md#L3)]." in extract
    assert "says 33,00 €; 19 % of 190,00 € make 36,10 € [[E3 gebuehren.md:5](../gebuehren.md#L5)]." in extract
    assert "not in the cited lines" not in extract
    assert "Figures looked up in the lines cited for them: 8; all there." in extract
    assert "**Marked as open.** None found by this check." in extract
    assert page.count("### ROUND") == 1


@pytest.mark.parametrize(
    ("task", "first"),
    [
        (
            "¿Qué furgoneta debemos comprar?",
            "**This engine reads English and German only.** The task is in another language, so",
        ),
        (
            "Welchen Transporter sollen wir kaufen?",
            "The task is in German and `a.md` [[E1 a.md:1](../a.md#L1)] is in English, so",
        ),
    ],
    ids=["Spanish", "German"],
)
def test_offline_says_first_that_a_question_is_in_another_language_and_lists_none_of_its_words(
    tmp_path: Path, task: str, first: str
) -> None:
    home = make_home(tmp_path / "home")
    (home / "a.md").write_text("The van is nine years old and the garage says that it will not pass the next test.\n")
    body = command(task, input_artifacts=["a.md"])
    del body["config"]
    drop_command(home, body)
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    extract = (home / "artifacts" / "out.md").read_text().split("## Extract")[1].split("## Task")[0]
    assert extract.split("\n\n")[2].startswith(f"{first} lines ")
    assert "did not find" not in extract


def test_offline_quotes_the_line_below_the_heading_that_has_the_words_of_the_question(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / "hall.md").write_text(
        "# The hall\n\n## 2. Deposit\n\n300 pounds, paid back within a week.\n\n## Cars\n\nTwelve.\n"
    )
    body = command("How much is the deposit?", input_artifacts=["hall.md"])
    del body["config"]
    drop_command(home, body)
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    extract = (home / "artifacts" / "out.md").read_text().split("## Extract")[1].split("## Task")[0]
    line, heading = "[[E1 hall.md:5](../hall.md#L5)]", "[[E1 hall.md:3](../hall.md#L3)]"
    quoted = f"“300 pounds, paid back within a week.” {line}, below “2. Deposit” {heading}."
    assert f"Closest to an answer in the documents: {quoted}" in extract
    assert "not in the cited lines" not in extract


def test_offline_reads_the_table_of_a_pdf_row_by_row(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    table = ("Posten Preis", "Heizung 2.300 EUR", "Montage 3.200 EUR", "Summe 5.500 EUR")
    (home / "angebot.pdf").write_bytes(pdf(["Angebot", "Das bieten wir Ihnen an.", *table]))
    (home / "protokoll.md").write_text("Der Vorstand hat die Heizung, wie wir sie wollen, für 2.800 EUR bestellt.\n")
    body = command("Was kostet die Heizung?", input_artifacts=["angebot.pdf", "protokoll.md"])
    del body["config"]
    drop_command(home, body)
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    extract = (home / "artifacts" / "out.md").read_text().split("## Extract")[1].split("## Task")[0]
    assert "“Heizung 2.300 EUR” [[E1 angebot.pdf:p1](../angebot.pdf#page=1)]" in extract
    assert "says 2.300 EUR, “Der Vorstand" in extract
    assert "Montage 3.200 EUR" not in extract
    assert "not in the cited lines" not in extract


@pytest.mark.parametrize(
    ("config", "settings", "rounds"),
    [({}, "", 1), ({"max_rounds": 2}, "", 2), ({}, "max_rounds = 3\n", 3), ({"protocol": "independent"}, "", 2)],
)
def test_offline_takes_as_few_rounds_as_its_protocol_has_unless_somebody_names_them(
    tmp_path: Path, config: dict[str, object], settings: str, rounds: int
) -> None:
    home = make_home(tmp_path / "home", settings=settings)
    (home / "a.md").write_text("The roof of the library was last mended in 2019, and it leaks in three places.\n")
    drop_command(home, command(input_artifacts=["a.md"], config=config))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    assert receipts(home)[0]["rounds"] == rounds


def test_the_demo_refuses_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.md").write_text("Dear all\n")
    done = run_cli("demo", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.md"]


def test_config_show_names_the_source_of_every_value(quick: Path) -> None:
    (quick / ".env").write_text(f"COUNCIL_QUIET_S=2\nGEMINI_API_KEY={KEY}\n")
    done = run_cli("config", "show", "--json", cwd=quick, env=environment(COUNCIL_LOG_LEVEL="debug"))
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    assert shown["home"] == str(quick)
    assert shown["settings"]["model"] == {"value": "scripted:script.yaml", "source": "council.toml"}
    assert shown["settings"]["quiet_s"] == {"value": 2, "source": ".env"}
    assert shown["settings"]["log_level"] == {"value": "debug", "source": "COUNCIL_LOG_LEVEL (environment)"}
    assert shown["settings"]["max_attempts"]["source"] == "default"
    assert shown["keys"]["GEMINI_API_KEY"] == {"set": True, "source": ".env"}
    assert KEY not in done.stdout


def test_the_key_in_dotenv_reaches_the_provider_and_nothing_else(home: Path, fake: FakeGemini) -> None:
    (home / ".env").write_text(f"GEMINI_API_KEY={KEY}\n")
    env = environment(GOOGLE_GEMINI_BASE_URL=fake.url)
    ask = "I ask.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(.env)]"
    fake.reply = lambda request: text("So be it." if is_closing(request) else ask)
    (home / "note.md").write_text("The disk is slow.\n")
    drop_command(home, command(input_artifacts=["note.md"]))
    good = run_cli("run", "--once", "--log-level", "debug", cwd=home, env=env)
    assert good.returncode == 0
    assert {request.api_key for request in fake.requests} == {KEY}
    assert all(KEY not in json.dumps(request.body) for request in fake.requests)
    fake.reply = lambda request: error(400, "API_KEY_INVALID", message=f"API key not valid: {KEY}")
    drop_command(home, command())
    bad = run_cli("run", "--once", "--log-level", "debug", cwd=home, env=env)
    assert bad.returncode == 1
    told = run_cli("status", cwd=home, env=env).stdout + run_cli("config", "show", cwd=home, env=env).stdout
    for output in (good.stdout, good.stderr, bad.stdout, bad.stderr, told):
        assert KEY not in output
    files = [path for path in home.rglob("*") if path.is_file() and path.name != ".env"]
    assert len(files) > 10
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_command_dropped_into_a_home_named_by_the_environment_or_the_flag_is_served_there(quick: Path) -> None:
    elsewhere = quick.parent / "elsewhere"
    elsewhere.mkdir()
    write_command(elsewhere, command("Asked from elsewhere."))
    named = environment(COUNCIL_HOME=os.fspath(quick))
    done = run_cli("submit", "--wait", "question.json", cwd=elsewhere, env=named)
    assert done.returncode == 0
    assert "The whole record: ../home/artifacts/out.md" in done.stdout
    flagged = run_cli("--home", os.fspath(quick), "show", "last", cwd=elsewhere)
    assert flagged.stdout.startswith("# Asked from elsewhere\n")
    assert [path.name for path in elsewhere.iterdir()] == ["question.json"]


@pytest.mark.parametrize("arguments", [(), ("--wait",)])
def test_submit_refuses_markdown_that_is_no_command_and_drops_nothing(quick: Path, arguments: tuple[str, ...]) -> None:
    (quick / "notes.md").write_text("# Notes\n\nNo front matter here.\n")
    done = run_cli("submit", "notes.md", *arguments, cwd=quick)
    assert done.returncode == 2
    assert "this is not a command file: no front matter with a command's keys begins it" in done.stderr
    assert 'To ask about a document, use `council submit --wait --task "…" FILE`' in done.stderr
    assert not (quick / "commands" / "notes.md").exists()
