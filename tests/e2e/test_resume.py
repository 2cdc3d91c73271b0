"""A run that failed, was cancelled, or waits goes on at its first step that is not recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import Daemon, command, drop_command, environment, receipts, run_cli, unfinished, withdrawn_receipts


def wrong_key_for_the_auditor(request: RecordedRequest) -> FakeReply:
    return error(400, "API_KEY_INVALID") if "You are AUDITOR" in request.system else text("words")


def test_a_failed_run_goes_on_where_it_failed_and_pays_for_no_step_again(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = wrong_key_for_the_auditor
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    [failed] = receipts(home)
    assert len(fake.requests) == 3
    fake.reply = lambda request: text("now I can")
    assert run_cli("resume", failed["run_id"], cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == 5
    [ended] = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    assert (ended["run_id"], ended["status"]) == (failed["run_id"], "succeeded")
    assert "status: succeeded" in (home / "artifacts" / "out.md").read_text()
    assert withdrawn_receipts(home, failed["run_id"]) == [failed]
    assert [path.name for path in (home / "commands").glob("*.json")] == []


def test_a_resumed_run_survives_a_kill(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = wrong_key_for_the_auditor
    drop_command(home, command(rounds=2))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    [failed] = receipts(home)
    fake.reply = lambda request: text("now I can")
    assert run_cli("resume", failed["run_id"], cwd=home, env=env).returncode == 0
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_ended", role="AUDITOR", round=1)
        daemon.kill()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [ended] = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    assert ended["status"] == "succeeded"


def test_a_waiting_run_goes_on_at_once(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: error(429, "RESOURCE_EXHAUSTED", retry_after=3600)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("run_waiting")["run_id"]
        fake.reply = lambda request: text("now I can")
        assert run_cli("resume", run_id, cwd=home, env=env).returncode == 0
        assert daemon.wait("run_ended", run_id=run_id)["status"] == "succeeded"  # the provider's pause was lifted
        daemon.stop()


@pytest.fixture
def cut_off(home: Path, env: dict[str, str]) -> str:
    """A run of the fake Gemini that was killed in its first round."""
    drop_command(home, command(rounds=2))
    with Daemon(home, env=env) as daemon:
        run_id: str = daemon.wait("turn_started", role="AUDITOR", round=1)["run_id"]
        daemon.kill()
    return run_id


def test_a_run_keeps_its_model_whatever_the_next_daemon_runs_with(
    home: Path, fake: FakeGemini, env: dict[str, str], cut_off: str
) -> None:
    other = {**env, "COUNCIL_MODEL": "gemini:gemini-2.5-pro"}
    assert run_cli("run", "--once", cwd=home, env=other).returncode == 0
    assert {request.model for request in fake.requests} == {"gemini-2.5-flash"}
    assert [receipt["model"] for receipt in receipts(home)] == ["gemini:gemini-2.5-flash"]


def test_a_run_whose_model_cannot_be_had_ends_by_drift_and_goes_on_with_the_one_that_is_named(
    home: Path, fake: FakeGemini, cut_off: str
) -> None:
    without_key = environment(COUNCIL_MODEL="offline")
    assert run_cli("run", "--once", cwd=home, env=without_key).returncode == 1
    [failed] = receipts(home)
    assert failed["error"]["code"] == "drift"
    assert f"`council resume {cut_off} --model …`" in failed["error"]["fix"]
    refused = run_cli("resume", cut_off, cwd=home, env=without_key)
    assert (refused.returncode, "ended by drift" in refused.stderr) == (2, True)
    assert list((home / "commands" / "failed").glob("resume*")) == []
    asked = len(fake.requests)
    told = run_cli("resume", cut_off, "--model", "offline", cwd=home, env=without_key)
    assert (told.returncode, told.stderr) == (0, "The run will use offline instead of gemini:gemini-2.5-flash.\n")
    assert run_cli("run", "--once", cwd=home, env=without_key).returncode == 0
    assert len(fake.requests) == asked
    assert "Resumed although its model or Council's prompts had changed" in (home / "artifacts" / "out.md").read_text()
    records = json.loads(run_cli("audit", "tail", "--json", cwd=home).stdout)["records"]
    kinds = [(record["kind"], record["action"]) for record in records]
    assert kinds == [("effect", "run_ended"), ("approval", "drift_accepted"), ("effect", "run_ended")]


def test_a_retry_of_an_offline_run_sends_nothing_to_the_model_of_the_daemon(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text('embedding_model = "gemini:gemini-embedding-001"\n')
    (home / "note.md").write_text("The archive is kept for ten years.\n")
    drop_command(home, command(input_artifacts=["note.md"]))
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    told = run_cli("retry", "last", cwd=home, env=env)
    assert told.stderr == "The run keeps its model, offline.\n"
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert (fake.requests, fake.embeddings) == ([], [])
    [ended] = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    assert (ended["status"], ended["model"]) == ("succeeded", "offline")


def test_a_retry_with_a_model_asks_that_one_and_so_does_the_next_retry(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command(config={"max_rounds": 1, "model": "gemini:gemini-2.5-pro"}))
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    assert fake.requests == []
    told = run_cli("retry", "last", "--model", "gemini", cwd=home, env=env)
    assert told.stderr == "The run will use gemini:gemini-2.5-flash instead of offline.\n"
    assert fake.requests == []
    for times in (1, 2):
        assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
        assert [request.model for request in fake.requests] == times * 4 * ["gemini-2.5-flash"]
        run_cli("retry", "last", cwd=home, env=env)


def test_another_model_is_named_before_the_daemon_sends_anything_to_it(
    home: Path, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    told, named = tmp_path / "told", []

    def reply(request: RecordedRequest) -> FakeReply:
        named.append(told.read_text())
        return text("It is so.")

    fake.reply = reply
    drop_command(home, command(rounds=1))
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    with Daemon(home, env=env) as daemon, told.open("wb") as stderr:
        daemon.ready()
        asked = [sys.executable, "-m", "council", "retry", "last", "--model", "gemini"]
        assert subprocess.run(asked, cwd=home, env=env, stderr=stderr, timeout=60, check=False).returncode == 0
        assert daemon.wait("run_ended")["status"] == "succeeded"
    assert set(named) == {"The run will use gemini:gemini-2.5-flash instead of offline.\n"}


SCRIPT = "model: script\nreplies: [{purpose: synthesis, times: 0, text: Decided by script.}, {times: 0, text: Said by script.}]\n"


def front_matter(home: Path) -> str:
    return (home / "artifacts" / "out.md").read_text().split("\n---\n")[0]


def test_a_run_whose_first_call_failed_is_told_as_one_of_the_model_that_it_was_resumed_with(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "s.yaml").write_text("model: f\nreplies: [{times: 0, error: {kind: auth, message: no such key}}]\n")
    drop_command(home, command())
    assert run_cli("run", "--once", "--model", "scripted:s.yaml", cwd=home, env=env).returncode == 1
    assert 'model: "scripted:f"' in front_matter(home)
    assert run_cli("resume", "last", "--model", "gemini", cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == 4
    assert 'model: "gemini:gemini-2.5-flash"' in front_matter(home)
    assert json.loads(run_cli("explain", "last", "--json", cwd=home).stdout)["model"] == "gemini:gemini-2.5-flash"
    assert run_cli("replay", "last", "--check", cwd=home).returncode == 0
    told = run_cli("retry", "last", cwd=home, env=env)
    assert told.stderr == "The run keeps its model, gemini:gemini-2.5-flash.\n"
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == 8


def test_a_run_that_two_models_spoke_in_names_both_and_is_retried_with_the_last(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "s.yaml").write_text(SCRIPT)
    fake.reply = wrong_key_for_the_auditor
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    asked = len(fake.requests)
    assert run_cli("resume", "last", "--model", "scripted:s.yaml", cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert 'model: "gemini:gemini-2.5-flash, scripted:script"' in front_matter(home)
    assert json.loads(run_cli("explain", "last", "--json", cwd=home).stdout)["model"].endswith(", scripted:script")
    assert run_cli("replay", "last", "--check", cwd=home).returncode == 0
    assert run_cli("retry", "last", cwd=home, env=env).stderr == "The run keeps its model, scripted:s.yaml.\n"
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == asked
    assert 'model: "scripted:script"' in front_matter(home)


def test_a_run_whose_agents_were_silent_names_retry_for_their_failed_turns_are_recorded(
    home: Path, env: dict[str, str]
) -> None:
    (home / "s.yaml").write_text("replies: [{times: 0, error: {kind: blocked}}]\n")
    drop_command(home, command())
    assert run_cli("run", "--once", "--model", "scripted:s.yaml", cwd=home, env=env).returncode == 1
    [failed] = receipts(home)
    assert failed["error"]["code"] == "council_silent"
    assert f"`council retry {failed['run_id']}`" in failed["error"]["fix"]
    assert f"`council retry {failed['run_id']}`" in (home / "artifacts" / "out.md").read_text()
    for named in ((), ("--model", "offline")):
        refused = run_cli("resume", "last", *named, cwd=home, env=env)
        assert refused.returncode == 2
        assert "\nerror (command_invalid): " in f"\n{refused.stderr}"
        assert failed["error"]["fix"] in refused.stderr
    assert [each["run_id"] for each in receipts(home)] == [failed["run_id"]]
    assert not unfinished(home)


def test_a_run_that_waits_is_given_no_other_model(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: error(429, "RESOURCE_EXHAUSTED", retry_after=3600)
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 75
    refused = run_cli("resume", "last", "--model", "offline", cwd=home, env=env)
    assert refused.returncode == 2
    assert "has not ended, so it keeps its model" in refused.stderr


def test_a_run_that_succeeded_or_never_was_cannot_be_resumed(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    for run_id, said in (
        (receipt["run_id"], "has already ended (succeeded)"),
        ("20260101-000000-nowhere0", "not known here"),
    ):
        drop_command(home, {"type": "resume", "run": run_id}, f"{run_id}.json")
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 2
        assert said in (home / "commands" / "failed" / f"{run_id}.json.error.md").read_text()
