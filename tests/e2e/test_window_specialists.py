"""A specialist in the window, from the wish to its promotion: one daemon, a fake model, two people and an administrator."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import httpx2

from tests.creating import EMAIL, WISH, CreationMind
from tests.fake_gemini import FakeGemini
from tests.harness import environment, execute, rows_of
from tests.site import site

LOOK_UP = {
    "name": "look_up",
    "method": "GET",
    "url": "https://api.lookup.example/v1/addresses/{address}",
    "parameters": [{"name": "address"}],
    "headers": [{"name": "Authorization", "credential": "lookup_key", "prefix": "Bearer "}],
    "mock_reply": {"known": True},
}
KEY = "canary-lookup-7Qx0pWz3kd91"


def sent_on(answer: httpx2.Response) -> str:
    """Where a form that was taken leads."""
    assert answer.status_code == 303, html.unescape(re.sub(r"<[^>]+>", " ", answer.text))
    return str(answer.headers["location"])


def told(browser: httpx2.Client, path: str) -> Any:
    plain, question, filters = path.partition("?")
    answer = browser.get(f"{plain}.json{question}{filters}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_specialist_is_made_used_reviewed_and_promoted_and_is_its_creators_until_then(
    home: Path, fake: FakeGemini
) -> None:
    mind = fake.reply = CreationMind()
    mind.interview = lambda prompt: {
        "frequency": "frequent",
        "question": "" if "What the person said when asked" in prompt else "Are quoted names allowed?",
    }
    code = EMAIL["code"].replace("run(input)", "run(input, replies)")  # it gets the replies of its requests
    mind.design = lambda prompt: EMAIL | {"requests": [LOOK_UP], "code": code}
    window = site(home, environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url))
    for user in ("ada", "bob"):
        window.cli("users", "add", user, "--role", "user")
    with window.serving() as daemon, window.signed_in("ada") as ada, window.signed_in("bob") as bob:
        assert "There is no specialist yet" in ada.get("/specialists").text
        assert ada.post("/specialists", data={"request": " "}).status_code == 422
        assert sent_on(ada.post("/specialists", data={"request": WISH})) == "/now"
        run = daemon.wait("run_waiting")["run_id"]
        assert "Are quoted names allowed?" in ada.get("/now").text
        assert "Are quoted names allowed?" not in bob.get("/now").text
        sent_on(ada.post(f"/runs/{run}/answer", data={"answer": "No."}))
        daemon.wait("run_waiting", run_id=run, count=2)
        [proposed] = told(ada, "/specialists")["waiting"]
        assert (proposed["role"], proposed["state"]) == ("email_validator", "awaiting_confirmation")
        assert proposed["rules"] == EMAIL["dna_rules"]
        assert told(bob, "/specialists")["waiting"] == []
        plan = proposed["card"]["plan_id"]
        refused = ada.post(
            "/specialists", data={"credential": "gmail_key", "role": "email_validator", "value": "x" * 40}
        )
        assert (refused.status_code, "no specialist that waits for you needs" in refused.text) == (400, True)
        assert rows_of(home, "SELECT * FROM user_credentials") == []
        stored = {"credential": "lookup_key", "role": "email_validator", "value": KEY}
        assert bob.post("/specialists", data=stored).status_code == 400
        assert sent_on(ada.post("/specialists", data=stored)) == "/specialists"
        assert told(ada, "/specialists")["waiting"][0]["credentials"] == {"lookup_key": True}
        assert KEY not in ada.get("/specialists").text
        assert "steward" not in window.cli("vault", "list")
        sent_on(ada.post(f"/plans/{plan}", data={"do": "both", "keep": "1"}))
        daemon.wait("run_ended", run_id=run, status="succeeded")

        [one] = told(ada, "/specialists")["specialists"]["rows"]
        address = f"/specialists/{one['id']}"
        page = ada.get(address).text
        assert "For its promotion it lacks: 0 of" in page
        assert page.count('class="passed"') == 8
        assert 'id="suite-desc"' in page
        assert bob.get(address).status_code == 409
        assert told(bob, "/specialists")["specialists"]["rows"] == []
        for verb in ("promote", "deprecate", "train"):
            assert bob.post(address, data={"do": verb}).status_code == 409, verb
        assert "promote" not in told(ada, address)["may"]
        assert ada.post(address, data={"do": "explode"}).status_code == 400
        alone = ada.post(address, data={"do": "promote"})
        assert (alone.status_code, "Only an administrator" in alone.text) == (422, True)

        with window.signed_in() as steward:
            assert "promote" in told(steward, address)["may"]
            early = steward.post(address, data={"do": "promote"})
            assert (early.status_code, "0 of 50 uses" in early.text) == (422, True)
            rows = ", ".join(["run_id", "step", "agent_id", "version", "user_id", "kind", "success", "at"])
            for number in range(50):
                execute(
                    home, f"INSERT INTO task_telemetry ({rows}) VALUES (?, ?, ?, 1, 'ada', 'use', 1, ?)",
                    "20261120-100000-abcdefgh", f"use/{number}", one["id"], number,
                )  # fmt: skip
            assert "50 of 50 succeeded" in steward.get("/specialists").text
            review = told(steward, f"{address}?review=1")
            assert "it has 2 rules; fewer than 3 leave much open" in review["findings"]
            assert len(told(ada, address)["uses"]["rows"]) == 20
            assert "was not passed again" in steward.post(address, data={"do": "promote"}).text
            assert sent_on(steward.post(address, data={"do": "train"})) == "/now"
            daemon.wait("run_ended", status="succeeded", file="train_specialist.json")
            drafted = sent_on(steward.post(address, data={"do": "promote"}))
            assert rows_of(home, "SELECT status FROM dynamic_agents")[0][0] == "unverified"
            sent_on(steward.post(drafted, data={"do": "both", "keep": "1"}))
            assert rows_of(home, "SELECT status FROM dynamic_agents")[0][0] == "verified"
            assert told(bob, address)["specialist"]["status"] == "verified"
            assert told(bob, address)["uses"]["rows"] == []
            demoted = sent_on(steward.post(address, data={"do": "demote"}))
            sent_on(steward.post(demoted, data={"do": "both", "keep": "1"}))
        assert bob.get(address).status_code == 409
    assert mind.otherwise.unforeseen == []
