"""A run whose words are not judged in time: its decision stands, nothing of it is remembered, and the page says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from council.app import build_app
from council.daemon.service import Service
from council.deliberation import members
from council.deliberation.deliberate_admission import TRIAD
from council.desk.all_systems import house
from council.settings import Home, load_provider_keys, load_settings
from tests.harness import command, drop_command, make_home, receipts, run_cli

WORDS = "The disk is the right place for it. " * 200  # three members say more than is judged at once


@pytest.mark.parametrize(("mode", "done"), [("on", "blocked"), ("warn", "warns")])
def test_words_that_are_not_judged_in_time_are_not_remembered_and_the_decision_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, done: str
) -> None:
    root = make_home(tmp_path / "home", settings=f'model = "scripted:script.yaml"\nguardrails = "{mode}"\n')
    turns = [f'{{role: {role}, times: 0, text: "{role}: {WORDS}"}}' for role in TRIAD]
    replies = ", ".join(['{purpose: synthesis, times: 0, text: "Use the disk."}', *turns])
    (root / "script.yaml").write_text(f"replies: [{replies}]\n")
    drop_command(root, command())
    home = Home(root)
    settings = load_settings(home, flags={}, environ={}).settings
    app = build_app(home, settings, load_provider_keys(home, {}), environ={}, systems=house())
    assert members.DEADLINE_S > 0  # the time of what is read at the start is its own
    monkeypatch.setattr("council.deadline.DEADLINE_S", 0)
    asyncio.run(Service(app, once=True).run())
    [receipt] = receipts(root)
    page = (root / "artifacts" / "out.md").read_text()
    memory = (root / "session_states" / "auditor_session.json").read_text()
    assert receipt["status"] == "succeeded"
    assert "Use the disk." in page
    assert f"**Guardrail {done}** (memory, `took_too_long`)" in page
    assert "judging what is remembered took longer than 0 s" in page
    assert ("(withheld by a guardrail: judging what is remembered took longer than 0 s)" in memory) == (mode == "on")
    assert (f"AUDITOR: {WORDS[:30]}" in memory) == (mode == "warn")
    assert run_cli("replay", "last", "--check", cwd=root).returncode == 0
