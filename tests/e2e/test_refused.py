"""A call whose failure ends its run was made: the page and the receipt count it and say whose it was, and a resumed run asks
it again without counting it twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import command, drop_command, receipts, run_cli

NO_KEY = error(400, "API_KEY_INVALID", message="API key not valid")
NO_CREDIT = error(429, message="Your prepayment credits are depleted.")


def left_by(home: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The receipt, the front matter and the page, which a replay must give byte for byte."""
    check = run_cli("replay", "last", "--check", cwd=home)
    assert check.returncode == 0, check.stdout + check.stderr
    content = (home / "artifacts" / "out.md").read_text()
    [receipt] = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    return receipt, yaml.safe_load(content.split("---\n")[1]), content


def concerns(request: RecordedRequest, whom: str) -> bool:
    closing = "The rounds are over" in request.texts[-1]
    return closing if whom == "closing" else not closing and f"You are {whom}" in request.system


@pytest.mark.parametrize(
    ("whom", "protocol", "whose"),
    [
        ("COORDINATOR", "triad", "the call of COORDINATOR in round 1"),
        ("AUDITOR", "triad", "the call of AUDITOR in round 1"),
        ("STRATEGIST", "independent", "the call of STRATEGIST in round 1"),
        ("closing", "triad", "the closing call of COORDINATOR"),
    ],
)
def test_the_call_that_ended_the_run_is_counted_and_named(
    home: Path, fake: FakeGemini, env: dict[str, str], whom: str, protocol: str, whose: str
) -> None:
    fake.reply = lambda request: NO_CREDIT if concerns(request, whom) else text("Use the disk.")
    drop_command(home, command(config={"max_rounds": 1, "protocol": protocol}))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    receipt, front, content = left_by(home)
    assert receipt["error"]["code"] == "model_billing"
    assert receipt["calls"] == len(fake.requests)
    assert (receipt["tokens"]["unknown_calls"], front["cost"]) == (1, "unknown")
    assert f"It ended with {whose}." in content
    told = json.loads(run_cli("explain", "last", "--json", cwd=home).stdout)
    assert (told["calls_counted"], told["missing"]) == (receipt["calls"], [])
    [failed] = [call for call in told["calls"] if call["failure"]]
    assert (failed["failure"], failed["seconds"] > 0) == ("billing", True)
    shown = " ".join(run_cli("explain", "last", cwd=home).stdout.split())
    assert "failed (billing)" in shown
    assert shown.count(failed["message"]) == 1


def test_a_resumed_run_counts_each_question_once(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    replies: list[FakeReply] = [NO_KEY, NO_CREDIT]
    fake.reply = lambda request: replies.pop(0) if replies and concerns(request, "STRATEGIST") else text("Use it.")
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    run_id = receipts(home)[0]["run_id"]
    run_cli("resume", run_id, cwd=home, env=env)
    run_cli("run", "--once", cwd=home, env=env)
    receipt, _, content = left_by(home)
    assert (receipt["error"]["code"], receipt["calls"]) == ("model_billing", 2)
    assert content.count("It ended with") == 1
    run_cli("resume", run_id, cwd=home, env=env)
    run_cli("run", "--once", cwd=home, env=env)
    receipt, _, content = left_by(home)
    assert (receipt["status"], receipt["calls"], len(fake.requests)) == ("succeeded", 4, 6)
    assert (receipt["tokens"]["input"], receipt["cost_usd"] > 0, "It ended with" in content) == (4 * 12, True, False)
    told = json.loads(run_cli("explain", "last", "--json", cwd=home).stdout)
    assert [step["outcome"] for step in told["steps"] if step["name"] == "round/1/STRATEGIST"] == [
        "refused",
        "refused",
        "done",
    ]


def test_on_a_cassette_the_run_ends_with_the_same_call(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: NO_KEY if concerns(request, "AUDITOR") else text("Use the disk.")
    drop_command(home, command())
    run_cli("run", "--once", cwd=home, env=env)
    assert run_cli("cassette", "last", "-o", "a.cassette.jsonl", cwd=home).returncode == 0
    drop_command(home, command(session="again", output_artifact_path="artifacts/again.md"))
    again = run_cli("run", "--once", "--model", "cassette:a.cassette.jsonl", cwd=home)
    assert again.returncode == 1
    replayed = (home / "artifacts" / "again.md").read_text()
    assert [receipt["calls"] for receipt in receipts(home)] == [3, 3]
    assert "It ended with the call of AUDITOR in round 1." in replayed
    assert len(fake.requests) == 3
    runs = [receipt["run_id"] for receipt in receipts(home)]
    assert "The runs do not differ" in run_cli("diff", *runs, cwd=home).stdout
