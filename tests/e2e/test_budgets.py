"""Budgets through the real daemon: a crossed one still yields an answer, a spent day parks, an unknown price is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_gemini import FakeGemini, slow, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    faulty_environment,
    receipts,
    run_cli,
    run_ids,
    scripted_home,
    settled,
    wait_until,
)


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
    assert "cost: 0.0022 USD" in (home / "artifacts" / "out.md").read_text().replace('"', "")


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


def test_the_price_of_whoever_speaks_last_is_asked_for_before_anybody_speaks(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text('[agent_models]\nAUDITOR = "gemini:model-nobody-prices"\n')
    drop_command(home, budgeted(max_usd=1.0))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    assert fake.requests == []
    assert '[prices."gemini:model-nobody-prices"]' in receipts(home)[0]["error"]["fix"]


# ── with a scripted model, whose calls are noted ─────────────────────────────────────────────────────────────────────


SETTINGS = """\
model = "scripted:script.yaml"
settle_s = 0.5
scan_interval_s = 0.2
storage_retry_s = 0.1
"""


def scripted(folder: Path, script: str, settings: str = "") -> Path:
    return scripted_home(folder / "home", SETTINGS + settings, script)


def noted(home: Path, **extra: str) -> dict[str, str]:
    return faulty_environment(COUNCIL_TEST_CALLS=str(home.parent / "calls"), **extra)


def calls(home: Path) -> list[str]:
    """Each call that began: purpose and role."""
    lines = [line.split("\t") for line in (home.parent / "calls").read_text().splitlines()]
    return [f"{line[2]} {line[4]}" for line in lines if line[0] == "begin"]


def once(home: Path, **extra: str) -> int:
    return run_cli("run", "--once", cwd=home, env=noted(home, **extra), module=FAULTY).returncode


def page(home: Path) -> str:
    return (home / "artifacts" / "out.md").read_text()


IN_TURN = ["turn COORDINATOR", "turn STRATEGIST", "turn AUDITOR", "synthesis COORDINATOR"]


@pytest.mark.parametrize("place", ["1", "2"], ids=["the run's log", "the day's log"])
@pytest.mark.parametrize("entry", ["begin", "end"])
def test_a_disk_that_takes_no_note_of_a_call_loses_no_reply_and_asks_nobody_twice(
    tmp_path: Path, entry: str, place: str
) -> None:
    home = scripted(tmp_path, 'default: {text: "So be it."}\n')
    drop_command(home, budgeted(1, max_calls=4))
    fault = f'fail-at:{place}:ENOSPC:{{"t":"{entry}","call"'
    with Daemon(home, env=noted(home, COUNCIL_TEST_FAULT=fault), module=FAULTY) as daemon:
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
    assert calls(home) == IN_TURN
    assert receipts(home)[0]["calls"] == 4


def test_a_call_that_a_pause_forbade_is_charged_to_nobody(tmp_path: Path) -> None:
    busy = '{kind: rate, message: "come back later", retry_after_s: 2}'
    script = f"replies:\n  - {{role: COORDINATOR, purpose: turn, times: 4, error: {busy}}}\n"
    settings = "max_parallel_runs = 2\nmax_inline_wait_s = 1\nmodel_attempts = 1\n"
    home = scripted(tmp_path, script + 'default: {text: "So be it."}\n', settings)
    for number in range(6):
        body = {
            **budgeted(1, max_calls=8),
            "session": f"lane{number}",
            "output_artifact_path": f"artifacts/{number}.md",
        }
        drop_command(home, body, f"{number}.json")
    with Daemon(home, env=noted(home), module=FAULTY) as daemon:
        daemon.wait("run_ended", count=6)
        assert daemon.stop() == 0
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * 6
    assert sum(len(settled(home, run_id)) for run_id in run_ids(home)) == len(calls(home))
    assert any("asked to wait" in event.get("error", "") for event in daemon.events)  # one was refused without a call


def test_a_council_whose_time_is_up_still_answers(tmp_path: Path) -> None:
    home = scripted(
        tmp_path, 'replies:\n  - {purpose: turn, times: 0, text: "Words.", delay_s: 60}\ndefault: {text: "So be it."}\n'
    )
    drop_command(home, budgeted(2, max_seconds=1))
    assert once(home) == 7
    assert calls(home) == ["turn COORDINATOR", "synthesis COORDINATOR"]  # the first was cut off
    assert "The rounds ended early: the command's budget of 1 s does not allow another call" in page(home)
    assert "## Answer" in page(home)  # of the chair alone: nobody had spoken
    assert "So be it." in page(home)


def test_a_pause_between_two_attempts_counts_as_time_of_the_run(tmp_path: Path) -> None:
    replies = """\
