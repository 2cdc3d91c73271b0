"""A specialist in the window, from the wish to its promotion, by keyboard alone; and what other people see of it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, expect

from tests.browser import Browsing
from tests.conducting import material, part, understanding
from tests.creating import EMAIL, WISH, CreationMind
from tests.fake_gemini import FakeGemini
from tests.harness import execute, rows_of
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
USE = "@email_validator is eve@mail.example.org well formed?"
expect.set_options(timeout=30_000)  # milliseconds, far beyond any wait here


def apprentice() -> CreationMind:
    """Asks one question, and designs a specialist that needs a credential."""
    mind = CreationMind()
    mind.interview = lambda prompt: {
        "frequency": "frequent",
        "question": "" if "What the person said when asked" in prompt else "Are quoted names allowed?",
    }
    code = EMAIL["code"].replace("run(input)", "run(input, replies)")  # it gets the replies of its requests
    mind.design = lambda prompt: EMAIL | {"requests": [LOOK_UP], "code": code}
    mind.otherwise.agrees = lambda prompt: "Yes" in prompt
    mind.otherwise.understand = lambda prompt: understanding(
        part(material(prompt, "The request")), should_create_specialist=WISH in material(prompt, "The request")
    )
    return mind


def told(client: httpx2.Client, path: str) -> Any:
    plain, question, filters = path.partition("?")
    answer = client.get(f"{plain}.json{question}{filters}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: httpx2.Response, status: int, words: str) -> None:
    text = html.unescape(re.sub(r"<[^>]+>", " ", answer.text))
    assert answer.status_code == status, text
    assert words in text
    assert "`council" not in text, "what a person can do here, and no command"


def test_a_specialist_is_wished_for_made_used_and_promoted_by_keyboard_alone(
    browser: Browser, home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    mind = fake.reply = apprentice()
    window = site(home, env)
    for user, role in (("ada", "user"), ("bob", "user"), ("cleo", "administrator")):
        window.cli("users", "add", user, "--role", role)
    with (
        window.serving(), Browsing(browser, window.url) as ada, Browsing(browser, window.url) as cleo,
        window.signed_in("bob") as bob,
    ):  # fmt: skip
        page = ada.sign_in(window.link("ada")).page
        ada.press("Ask", "nav a")
        ada.write("Your request", WISH)
        ada.press("Ask", "main button")
        expect(page.get_by_role("article", name="Question of a run")).to_contain_text("Shall I?")
        ada.press("Yes", "button")
        expect(page.get_by_role("article", name="Answer")).to_contain_text("The page Now shows its run.")
        ada.press("Now", "nav a")
        expect(page.get_by_text("Are quoted names allowed?")).to_be_visible()
        assert "Are quoted names allowed?" not in bob.get("/now").text
        ada.write("Your answer", "No.")
        ada.press("Answer", "button")
        expect(page.get_by_text("email_validator needs your credential")).to_be_visible()

        ada.press("Specialists", "nav a")
        expect(page.get_by_text("waits for your confirmation")).to_be_visible()
        for rule in EMAIL["dna_rules"]:
            expect(page.get_by_role("listitem").filter(has_text=rule).first).to_be_visible()
        [proposed] = page.request.get("/specialists.json").json()["waiting"]
        assert proposed["card"]["operations"][0]["arguments"] == {}  # its run and its model are nobody's to edit
        stored = {"credential": "lookup_key", "role": "email_validator", "value": KEY, "back": "/now"}
        for one in (stored | {"credential": "gmail_key"}, stored):
            refused(bob.post("/specialists", data=one), 400, "No specialist that waits for you needs")
        assert told(bob, "/specialists")["waiting"] == told(bob, "/now")["lacking"] == []
        assert rows_of(home, "SELECT * FROM user_credentials") == []
        ada.write("Your credential lookup_key", KEY)
        ada.press("Store it", "button")
        expect(page.get_by_text("stored", exact=True)).to_be_visible()
        assert KEY not in page.content()
        ada.press("Reject", "summary")
        ada.write("The reason", "Not yet.")
        ada.press("Reject", "button")
        expect(page).to_have_url(f"{window.url}/plans/{proposed['card']['plan_id']}")
        ada.press("Runs", "nav a")
        ada.press("I check e-mail addresses", "main a")  # the newest of this title
        expect(
            page.get_by_text("Retry from the plan on the run’s page asks again, with the same design")
        ).to_be_visible()
        ada.press("Retry from the plan", "button")
        ada.press("Specialists", "nav a")
        ada.press("Confirm and apply", "button")
        ada.press("Specialists", "nav a")
        expect(page).to_have_url(f"{window.url}/specialists")
        page.evaluate("() => { window.mark = 'the same page' }")
        made = page.get_by_role("region", name="Specialists").get_by_role("link", name="email_validator")
        expect(made).to_be_visible()
        assert page.evaluate("window.mark") == "the same page", "it came without a reload"

        ada.press("Ask", "nav a")
        ada.press("New conversation" if page.get_by_role("link", name="New conversation").count() else "Ask", "a")
        ada.write("Your request", USE)
        ada.press("Ask", "main button")
        expect(page.get_by_role("article", name="Answer").last).to_contain_text("Unverified specialist email_validator")
        expect(page.get_by_role("article", name="Answer").last).to_contain_text("valid: true")
        ada.press("Specialists", "nav a")
        ada.press("email_validator", "main a")
        expect(page.get_by_text("1 of 1 succeeded")).to_be_visible()
        assert page.locator(".passed").count() == 8
        address = f"/specialists/{page.url.rpartition('/')[2]}"
        assert page.get_by_role("button", name="Promote").count() == 0
        alone = page.request.post(address, form={"do": "promote"}, headers={"Origin": window.url})
        assert (alone.status, "Only an administrator promotes" in alone.text()) == (409, True)
        assert bob.get(address).status_code == 404
        for verb in ("promote", "deprecate", "train"):
            assert bob.post(address, data={"do": verb}).status_code == 404, verb
        assert told(bob, "/specialists")["specialists"]["rows"] == []

        with window.signed_in("cleo") as early:
            assert "promote" not in told(early, address)["may"]
            refused(early.post(address, data={"do": "promote"}), 409, "1 of 50 uses")
        rows = ", ".join(["run_id", "step", "agent_id", "version", "user_id", "kind", "success", "at"])
        for number in range(49):  # as if ada had asked that often
            execute(
                home, f"INSERT INTO task_telemetry ({rows}) VALUES (?, ?, ?, 1, 'ada', 'use', 1, ?)",
                "20261120-100000-abcdefgh", f"use/{number}", address.rpartition("/")[2], number,
            )  # fmt: skip
        page = cleo.sign_in(window.link("cleo")).page
        cleo.press("Specialists", "nav a")
        expect(page.get_by_text("50 of 50 succeeded")).to_be_visible()
        cleo.press("email_validator", "main a")
        cleo.press("Review", "a")
        expect(page.get_by_text("it has 2 rules; fewer than 3 leave much open")).to_be_visible()
        assert len(told(bob, "/specialists")["specialists"]["rows"]) == 0
        cleo.press("Promote", "button")
        expect(page).to_have_url(f"{window.url}{address}")
        expect(page.get_by_text("It has passed its suite again.")).to_be_visible()
        cleo.press("Promote", "button")
        expect(page.get_by_role("link", name="Promotes email_validator, version 1, of ada")).to_be_visible()
        assert rows_of(home, "SELECT status FROM dynamic_agents") == [("unverified",)]
        cleo.press("Confirm and apply", "button")
        expect(page.get_by_text("applied", exact=True)).to_be_visible()
        assert rows_of(home, "SELECT status FROM dynamic_agents") == [("verified",)]
        seen = told(bob, address)
        assert (seen["specialist"]["status"], seen["uses"]["rows"], seen["examination"]) == ("verified", [], None)
        cleo.press("Specialists", "nav a")
        cleo.press("email_validator", "main a")
        cleo.press("Demote", "button")
        cleo.press("Confirm and apply", "button")
        expect(page.get_by_text("applied", exact=True)).to_be_visible()
        assert bob.get(address).status_code == 404
        execute(home, "UPDATE dynamic_agents SET spec_snapshot = replace(spec_snapshot, '\"properties\"', '\"…\"')")
        fieldless = cleo.open(address).get_by_text("fields in: none · fields out: none")  # what lost words has a page
        expect(fieldless).to_be_visible()
        assert mind.otherwise.unforeseen == []
        assert ada.complaints + cleo.complaints == []
