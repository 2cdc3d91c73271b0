"""`kill -9` before each record of a creation and of a use: nothing is done twice that counts, and no request is sent twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from council.ids import STEWARD
from tests.apprentices import CODE, SPEC, registered
from tests.creating import WISH, CreationMind
from tests.fake_gemini import FakeGemini
from tests.harness import FAULTY, drop_command, faulty_environment, make_home, opened, receipts, rows_of, run_cli
from tests.outside import OutsideHost

WAITING, KILLED = 75, -9
OTHER_CASES = {f"training/{number}" for number in range(2, 8)} | {f"alone/{number}" for number in range(2, 5)}
SETTINGS = "settle_s = 0.5\nscan_interval_s = 0.5\nmax_attempts = 100\n"  # steps that nobody waits for are recorded with the next


def live(home: Path, fake: FakeGemini, fault: str = "count", **extra: str) -> int:
    """One life of the real process; its exit code."""
    env = faulty_environment(
        GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url, COUNCIL_TEST_FAULT=fault, **extra
    )
    return run_cli("run", "--once", "--log-format", "json", cwd=home, env=env, module=FAULTY).returncode


def decide(home: Path, verb: str) -> None:
    [(plan,)] = rows_of(home, "SELECT plan_id FROM plans")
    drop_command(home, {"type": verb, "plan": plan}, f"{verb}.json")


def steps_of(home: Path) -> list[str]:
    return [name for (name,) in rows_of(home, "SELECT name FROM steps WHERE run = 1 AND kind = 'done' ORDER BY seq")]


def created(home: Path, fake: FakeGemini) -> None:
    """A home in which a specialist was made without a kill."""
    drop_command(home, {"type": "create_specialist", "request": WISH})
    assert live(home, fake) == WAITING
    decide(home, "confirm")
    assert live(home, fake) == WAITING
    decide(home, "apply")
    assert live(home, fake) == 0


def test_a_kill_before_any_record_of_a_creation_costs_one_call_at_most(tmp_path: Path, fake: FakeGemini) -> None:
    mind = fake.reply = CreationMind()
    calm, killed = (make_home(tmp_path / name, settings=SETTINGS) for name in ("calm", "killed"))
    created(calm, fake)
    names = [name for name in steps_of(calm) if name not in ("finish", "audit_head")]
    asked = Counter(map(str, mind.heard))
    assert {"interview", "design/1", "tests/1/hidden", "plan", "approved", "training/8", "health", "registered"} <= set(
        names
    )
    assert set(asked.values()) == {1}

    # One case of a kind is as another; each call that was in flight when a kill came is made again.
    instants = [name for name in names if name not in OTHER_CASES]
    again = {"interview", "design/1", "tests/1/visible", "tests/1/hidden", "alone/1"}
    mind.heard.clear()
    drop_command(killed, {"type": "create_specialist", "request": WISH})
    for name in instants:
        if name == "approved":
            assert live(killed, fake) == WAITING
            decide(killed, "confirm")
            assert live(killed, fake) == WAITING
            decide(killed, "apply")
        assert live(killed, fake, f"kill-at:1: done {name} ") == KILLED, name
    assert live(killed, fake) == 0
    assert steps_of(killed) == steps_of(calm)
    assert len(mind.heard) == asked.total() + len(again)
    for home in (calm, killed):
        [made] = [one for one in receipts(home) if one["type"] == "create_specialist"]
        assert made["status"] == "succeeded"
        assert [tuple(row) for row in rows_of(home, "SELECT role, version FROM dynamic_agents")] == [
            ("email_validator", 1)
        ]
        assert [tuple(row) for row in rows_of(home, "SELECT COUNT(*), SUM(success) FROM task_telemetry")] == [(8, 8)]
        assert [row[0] for row in rows_of(home, "SELECT state FROM specialist_approvals_view")] == ["completed"]
        env = faulty_environment(COUNCIL_TEST_FAULT="count")
        assert run_cli("audit", "verify", cwd=home, env=env, module=FAULTY).returncode == 0
        replayed = run_cli("replay", made["run_id"], cwd=home, env=env, module=FAULTY)
        assert replayed.stdout == (home / made["artifact"]["path"]).read_text()


def test_a_kill_before_any_record_of_a_use_counts_it_once_and_sends_its_request_once(
    tmp_path: Path, fake: FakeGemini
) -> None:
    calls, host_name = [{"name": "look", "parameters": {"q": "sofia"}}], "api.sms.example"
    mind = fake.reply = CreationMind(input=lambda prompt: {"input": {"email": "ada@sofia.example"}, "requests": calls})
    look = {"name": "look", "method": "GET", "url": f"https://{host_name}/look?q={{q}}", "parameters": [{"name": "q"}]}
    code = CODE.replace("run(input)", "run(input, replies)")
    spec = msgspec.convert({**msgspec.to_builtins(SPEC), "code": code, "requests": [look]}, type(SPEC))
    calm, killed, unsure = (make_home(tmp_path / name, settings=SETTINGS) for name in ("calm", "killed", "unsure"))
    uses = "SELECT success, error FROM task_telemetry WHERE kind = 'use'"
    for home in (calm, killed, unsure):
        with opened(home) as store:
            registered(store, STEWARD.id, spec=spec)
        drop_command(home, {"type": "ask", "request": "@email_validator is ada@sofia.example valid? Look for Sofia."})
    with OutsideHost(tmp_path, [host_name]) as host:
        env = host.environment(host_name)
        assert live(calm, fake, **env) == 0
        names = [name for name in steps_of(calm) if name not in ("finish", "audit_head")]
        [sending] = [name for name in names if name.endswith("/request/1") and "/standing/" not in name]
        assert {name.rpartition("/")[2] for name in names} >= {"input", "output", "telemetry"}
        for name in names:
            if name != sending:
                assert live(killed, fake, f"kill-at:1: done {name} ", **env) == KILLED, name
        assert live(killed, fake, **env) == 0
        assert steps_of(killed) == steps_of(calm)
        assert len(host.requests) == 2
        for home in (calm, killed):
            assert [tuple(row) for row in rows_of(home, uses)] == [(1, "")]
            assert [one["status"] for one in receipts(home)] == ["succeeded"]

        assert live(unsure, fake, f"kill-at:1: done {sending} ", **env) == KILLED
        assert live(unsure, fake, **env) != KILLED
        assert len(host.requests) == 3
    [(success, error)] = rows_of(unsure, uses)
    assert success == 0
    assert "nobody knows whether it arrived" in error
    assert [one["status"] for one in receipts(unsure)] == ["degraded"]
    assert mind.otherwise.unforeseen == []
