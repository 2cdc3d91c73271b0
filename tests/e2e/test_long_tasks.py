"""A task whose transcript outgrows the model's context, through the real daemon with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from council.app import build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.llm.base import Message, Reply
from council.llm.scripted import ScriptedModel
from council.settings import Home, load_provider_keys, load_settings
from tests.harness import Daemon, calibrate, command, drop_command, make_home, receipts, run_cli

CONTEXT_TOKENS = 12_000
CHARS_PER_TOKEN = 3  # what is assumed before anything is measured
OUTPUT_TOKENS = 2_000
ROUNDS = 9


def long_home(folder: Path, *, delay_s: float = 0.0) -> Path:
    """A home whose council reads a file in each round, with a context of twelve thousand tokens."""
    home = make_home(folder, settings=f'model = "scripted:script.yaml"\nmax_output_tokens = {OUTPUT_TOKENS}\n')
    for number in range(1, ROUNDS + 1):
        (home / f"f{number}.md").write_text("".join(f"line {line} of file {number}\n" for line in range(60)))
    write_script(home, delay_s)
    return home


def write_script(home: Path, delay_s: float) -> None:
    asking = [
        {
            "role": "STRATEGIST",
            "round": number,
            "purpose": "turn",
            "text": f"I need file {number} now.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(f{number}.md)]",
        }
        for number in range(1, ROUNDS + 1)
    ]
    slow = {"role": "AUDITOR", "round": ROUNDS, "purpose": "turn", "text": "Slowly said.", "delay_s": delay_s}
    default = {"text": "This is my position as it stands. " + "And there is more to say about it. " * 20}
    script = {"context_tokens": CONTEXT_TOKENS, "replies": [slow, *asking], "default": default}
    (home / "script.yaml").write_text(yaml.safe_dump(script))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every request that reached the model, as one text."""
    requests: list[str] = []
    generate = ScriptedModel.generate

    async def recording(model: ScriptedModel, messages: Sequence[Message], **keys: Any) -> Reply:
        requests.append("\n".join([keys["system"], *(message.text for message in messages)]))
        return await generate(model, messages, **keys)

    monkeypatch.setattr(ScriptedModel, "generate", recording)
    return requests


def test_no_request_exceeds_the_window_and_the_evidence_stays_named(tmp_path: Path, asked: list[str]) -> None:
    home = Home(long_home(tmp_path / "home"))
    drop_command(home.root, command(rounds=ROUNDS))
    settings = load_settings(home, flags={}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house())
    asyncio.run(Service(app, once=True).run())
    assert receipts(home.root)[0]["status"] == "succeeded"
    assert len(asked) == 3 * ROUNDS + 1
    for request in asked:
        assert len(request) / CHARS_PER_TOKEN + OUTPUT_TOKENS <= CONTEXT_TOKENS
    closing = asked[-1]
    assert "line 3 of file 1\n" not in closing
    assert f"line 3 of file {ROUNDS}\n" in closing
    assert all(f"E{number}: `f{number}.md` lines 1-60 of 60" in closing for number in range(1, 4))
    assert all(f"E{number}" in closing for number in range(1, ROUNDS + 1))
    assert "Round 1, AUDITOR: This is my position as it stands." in closing


def test_a_run_that_has_folded_goes_on_after_a_kill_with_the_same_requests(tmp_path: Path) -> None:
    home = long_home(tmp_path / "home", delay_s=100.0)
    drop_command(home, command(rounds=ROUNDS))
    with Daemon(home) as daemon:
        daemon.wait("turn_started", role="AUDITOR", round=ROUNDS)
        daemon.kill()
    write_script(home, 0.0)
    calibrate(home, {"scripted:script": 8.0})
    assert run_cli("run", "--once", cwd=home).returncode == 0
    [receipt] = receipts(home)
    assert (receipt["status"], receipt["rounds"]) == ("succeeded", ROUNDS)
    assert run_cli("replay", "last", "--check", cwd=home).returncode == 0


def test_a_council_without_names_stays_without_names_when_it_folds(tmp_path: Path, asked: list[str]) -> None:
    home = Home(long_home(tmp_path / "home"))
    drop_command(home.root, command(config={"max_rounds": ROUNDS, "protocol": "independent", "early_stop": False}))
    settings = load_settings(home, flags={}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house())
    asyncio.run(Service(app, once=True).run())
    assert receipts(home.root)[0]["status"] == "succeeded"
    assert all(len(request) / CHARS_PER_TOKEN + OUTPUT_TOKENS <= CONTEXT_TOKENS for request in asked)
    closing = asked[-1].split("# The deliberation so far", 1)[1].split("The rounds are over", 1)[0]
    assert "Rounds before, folded" in closing
    assert {line[:18] for line in closing.splitlines() if line.startswith("Round 1, ")} == {
        f"Round 1, Member {letter}:"[:18] for letter in "ABC"
    }
    assert not any(role in closing for role in ("COORDINATOR", "STRATEGIST", "AUDITOR"))