replies:
  - {role: AUDITOR, purpose: turn, error: {kind: server, message: "once more"}}
default: {text: "So be it."}
"""
    home = scripted(tmp_path, replies)
    drop_command(home, budgeted(1))
    assert once(home) == 0
    [run_id] = run_ids(home)
    assert sum(call["seconds"] for call in settled(home, run_id)) > 1.0  # the pause is a second


def test_a_day_has_its_seconds_too(tmp_path: Path) -> None:
    home = scripted(tmp_path, 'default: {text: "So be it.", delay_s: 0.6}\n')
    drop_command(home, command())
    assert once(home, COUNCIL_DAY_MAX_SECONDS="1") == 75
    assert calls(home) == IN_TURN[:2]
    assert once(home, COUNCIL_DAY_MAX_SECONDS="60") == 0


def test_a_day_whose_budget_is_too_small_for_a_call_is_not_waited_for(tmp_path: Path) -> None:
    home = scripted(tmp_path, 'default: {text: "So be it."}\n')
    drop_command(home, command())
    assert once(home, COUNCIL_DAY_MAX_TOKENS="15000") == 7
    assert "the day's budget of 15000 tokens is less than this call may need" in page(home)
    assert "kept for the closing call" in page(home)


def test_what_a_spent_day_says_names_its_setting(tmp_path: Path) -> None:
    home = scripted(tmp_path, 'default: {text: "So be it."}\n')
    drop_command(home, command())
    done = run_cli("run", "--once", cwd=home, env=noted(home, COUNCIL_DAY_MAX_CALLS="3"), module=FAULTY)
    [waiting] = [json.loads(line) for line in done.stdout.splitlines() if '"run_waiting"' in line]
    assert "(2 spent or reserved, 1 kept for the closing call)" in waiting["error"]
    assert len(calls(home)) == 2


def test_a_call_of_unknown_price_does_not_open_the_day_to_all_others(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("words", prompt=10_000, output=10_000)  # 0.028 USD
    drop_command(home, command())
    unpriced = {**env, "COUNCIL_MODEL": "gemini:model-nobody-prices"}
    assert run_cli("run", "--once", cwd=home, env=unpriced).returncode == 0
    made = len(fake.requests)
    for number in range(3):
        drop_command(home, command(output_artifact_path=f"artifacts/{number}.md"), f"{number}.json")
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_DAY_MAX_USD": "0.15"}).returncode == 75
    assert len(fake.requests) - made <= 5


def test_a_closing_call_that_a_kill_cut_off_is_made_with_what_was_set_aside_for_it(tmp_path: Path) -> None:
    home = scripted(
        tmp_path, 'replies:\n  - {purpose: synthesis, text: "So be it.", delay_s: 60}\ndefault: {text: "Words."}\n'
    )
    drop_command(home, budgeted(2, max_calls=4))
    with Daemon(home, env=noted(home), module=FAULTY) as daemon:
        daemon.wait("synthesis")
        wait_for_calls(home, 4)
        daemon.kill()
    (home / "script.yaml").write_text('default: {text: "So be it."}\n')
    assert once(home) == 7
    assert "## Decision" in page(home)
    assert calls(home)[3:] == ["synthesis COORDINATOR"] * 2


def wait_for_calls(home: Path, count: int) -> None:
    wait_until(lambda: len(calls(home)) >= count, f"{count} calls")


def test_the_closing_call_is_kept_room_for_however_long_the_rounds_become(tmp_path: Path) -> None:
    words = "The archive grows by one figure. " * 100
    script = f'replies:\n  - {{purpose: turn, times: 0, text: "{words}"}}\n'
    home = scripted(tmp_path, script + 'default: {text: "So be it."}\n', "max_output_tokens = 1000\n")
    for tokens in (20_000, 40_000, 60_000):
        drop_command(home, budgeted(10, max_tokens=tokens))
        assert once(home) == 7
        assert "The rounds ended early" in page(home)
        assert "## Decision" in page(home)


def test_an_offline_run_is_charged_no_tokens_and_one_that_nobody_counted_all_that_it_reserved(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command(rounds=1))
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    charged = json.loads(run_cli("explain", "last", "--json", cwd=home, env=env).stdout)["charged"]
    assert (charged["calls"] > 0, charged["tokens"], charged["cost_usd"]) == (True, 0, 0.0)
    assert "charged to the budget" not in run_cli("explain", "last", cwd=home, env=env).stdout
    fake.reply = lambda request: text("words", counted=False)
    drop_command(home, command(rounds=1))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    charged = json.loads(run_cli("explain", "last", "--json", cwd=home, env=env).stdout)["charged"]
    assert charged["tokens"] >= 8192 * charged["calls"]
    assert charged["cost_usd"] > 0
