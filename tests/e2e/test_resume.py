"""A run that failed, was cancelled, or waits goes on at its first step that is not recorded."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import Daemon, command, drop_command, receipts, run_cli, withdrawn_receipts


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


def test_a_run_whose_persona_changed_is_ended_by_drift_only_when_it_would_mix_and_goes_on_when_that_is_accepted(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command(rounds=2))
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="AUDITOR", round=1)
        daemon.kill()
    other = {**env, "COUNCIL_MODEL": "gemini:gemini-2.5-pro"}
    assert run_cli("run", "--once", cwd=home, env=other).returncode == 1
    [failed] = receipts(home)
    assert failed["error"]["code"] == "drift"
    assert run_cli("resume", failed["run_id"], cwd=home, env=other).returncode == 2
    assert "ended by drift" in (home / "commands" / "failed" / "resume.json.error.md").read_text()
    run_cli("resume", failed["run_id"], "--accept-drift", cwd=home, env=other)
    assert run_cli("run", "--once", cwd=home, env=other).returncode == 0
    assert "Resumed with accepted drift" in (home / "artifacts" / "out.md").read_text()
    records = json.loads(run_cli("audit", "tail", "--json", cwd=home).stdout)["records"]
    kinds = [(record["kind"], record["action"]) for record in records]
    assert kinds == [("effect", "run_ended"), ("approval", "drift_accepted"), ("effect", "run_ended")]


def test_a_run_that_succeeded_or_never_was_cannot_be_resumed(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    for run_id, said in ((receipt["run_id"], "ended succeeded"), ("20260101-000000-nowhere0", "not known here")):
        drop_command(home, {"type": "resume", "run": run_id}, f"{run_id}.json")
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 2
        assert said in (home / "commands" / "failed" / f"{run_id}.json.error.md").read_text()
