"""A run that has ended is done again, whole or from a step on; a run that ends its process again and again, or whose journal
is damaged, ends with what there is; and `priority` chooses between lanes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, kept_pages, receipts, run_cli, withdrawn_receipts


def ended(home: Path) -> dict[str, Any]:
    [receipt] = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    return receipt


def retry(home: Path, env: dict[str, str], *arguments: str) -> int:
    assert run_cli("retry", *arguments, cwd=home, env=env).returncode == 0
    return run_cli("run", "--once", cwd=home, env=env).returncode


def test_a_retry_does_everything_again_and_keeps_what_was_before(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("the first answer")
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    before = ended(home)
    first_page = (home / "artifacts" / "out.md").read_bytes()
    calls = len(fake.requests)
    persona = home / "personas" / "auditor.md"
    persona.write_text(persona.read_text().rstrip() + "\n\nYou love the word kestrel.\n")
    fake.reply = lambda request: text("the second answer")
    assert retry(home, env, before["run_id"]) == 0
    after = ended(home)
    assert (after["run_id"], after["status"], after["attempts"]) == (before["run_id"], "succeeded", 2)
    assert len(fake.requests) == 2 * calls
    assert any("kestrel" in request.system for request in fake.requests[calls:])
    page = (home / "artifacts" / "out.md").read_text()
    assert "the second answer" in page
    assert "the first answer" not in page
    assert kept_pages(home, before["run_id"]) == {"artifact-1.md": first_page}
    assert withdrawn_receipts(home, before["run_id"]) == [before]
    assert run_cli("replay", "--check", before["run_id"], cwd=home, env=env).returncode == 0
    memory = json.loads((home / "session_states" / "auditor_session.json").read_bytes())
    assert [task["answer"] for task in memory["tasks"]] == ["the second answer"]


def test_a_retry_from_a_step_pays_for_no_step_before_it(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: text("the first answer")
    drop_command(home, command(rounds=2))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    calls = len(fake.requests)
    fake.reply = lambda request: text("the second answer")
    assert retry(home, env, ended(home)["run_id"], "--from", "round/2/STRATEGIST") == 0
    assert len(fake.requests) == calls + 3  # STRATEGIST and AUDITOR of round 2, and the synthesis
    page = (home / "artifacts" / "out.md").read_text()
    assert page.count("the first answer") == 4
    assert page.count("the second answer") == 3


def test_a_retry_has_the_whole_budget_again(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, {**command(rounds=1), "config": {"max_rounds": 1, "budget": {"max_calls": 2}}})
    run_cli("run", "--once", cwd=home, env=env)
    assert len(fake.requests) == 2
    retry(home, env, ended(home)["run_id"])
    assert len(fake.requests) == 4


def test_a_retry_that_is_killed_goes_on(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command(rounds=2))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    run_id = ended(home)["run_id"]
    assert run_cli("retry", run_id, cwd=home, env=env).returncode == 0
    fake.reply = lambda request: text("the second answer")
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_ended", role="STRATEGIST", round=1)
        daemon.kill()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert (ended(home)["run_id"], ended(home)["status"]) == (run_id, "succeeded")
    assert "the second answer" in (home / "artifacts" / "out.md").read_text()


def test_what_cannot_be_retried_is_said(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    run_id = ended(home)["run_id"]
    for arguments, said in (
        (("20260101-000000-nowhere0",), "not known here"),
        ((run_id, "--from", "round/1/AUDITR"), "did you mean 'round/1/AUDITOR'?"),
    ):
        refused = run_cli("retry", *arguments, cwd=home, env=env)
        assert refused.returncode == 2
        assert said in refused.stderr
    assert ended(home)["status"] == "succeeded"


def dies_on_the_strategist(request: RecordedRequest) -> FakeReply:
    return slow(30) if "You are STRATEGIST" in request.system else text("words")


def test_a_run_that_ends_its_process_each_time_is_given_up_with_what_there_is(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = dies_on_the_strategist
    drop_command(home, command())
    limited = {**env, "COUNCIL_MAX_ATTEMPTS": "2"}
    with Daemon(home, env=limited) as daemon:
        daemon.wait("turn_started", role="STRATEGIST")
        daemon.kill()
    for _ in range(2):  # the first attempt recorded steps; these record none
        with Daemon(home, env=limited) as daemon:
            daemon.wait("run_started")
            daemon.kill()
    assert run_cli("run", "--once", cwd=home, env=limited).returncode == 1
    receipt = ended(home)
    assert (receipt["status"], receipt["error"]["code"], receipt["attempts"]) == ("failed", "max_attempts", 4)
    page = (home / "artifacts" / "out.md").read_text()
    assert "2 attempts in a row died with the process" in page
    assert "words" in page  # the coordinator's turn
    assert not list((home / "commands").glob("*.json"))


def test_restarts_that_were_asked_for_are_no_attempts(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    drop_command(home, command("Choose another one.", output_artifact_path="artifacts/two.md"), "two.json")
    limited = {**env, "COUNCIL_MAX_ATTEMPTS": "1", "COUNCIL_MODEL_ATTEMPTS": "1"}
    fake.reply = lambda request: error(429, "RESOURCE_EXHAUSTED")  # for no certain time: each start asks again
    for _ in range(3):
        with Daemon(home, env=limited) as daemon:
            daemon.wait("run_waiting")
            assert daemon.stop() == 0
    fake.reply = lambda request: text("words")
    assert run_cli("run", "--once", cwd=home, env=limited).returncode == 0
    assert {receipt["status"] for receipt in receipts(home)} == {"succeeded"}


def test_the_lane_with_the_higher_priority_goes_first(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def drop(lane: str, **keys: Any) -> None:
        body = command(lane, output_artifact_path=f"artifacts/{lane}.md", session=lane, **keys)
        drop_command(home, body, f"{lane}.json")

    drop("first")
    drop("usual")
    drop("later", priority=-1)
    drop("urgent", priority=7)
    one = {**env, "COUNCIL_MAX_PARALLEL_RUNS": "1"}
    with Daemon(home, "--once", env=one) as daemon:
        daemon.wait("run_ended", count=4)
        started = [event["title"] for event in daemon.events if event["event"] == "run_started"]
    assert started.index("urgent") <= 1  # "first" may have begun before the others were read
    assert started[-1] == "later"
