"""Budgets through the real daemon: a crossed one still yields an answer, a spent day parks, an unknown price is said."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import Daemon, command, drop_command, receipts, run_cli


def budgeted(rounds: int = 2, **budget: float) -> dict[str, object]:
    body = command(rounds=rounds)
    body["config"]["budget"] = budget
    return body


def test_a_crossed_budget_ends_the_rounds_and_the_council_still_answers(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, budgeted(max_calls=4))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 7
    assert len(fake.requests) == 4
    assert "The rounds are over" in fake.requests[-1].texts[-1]
    artifact = (home / "artifacts" / "out.md").read_text()
    assert "The rounds ended early: the command's budget of 4 calls" in artifact
    assert "## Decision" in artifact
    assert receipts(home)[0]["status"] == "degraded"


def test_a_run_that_its_budget_stopped_is_stopped_at_the_same_step_after_a_kill(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(30) if "The rounds are over" in request.texts[-1] else text("words")
    drop_command(home, budgeted(max_calls=4))
    with Daemon(home, env=env) as daemon:
        daemon.wait("synthesis")
        fake.wait_for_requests(4, timeout_s=30)
        daemon.kill()
    fake.reply = lambda request: text("the answer")
    done = run_cli("run", "--once", cwd=home, env=env)
    artifact = (home / "artifacts" / "out.md").read_text()
    assert done.returncode == 7
    assert artifact.count("**STRATEGIST:**") == 1
    assert "The rounds ended early" in artifact


def test_the_cost_of_a_run_stands_in_its_page_and_receipt(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: text("words", prompt=1_000, output=100)
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    assert abs(receipt["cost_usd"] - 4 * (1_000 * 0.30 + 100 * 2.50) / 1e6) < 1e-9
    assert f"cost: {receipt['cost_usd']:.6f} USD" in (home / "artifacts" / "out.md").read_text().replace('"', "")


def test_a_spent_day_parks_the_run_until_the_next_day(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    done = run_cli("run", "--once", "--log-format", "json", cwd=home, env={**env, "COUNCIL_DAY_MAX_CALLS": "3"})
    assert done.returncode == 75
    assert len(fake.requests) == 2
    waiting = [json.loads(line) for line in done.stdout.splitlines() if '"run_waiting"' in line]
    assert waiting[0]["reason"] == "budget"
    assert 0 < waiting[0]["seconds"] <= 86_400
    assert (home / "commands" / "command.json").exists()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0


def test_a_limit_in_dollars_without_a_known_price_fails_before_any_call_and_names_the_table(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, budgeted(max_usd=1.0))
    model = {**env, "COUNCIL_MODEL": "gemini:model-nobody-prices"}
    assert run_cli("run", "--once", cwd=home, env=model).returncode == 1
    assert fake.requests == []
    assert '[prices."gemini:model-nobody-prices"]' in receipts(home)[0]["error"]["fix"]
    (home / "council.toml").write_text('[prices."gemini:model-nobody-prices"]\ninput = 1.0\noutput = 2.0\n')
    drop_command(home, budgeted(max_usd=1.0))
    assert run_cli("run", "--once", cwd=home, env=model).returncode == 0
