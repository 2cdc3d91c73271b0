"""A specialist from the wish to its uses, through the real process: a fake model, the real cage, and each gate on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conducting import material, part, understanding
from tests.creating import EMAIL, HIDDEN, WISH, CreationMind, case
from tests.fake_gemini import FakeGemini
from tests.harness import (
    FAULTY,
    Daemon,
    drop_command,
    execute,
    faulty_environment,
    receipts,
    rows_of,
    run_cli,
    wait_until,
)

PERSONA = """\
---
id: form-teller
role: FORM_TELLER
purpose: Tells the forms that addresses may have in other countries.
scope: task
---
You tell forms.
"""


@dataclass
class House:
    """A home with its daemon, as its people and programs reach it."""

    home: Path
    env: dict[str, str]
    mind: CreationMind
    daemon: Daemon

    def council(self, *arguments: str, code: int = 0) -> str:
        done = run_cli("--home", str(self.home), *arguments, cwd=self.home, env=self.env, module=FAULTY)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def wish(self, request: str = WISH, **keys: Any) -> str:
        """The run of a dropped command."""
        count = len(self.daemon.all("run_started"))
        drop_command(self.home, {"type": "create_specialist", "request": request, **keys})
        return str(self.daemon.wait("run_started", count=count + 1)["run_id"])

    def waiting(self, run: str, reason: str = "answer") -> None:
        wait_until(lambda: self.state(run) in (f"waiting {reason}", "ended"), f"{run} waits")
        assert self.state(run) == f"waiting {reason}", self.receipt(run)

    def state(self, run: str) -> str:
        events = [one for one in self.daemon.events if one.get("run_id") == run]
        last = [one for one in events if one["event"] in ("run_started", "run_waiting", "run_ended")][-1]
        return {"run_started": "running", "run_ended": "ended"}.get(last["event"], f"waiting {last.get('reason')}")

    def approve(self, run: str, *user: str) -> str:
        """Confirms and applies the plan for which a run waits; its id."""
        self.waiting(run)
        plan = self.plan(run)
        self.council("plans", *user, "confirm", plan)
        self.council("plans", *user, "apply", plan)
        return plan

    def plan(self, run: str) -> str:
        return str(rows_of(self.home, "SELECT plan_id FROM plans WHERE run_id = ? ORDER BY plan_id DESC", run)[0][0])

    def approval(self, run: str) -> str:
        """The state of the newest approval of a run."""
        asked = "SELECT state FROM specialist_approvals_view WHERE run_id = ? ORDER BY plan_id DESC"
        return str(rows_of(self.home, asked, run)[0][0])

    def ended(self, run: str) -> tuple[str, str]:
        """Status and error code of a run that ends."""
        self.daemon.wait("run_ended", run_id=run)
        told = self.receipt(run)
        return told["status"], (told.get("error") or {}).get("code", "")

    def receipt(self, run: str) -> dict[str, Any]:
        return next(one for one in receipts(self.home) if one["run_id"] == run)

    def created(self) -> list[tuple[str, str]]:
        return [tuple(row) for row in rows_of(self.home, "SELECT role, created_by FROM dynamic_agents ORDER BY role")]


@pytest.fixture
def house(home: Path, fake: FakeGemini) -> Iterator[House]:
    mind = fake.reply = CreationMind()
    (home / "personas" / "form-teller.md").write_text(PERSONA)
    env = faulty_environment(
        GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url,
        COUNCIL_TEST_FAULT="count",
    )  # fmt: skip
    for user in ("ada", "bob"):
        assert run_cli("users", "add", user, cwd=home, env=env, module=FAULTY).returncode == 0
    with Daemon(home, env=env, module=FAULTY) as daemon:
        daemon.ready()
        yield House(home, env, mind, daemon)
        assert mind.otherwise.unforeseen == []
        assert daemon.stop() == 0


def test_a_wish_to_the_conductor_becomes_a_specialist_of_its_person_alone(house: House, fake: FakeGemini) -> None:
    mind, home = house.mind, house.home
    mind.otherwise.understand = lambda prompt: understanding(
        part(material(prompt, "The request")),
        frequency="frequent",
        complexity="low",
        required_capabilities=["e-mail"],
        should_create_specialist="Make me a specialist" in prompt,
    )
    mind.interview = lambda prompt: {
        "frequency": "frequent",
        "question": "" if "What the person said when asked" in prompt else "Are quoted names allowed?",
    }
    assert "Shall I?" in house.council("ask", "--user", "ada", WISH, code=75)
    assert "I have asked for the specialist." in house.council("ask", "--user", "ada", "yes")
    wait_until(
        lambda: rows_of(home, "SELECT run_id FROM runs WHERE type = 'create_specialist'"), "the command is taken"
    )
    [(run,)] = rows_of(home, "SELECT run_id FROM runs WHERE type = 'create_specialist'")
    house.waiting(run)
    told = house.council("answer", run, "No, they are not.", "--user", "ada", code=75)
    assert "ada has not decided the plan" in told
    plan = house.plan(run)
    shown = house.council("plans", "show", plan)
    for line in (
        "Why: Guardian: APPROVED, risk low", "Validator: VALID.", "code: + import re", '+     address = input["address"]',
        '{"address": "ada.example.org"} → {"valid": false, "reason": "at"}', "hidden cases:", "for ada alone",
    ):  # fmt: skip
        assert line in shown
    assert house.approval(run) == "awaiting_confirmation"
    assert house.created() == []
    for step in ("interview for", "Design the specialist", "visible test cases", "hidden test cases"):
        asked = [one for one in map("\n".join, (each.all_texts for each in fake.requests)) if step in one]
        assert all(WISH in one for one in asked), step
    [hidden] = [one.all_texts for one in fake.requests if "hidden test cases" in one.all_texts[-1]]
    assert "import re" not in "".join(hidden)
    assert EMAIL["dna_rules"][0] not in "".join(hidden)
    designed = ["".join(one.all_texts) for one in fake.requests if "Design the specialist" in one.all_texts[-1]]
    assert not any("a@b@c.org" in one for one in designed)
    assert all("No, they are not." in one and '"complexity": "low"' in one for one in designed)

    house.approve(run, "--user", "ada")
    assert house.ended(run) == ("succeeded", "")
    assert house.approval(run) == "completed"
    assert house.created() == [("email_validator", "ada")]
    figures = "SELECT COUNT(*), SUM(success), MIN(level) FROM task_telemetry WHERE run_id = ? AND kind = 'training'"
    [(cases, passed, level)] = rows_of(home, figures, run)
    assert (cases, passed) == (8, 8)
    assert level in ("L2", "L3")
    [(word,)] = rows_of(home, "SELECT text FROM notifications WHERE user_id = 'ada'")
    assert "Your specialist email_validator, version 1, has passed its training." in word
    page = (home / house.receipt(run)["artifact"]["path"]).read_text()
    assert "- avg_confidence: 1.00." in page
    assert "| 5, hidden |" in page
    assert house.council("replay", run) == page
    assert "training/8" in house.council("explain", run)
    assert not list((home / "personas").glob("*email*"))

    used = house.council("ask", "--user", "ada", "--new", "@email_validator is eve@mail.example.org well formed?")
    assert "**Unverified specialist** email_validator, version 1, made for ada." in used
    assert "- valid: true" in used
    other = house.council("ask", "--user", "bob", "@email_validator is eve@mail.example.org well formed?", code=7)
    assert "there is no agent 'email_validator' here" in other
    assert "plan_applied" in house.council("audit", "tail", "-n", "60")
    house.council("audit", "verify")


def test_each_gate_stops_what_the_others_let_pass(house: House) -> None:
    mind, home = house.mind, house.home
    good = house.wish(user="ada")
    house.approve(good, "--user", "ada")
    assert house.ended(good) == ("succeeded", "")

    def design(**changes: Any) -> None:
        spec = {
            **EMAIL,
            "role": "post_code_teller",
            "purpose": "Names the country that a postal code belongs to.",
            **changes,
        }
        mind.design = lambda prompt: spec

    def refused(code: str, **keys: Any) -> str:
        run = house.wish(user="ada", **keys)
        assert house.ended(run) == ("failed", code)
        assert house.created() == [("email_validator", "ada")]
        return str(house.receipt(run)["error"]["message"])

    design(role="email_validator")
    assert "There is an agent email_validator already." in refused("duplicate")
    design(purpose=EMAIL["purpose"].replace("Says whether", "Tells whether"))
    assert "The agent email_validator does this already" in refused("duplicate")
    design()
    mind.interview = lambda prompt: {"frequency": "one_time"}
    assert "only once" in refused("one_time")
    mind.interview = CreationMind.interview
    design(code="import subprocess\ndef run(input):\n    return subprocess.run(input)\n")
    before = len(rows_of(home, "SELECT 1 FROM plans"))
    assert "The Guardian blocks it" in refused("design_blocked")
    design(dna_rules=["Short."])
    assert "after 3 corrections" in refused("design_blocked")
    design()
    mind.cases = lambda prompt, hidden: [case("a@b.org", "ok")] * 4
    assert "No suite for it was good enough" in refused("suite_unfit")
    mind.cases = CreationMind.cases
    assert len(rows_of(home, "SELECT 1 FROM plans")) == before

    def stopped(code: str, **keys: Any) -> str:
        run = house.wish(user="ada", **keys)
        house.approve(run, "--user", "ada")
        assert house.ended(run) == ("failed", code)
        assert house.approval(run) == "rejected"
        assert house.created() == [("email_validator", "ada")]
        return run

    design(code='def run(input):\n    return {"valid": False, "reason": "form"}\n')
    failed = house.receipt(stopped("training_failed"))["error"]["message"]
    assert "and 0.75 is needed. Failed: case 1 (0.00), case 2 (0.50)" in failed
    design(depends_on=["form-teller"])
    run = house.wish(user="ada")
    house.waiting(run)
    (home / "personas" / "form-teller.md").unlink()
    house.approve(run, "--user", "ada")
    assert house.ended(run) == ("failed", "unhealthy")
    design()
    known = {case["input"]["address"]: case["expected_output"] for case in HIDDEN}
    mind.alone = lambda prompt: known[json.loads(material(prompt, "input"))["address"]]
    run = house.wish(user="ada")
    plan = house.approve(run, "--user", "ada")
    wait_until(lambda: "worth" in house.council("journal", run), "it asks")
    house.waiting(run)
    assert "not worth having" in house.council("answer", run, "Then leave it.", "--user", "ada", code=1)
    assert house.ended(run) == ("failed", "not_worth_having")
    assert "not worth having" in house.council("plans", "show", plan)
    mind.alone = CreationMind.alone

    run = house.wish(user="ada")
    house.waiting(run)
    execute(home, "UPDATE plans SET expires_ms = expires_ms - 600000 WHERE run_id = ?", run)
    house.council("resume", run)
    assert house.ended(run) == ("failed", "plan_expired")
    assert house.approval(run) == "rejected"
    calls = len(rows_of(home, "SELECT 1 FROM steps WHERE name LIKE 'design/%'"))
    house.council("retry", run, "--from", "plan")
    wait_until(lambda: house.approval(run) == "awaiting_confirmation", "it asks again")
    house.approve(run, "--user", "ada")
    wait_until(lambda: len(house.created()) == 2, "it is registered")
    assert len(rows_of(home, "SELECT 1 FROM steps WHERE name LIKE 'design/%'")) == calls
