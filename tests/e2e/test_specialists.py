"""A specialist's whole life, through the real process: made, whom it serves, fifty uses, a promotion, what stops it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.apprentices import SPEC, SUITE
from tests.conducting import material, pick
from tests.creating import CreationMind
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, embedded_texts, vectors
from tests.harness import Daemon, drop_command, execute, receipts, rows_of, run_cli, wait_until

REFUSED, DEGRADED, WAITS = 6, 7, 75
BADGE = "**Unverified specialist** email_validator, version 1, made for anna."


@dataclass
class Gate:
    """Each request becomes the address that stands in it; while the gate is shut, the model is at work on it."""

    opened: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def __call__(self, prompt: str) -> dict[str, Any]:
        self.asked.set()
        self.opened.wait(60)
        found = re.findall(r"\S+@\S+\.\w+", material(prompt, "task"))
        return {"input": {"email": found[-1] if found else "none"}}


@dataclass
class Street:
    home: Path
    env: dict[str, str]
    gate: Gate
    renewed: threading.Event  # from then on, the text of the specialist is embedded near to requests

    def council(self, *arguments: str, code: int = 0) -> str:
        done = run_cli("--home", str(self.home), *arguments, cwd=self.home, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, user: str, request: str, code: int = 0) -> str:
        return self.council("ask", "--new", "--user", user, f"@email_validator {request}", code=code)

    def decided(self, user: str) -> str:
        """The one plan that waits for this user, confirmed and applied."""
        self.council("plans", "--user", user, "confirm")
        return self.council("plans", "--user", user, "apply")

    def uses(self) -> list[tuple[Any, ...]]:
        asked = "SELECT run_id, success, level, error FROM task_telemetry WHERE kind = 'use' ORDER BY at, run_id"
        return [tuple(row) for row in rows_of(self.home, asked)]

    def told(self, user: str) -> list[str]:
        return [row[0] for row in rows_of(self.home, "SELECT text FROM notifications WHERE user_id = ?", user)]


@pytest.fixture
def street(home: Path, fake: FakeGemini, env: dict[str, str]) -> Iterator[Street]:
    for user, role in (("anna", "user"), ("bert", "user"), ("hana", "administrator")):
        assert run_cli("users", "add", user, "--role", role, cwd=home, env=env).returncode == 0
    gate, design, suite, renewed = Gate(), msgspec.to_builtins(SPEC), msgspec.to_builtins(SUITE), threading.Event()
    mind = fake.reply = CreationMind(
        lambda prompt: {
            "frequency": "frequent",
            "question": "" if "What the person said when asked" in prompt else "Must the host have a dot?",
        },
        lambda prompt: design,
        lambda prompt, hidden: suite["hidden" if hidden else "visible"],
        alone=lambda prompt: {"valid": True, "host": "?"},
        input=gate,
    )
    mind.otherwise.choose = lambda prompt: [pick(1, "NONE", can_answer=True)]
    mind.otherwise.agents = {"CONDUCTOR": lambda prompt: "I cannot tell."}

    def embed(request: RecordedRequest) -> FakeReply:
        at = [2 if "@host" in said else 1 + renewed.is_set() if SPEC.purpose in said else 0
              for said in embedded_texts(request)]  # fmt: skip
        return vectors([[float(number == axis) for number in range(768)] for axis in at])

    fake.embed_reply = embed
    with (home / "council.toml").open("a") as settings:
        settings.write('embedding_model = "gemini:gemini-embedding-001"\n')
    gate.opened.set()
    yield Street(home, env, gate, renewed)
    gate.opened.set()
    assert mind.otherwise.unforeseen == []


def test_a_wish_becomes_a_specialist_and_after_fifty_uses_an_administrator_makes_it_everybodys(street: Street) -> None:
    home, council = street.home, street.council
    with Daemon(home, env=street.env) as daemon:
        daemon.ready()
        wish = "I check e-mail addresses every day. Make me a specialist for it."
        assert "Must the host have a dot?" in council("specialists", "create", wish, "--user", "anna", code=WAITS)
        run = str(daemon.wait("run_waiting")["run_id"])
        assert "anna has not decided the plan" in council("answer", run, "Yes.", "--user", "anna", code=WAITS)
        street.decided("anna")
        assert daemon.wait("run_ended", run_id=run)["status"] == "succeeded"
        [(agent_id,)] = rows_of(home, "SELECT id FROM dynamic_agents")

        assert BADGE in (answer := street.ask("anna", "is zoe@mail.example.org valid?"))
        assert "- valid: true\n- host: mail.example.org" in answer
        assert "There is no specialist yet." in council("specialists", "list", "--user", "bert")
        assert "no specialist 'email_validator' for you" in council(
            "specialists", "show", "email_validator", "--user", "bert", code=REFUSED
        )
        assert "email_validator  unverified" in council("specialists", "list", "--user", "hana")
        assert "def run(input):" in council("specialists", "show", agent_id, "--user", "hana")
        for other in ("bert", "hana"):  # an administrator reviews it, and is not routed to it
            assert "no agent 'email_validator' here" in street.ask(other, "is a@b.example valid?", code=DEGRADED)

        [used] = [run for run, *_ in street.uses()]  # what others asked since is not anna's
        assert f"The use in {used} counts as succeeded." in council(
            "specialists", "rate", "last", "good", "--user", "anna"
        )
        assert "no run of bert used a specialist" in council(
            "specialists", "rate", "last", "good", "--user", "bert", code=2
        )

        rows = ", ".join(["run_id", "step", "agent_id", "version", "user_id", "kind", "success", "level", "at"])
        for number in range(40):  # as if anna had asked that often before
            execute(
                home, f"INSERT INTO task_telemetry ({rows}) VALUES (?, ?, ?, 1, 'anna', 'use', 1, 'L2', ?)",
                "20261120-100000-abcdefgh", f"use/{number}", agent_id, number,
            )  # fmt: skip
        for number in range(9):
            request = f"@email_validator is name{number}@host.example valid?"
            drop_command(home, {"type": "ask", "request": request, "new": True, "user": "anna"}, f"ask-{number}.json")
        wait_until(lambda: len(street.uses()) == 50, "fifty uses")
        assert {(success, error) for _, success, _, error in street.uses()} == {(1, "")}
        assert {level for _, _, level, _ in street.uses()} <= {"L2", "L3"}
        wait_until(
            lambda: any("is eligible: 50 of 50 uses" in line for line in street.told("hana")), "the word to hana"
        )
        assert "is eligible: 50 of 50 uses" in council("workspace", "notifications")  # the steward's
        assert "eligible" in council("specialists", "stats", "--user", "anna")

        runs = [run for run, *_ in street.uses()[40:]]
        for run in runs[:6]:
            assert "counts as failed" in council("specialists", "rate", run, "bad", "--user", "anna")
        assert "44 of 50 uses succeeded, less than 90 %" in council(
            "specialists", "show", "email_validator", "--user", "anna"
        )
        assert "worked for anna, not for bert" in council(
            "specialists", "rate", runs[0], "good", "--user", "bert", code=2
        )
        assert "people objected to 6 of 50 uses" in council("specialists", "audit", "email_validator", "--user", "anna")
        council("specialists", "rate", runs[0], "good", "--user", "anna")
        assert "45 of 50" in council("specialists", "stats", "--user", "anna")

        sentence = ("Judge eve@host.example, please.", "--user")
        assert "I cannot tell." in council("ask", "--new", *sentence, "anna")
        street.renewed.set()
        for user in ("anna", "bert"):  # nothing is embedded again before the promotion
            assert "I cannot tell." in council("ask", "--new", *sentence, user)

        refused = council("specialists", "promote", "email_validator", "--user", "anna", code=REFUSED)
        assert "Only an administrator promotes" in refused
        drafted = council("specialists", "promote", "email_validator", "--user", "hana")
        assert "waits for its person" in drafted
        shown = council("plans", "--user", "hana", "show")
        for line in ("uses: 50", "succeeded: 45", "def run(input)", "the Auditor's findings", "everybody of this home"):
            assert line in shown
        assert "unverified" in council("specialists", "list", "--user", "hana")
        street.decided("hana")
        found = json.loads(council("specialists", "show", "email_validator", "--user", "bert", "--json"))
        assert (found["status"], found["scope"], found["admin_approved_by"]) == ("verified", "global", "hana")
        answer = council("ask", "--new", *sentence, "bert")
        assert "email_validator, by embedding (1.00)" in council("show")
        assert "- host: host.example" in answer
        answer = street.ask("bert", "is bert@host.example valid?")
        assert "- valid: true" in answer
        assert "Unverified" not in answer
        for user in ("anna", "bert", "hana"):
            assert "The specialist email_validator is verified: everybody can use it." in street.told(user)

        refusal = council("specialists", "train", "email_validator", "--user", "bert", code=1)
        assert "email_validator is not yours to change or to examine." in refusal
        council("specialists", "fork", "email_validator", "--role", "mine", "--user", "bert")
        street.decided("bert")
        council("specialists", "add-rule", "mine", "It answers for every text.", "--user", "bert")
        street.decided("bert")
        refusal = council("specialists", "add-rule", "mine", "", "--user", "bert", code=2)
        assert "`rule` of addRule: must be at least 8 characters" in refusal
        assert "3. It answers for every text." in council("specialists", "show", "mine", "--user", "bert")
        assert "finding: rule 3 is there twice" in council("specialists", "audit", "mine", "--user", "bert")
        assert "removes rule 3: It answers for every text" in council("plans", "--user", "bert", "show")
        street.decided("bert")
        council("specialists", "rollback", "mine", "--to", "2", "--user", "bert")
        street.decided("bert")
        assert "mine  unverified, user scope, version 2" in council("specialists", "show", "mine", "--user", "bert")
        refusal = council("specialists", "add-rule", "email_validator", "It never guesses.", "--user", "hana", code=2)
        assert "a verified spec does not change" in refusal

        street.gate.opened.clear()
        street.gate.asked.clear()
        before = len(street.uses())
        request = {"type": "ask", "request": "@email_validator is c@host.example valid?", "new": True, "user": "bert"}
        drop_command(home, request, "hangs.json")
        assert street.gate.asked.wait(60)
        council("specialists", "deprecate", "email_validator", "--user", "hana")
        street.decided("hana")
        street.gate.opened.set()
        wait_until(lambda: not (home / "commands" / "hangs.json").exists(), "the use ends")
        [stopped] = [one for one in receipts(home) if one["command_file"]["name"] == "hangs.json"]
        page = (home / stopped["artifact"]["path"]).read_text()
        assert "email_validator was taken out of use" in page
        assert len(street.uses()) == before
        assert daemon.stop() == 0
    council("audit", "verify")
    actions = council("audit", "tail", "-n", "200")
    assert "specialist_rated" in actions
    assert "plan_applied" in actions
