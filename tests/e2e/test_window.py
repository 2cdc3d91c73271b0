"""The window in a real browser over the real daemon: each journey of a person, by keyboard alone.

The models answer from the prompt they got. `Browsing.complaints` holds what the page should not have met.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Browsing
from tests.conducting import Mind, material, part, pick, understanding
from tests.documents import pdf
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini, text
from tests.harness import command, drop_command, opened, rows_of
from tests.site import Site, site
from tests.space import SECRET, Space
from tests.staffroom import Prompt

SPEECH = "The first words of a long speech. " * 12
expect.set_options(timeout=30_000)  # milliseconds, far beyond any wait here
SETTINGS = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 1000000\n"


@pytest.fixture
def here(home: Path, env: dict[str, str]) -> Site:
    (home / "council.toml").write_text(SETTINGS)
    return site(home, env)


def enter(browser: Browser, here: Site, user: str = "steward") -> Browsing:
    """This person's browser, signed in."""
    return Browsing(browser, here.url).sign_in(here.link(user))


def test_a_dropped_file_becomes_a_run_that_grows_on_the_open_page_and_a_killed_daemon_comes_back_to_it(
    browser: Browser, here: Site, gate: Gate
) -> None:
    gate.then = lambda request: text(SPEECH, pieces=6, between_s=0.7)
    with here.serving() as daemon, enter(browser, here) as steward:
        page = steward.page
        expect(page.get_by_role("heading", level=1)).to_have_text("The council awaits a command")
        page.evaluate("() => { window.mark = 'the same page' }")
        *_, behind = (steward.open_behind("/now") for _ in range(8))  # a browser has six connections to one server
        drop_command(here.home, command("Which engine keeps the archive?", rounds=2))
        expect(page.get_by_text("1 run at work")).to_be_visible()
        run = page.get_by_role("article").filter(has_text="Which engine keeps the archive?")
        expect(run.get_by_text("round 1 of 2")).to_be_visible()
        expect(run.get_by_role("progressbar")).to_have_js_property("value", 0)
        behind.evaluate("() => { window.seen = true; document.dispatchEvent(new Event('visibilitychange')) }")
        expect(behind.get_by_text("1 run at work")).to_be_visible()
        behind.close()
        gate.open()
        expect(run.locator(".heard")).to_contain_text("The first words of a long speech.")
        asking = steward.open_behind("/chat")
        asking.get_by_label("Your request").fill("What is left to do?")
        daemon.kill()
        expect(page.get_by_text("Not connected; trying again.")).to_be_visible()
        asking.get_by_role("main").get_by_role("button", name="Ask").click()
        expect(asking.get_by_text("Not connected, so nothing was sent.")).to_be_visible()
        expect(asking.get_by_label("Your request")).to_have_value("What is left to do?")
        with here.serving() as again:
            expect(page.locator("#offline")).to_be_empty()
            expect(run.get_by_text("of 2")).to_be_visible()
            ended = again.wait("run_ended")
            recent = page.get_by_role("region", name="Recent decisions")
            expect(recent.get_by_role("link", name="Which engine keeps the archive?")).to_be_visible()
            expect(recent.get_by_text("succeeded")).to_be_visible()
            expect(run).to_have_count(0)
            assert page.evaluate("window.mark") == "the same page"
            told = steward.page.request.get("/now.json").json()
            assert [one["run_id"] for one in told["recent"]] == [ended["run_id"]]
        assert steward.complaints == []


def test_files_that_wait_are_told_in_parts_and_so_are_those_that_are_no_commands_and_an_edited_setting(
    here: Site,
) -> None:
    (here.home / "council.toml").write_text(SETTINGS.replace("settle_s = 0.5", "settle_s = 3600"))  # half a file's wait
    with here.serving(), here.signed_in() as steward:
        names = [drop_command(here.home, b"{", f"{number}.json").name for number in range(100, 160)]
        second = steward.get("/now.json?queue=2").json()["queue"]
        assert [second[name] for name in ("of", "parts", "rows")] == [60, 2, names[50:]]
        (here.home / "commands" / "minutes.docx").write_bytes(b"PK")
        os.utime(here.home / "council.toml", (time.time() + 60, time.time() + 60))
        page = steward.get("/now").text
        assert 'href="/now?queue=2" rel="next"' in page
        assert 'these files are no commands: <span class="mono">minutes.docx</span>.' in page
        assert '<span class="mono">council.toml</span> was edited after the daemon started.' in page


def test_a_run_under_way_a_refused_file_and_a_run_that_is_not_there_are_told_in_plain_words(
    browser: Browser, here: Site, gate: Gate
) -> None:
    with here.serving() as daemon, enter(browser, here) as steward:
        drop_command(here.home, {**command(), "rounds": 2}, "bad.json")
        daemon.wait("command_refused")
        drop_command(here.home, command("Which engine keeps the archive?"))
        run = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        page = steward.open("/now")
        inbox = page.get_by_role("region", name="Inbox")
        expect(inbox.locator("code").first).to_have_text("rounds")
        steward.look(900, False)  # a small laptop's screen
        assert steward.sideways() == []
        assert "`" not in inbox.inner_text()
        assert steward.open("/runs").locator("td .status").inner_text() == "running"
        page = steward.open(f"/runs/{run}")
        timeline = page.get_by_role("region", name="What happened, and when")
        expect(timeline.locator("svg .under-way")).to_have_count(1)
        expect(timeline.locator("svg .cut-mark")).to_have_count(0)
        assert "topped" not in page.inner_text("main")
        steward.refused("/runs/20260101-000000-aaaaaaaa")
        assert page.title() == "There is nothing here · Council"
        told = page.inner_text("main").splitlines()
        assert "No run of yours matches '20260101-000000-aaaaaaaa'." in told
        assert "The list of runs has all that you see." in told
        gate.open()
        daemon.wait("run_ended")
        expect(steward.open(f"/runs/{run}").get_by_role("heading", name="Why it stopped")).to_be_visible()
        assert steward.complaints == []


def test_a_plan_is_edited_confirmed_applied_and_undone_by_keys_alone_and_nobody_else_sees_it(
    browser: Browser, here: Site, fake: FakeGemini
) -> None:
    with opened(here.home) as store:
        space = Space(store, here.home / ".council").furnish()
    tasks = [{"tool": "createTask", "arguments": {"projectId": space.ids["project"], "title": title}} for title in "AB"]
    with here.serving() as daemon, enter(browser, here, "ada") as ada, enter(browser, here, "otto") as otto:
        ada.page.evaluate("() => { window.mark = 'the same page' }")
        body = {"type": "plan", "kind": "tasks", "user": "ada", "operations": tasks}
        drop_command(here.home, body, "plan.json")
        daemon.wait("control", type="plan")
        card = ada.page.get_by_role("article").filter(has_text="A task is added")
        expect(card).to_be_visible()
        assert ada.page.evaluate("window.mark") == "the same page"
        ada.press("“A”", "[type=checkbox]", "Space")  # unticked: left out
        ada.press("Edit")
        ada.press("Edit")
        ada.write("title", "Sow thyme")
        ada.press("Confirm")
        expect(ada.page.get_by_text("confirmed", exact=True)).to_be_visible()
        ada.press("Apply")
        expect(ada.page.get_by_text("applied", exact=True)).to_be_visible()
        assert titles(here.home) == ["Sow basil", "Sow thyme"]
        expect(ada.page.locator("time[data-until]")).to_contain_text("min")
        ada.press("Undo")
        expect(ada.page.get_by_text("undone", exact=True)).to_be_visible()
        assert titles(here.home) == ["Sow basil"]
        plan = ada.page.url.rpartition("/")[2]
        otto.open("/plans")
        assert "thyme" not in otto.page.inner_text("body")
        otto.refused(f"/plans/{plan}")
        assert ada.complaints + otto.complaints == []


def test_a_card_shows_each_blank_and_each_unseen_character_that_is_confirmed(browser: Browser, here: Site) -> None:
    with opened(here.home) as store:
        space = Space(store, here.home / ".council").furnish()
    told = {"projectId": space.ids["project"], "title": "W   one \u202eevil", "description": "a    b"}
    body = {"type": "plan", "kind": "tasks", "user": "ada", "operations": [{"tool": "createTask", "arguments": told}]}
    with here.serving() as daemon, enter(browser, here, "ada") as ada:
        drop_command(here.home, body, "plan.json")
        daemon.wait("control", type="plan")
        card = ada.page.get_by_role("article").filter(has_text="A task is added")
        expect(card).to_be_visible()
        assert card.locator("label").first.inner_text().endswith("“W   one \\u202eevil”.")
        lines = [line.inner_text().strip() for line in card.locator("pre").all()]
        assert ("+W   one \\u202eevil" in lines, "+a    b" in lines) == (True, True), lines


def planner() -> Mind:
    """A conductor that is not sure of the task planner, and a task planner that drafts what was asked."""

    def drafted(prompt: str) -> str:
        wanted = Prompt("", prompt).request.splitlines()[0]
        if "paper" in wanted:
            return json.dumps(
                {"outcome": "clarify", "question": f"Is {re.findall('canary-[0-9]+', prompt)[0]} in Herbs?"}
            )
        return json.dumps({"outcome": "draft", "summary": "So be it.", "creates": [{"title": wanted}]})

    return Mind(
        understand=lambda prompt: understanding(part(material(prompt, "The request"), changes=True)),
        choose=lambda prompt: [pick(1, "task_planner", 0.95 if "paper" in prompt else 0.7)],
        agents={"TASK_PLANNER": drafted},
        agrees=lambda prompt: "Yes" in prompt,
    )


def test_a_request_is_asked_about_answered_by_a_button_and_becomes_a_row_that_is_taken_back(
    browser: Browser, here: Site, fake: FakeGemini, tmp_path: Path
) -> None:
    fake.reply = mind = planner()
    with opened(here.home) as store:
        Space(store, here.home / ".council").furnish()
    (tmp_path / "seeds.pdf").write_bytes(pdf(["Order thyme, canary-4410."]))
    with here.serving(), enter(browser, here, "ada") as ada, enter(browser, here, "otto") as otto:
        page = ada.page
        ada.press("Workspace", "nav a")
        ada.press("Herbs", "a")
        ada.press("Ask", "summary")
        ada.write("Ask the council about this project", "Sow thyme")
        ada.press("Ask", "button")
        expect(page.get_by_role("button", name="Yes")).to_be_visible()
        ada.press("Yes", "button")
        card = page.get_by_role("article").filter(has_text="A task is added to Herbs")
        expect(card.first).to_be_visible()
        ada.press("Edit", "summary")
        ada.write("title", "Sow more thyme")
        ada.press("Confirm")
        expect(page.get_by_text("confirmed", exact=True).first).to_be_visible()
        ada.press("Apply")
        expect(page.get_by_text("applied", exact=True).first).to_be_visible()
        assert titles(here.home) == ["Sow basil", "Sow more thyme"]
        ada.press("Undo")
        expect(page.get_by_text("undone", exact=True).first).to_be_visible()
        assert titles(here.home) == ["Sow basil"]

        ada.press("Ask", "nav a")
        ada.press("Sow thyme", ".history a")
        expect(page.get_by_role("article", name="Answer")).to_contain_text("So be it.")
        talk = page.url
        page.reload()
        expect(page.get_by_role("article", name="You asked")).to_have_text("Sow thyme")
        ada.press("End the conversation", "button")
        expect(page.get_by_text("1 request, ended")).to_be_visible()
        with page.expect_file_chooser() as choosing:  # before the tabs: Chromium needs a moment to listen for it
            ada.tab_to("PDF", "input")
            page.keyboard.press("Enter")
        choosing.value.set_files(tmp_path / "seeds.pdf")
        ada.write("Your request", "What does the paper say?")
        ada.press("Ask", "main button")
        expect(page.get_by_role("article", name="Question of a run")).to_contain_text("Is canary-4410 in Herbs?")
        page.goto(talk)
        expect(page.get_by_text("This conversation has ended")).to_be_visible()

        otto.open("/chat")
        assert "thyme" not in otto.page.inner_text("body")
        otto.refused(talk)
        assert mind.unforeseen == []
        assert ada.complaints + otto.complaints == []


def test_a_note_is_unlocked_a_command_is_mended_and_a_world_is_followed_and_stopped(
    browser: Browser, here: Site, fake: FakeGemini
) -> None:
    with opened(here.home) as store:
        space = Space(store, here.home / ".council").furnish()
        note = space.do("ada", "createNote", title="Frost at night", content="Cover the basil.")
        space.do("ada", "lockNote", noteId=note)
    here.cli("users", "roles", "ada", "--grant", "administrator")
    with here.serving() as daemon, enter(browser, here, "ada") as ada, enter(browser, here, "otto") as otto:
        page = ada.page
        ada.press("Workspace", "nav a")
        ada.press("Frost at night", "a")
        assert "basil" not in page.inner_text("main")
        ada.write("Secret", "a guess")
        ada.press("Unlock", "button")
        expect(page.get_by_role("alert")).to_be_visible()
        ada.write("Secret", SECRET.reveal())
        ada.press("Unlock", "button")
        expect(page.get_by_text("Cover the basil.")).to_be_visible()
        otto.refused(page.url)
        ada.press("Workspace", "nav a")
        ada.press("Events", "main a")
        ada.write("Region", "Sofia")
        ada.press("Choose", "button")
        expect(page.get_by_role("heading", level=1)).to_have_text("Events in Sofia")
        ada.press("New event of Garden in Sofia", "a")
        ada.write("Title", "Seed swap")
        ada.tab_to("Date", "input")
        for keys in ("12202026", "ArrowRight", "1000AM"):
            (page.keyboard.press if keys == "ArrowRight" else page.keyboard.type)(keys)
        ada.press("Create event", "button")
        expect(page.get_by_role("listitem").filter(has_text="Seed swap")).to_contain_text("Sofia")

        ada.press("New command", "nav a")
        ada.write("Task description", "Which engine?")
        ada.write("Output artifact path", "../outside.md")
        ada.press("Drop", "main button")
        wrong = page.get_by_role("textbox", name="Output artifact path")
        expect(wrong).to_have_attribute("aria-invalid", "true")
        told = json.loads(here.validate({"task_description": "Which engine?", "output_artifact_path": "../outside.md"}))
        expect(page.locator(".field.wrong .problem")).to_contain_text(told["problems"][0]["fix"])
        ada.write("Output artifact path", "artifacts/engine.md")
        ada.press("Drop", "main button")
        assert daemon.wait("run_ended")["status"] == "succeeded"

        ada.press("World", "nav a")
        ada.press("Make one", "a")
        ada.write("Pace", "1")
        ada.press("Init", "button")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Round 1")
        page.evaluate("() => { window.mark = 'the same page' }")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Round 3")
        assert page.evaluate("window.mark") == "the same page"
        joined = httpx2.post(f"{here.url}/v1/agents/register", json={"name": "Spammer"})
        assert joined.status_code == 200, joined.text
        expect(page.get_by_role("region", name="Players", exact=True).last).to_contain_text("Spammer")
        ada.press("Ban", "a")
        ada.press("Ban", "button")
        expect(page.get_by_text("banned", exact=True)).to_be_visible()
        ada.press("Pause", "button")
        expect(page.get_by_role("heading", level=1)).to_contain_text("is paused")
        otto.open("/world")
        expect(otto.page.get_by_role("heading", level=1)).to_contain_text("is paused")
        expect(otto.page.get_by_role("button", name="Let it go on")).to_have_count(0)
        expect(otto.page.get_by_role("heading", name="Messages")).to_have_count(0)
        expect(page.get_by_role("heading", name="Messages")).to_have_count(1)
        assert ada.complaints + otto.complaints == []


def test_a_players_longest_name_moves_no_order_out_of_sight(browser: Browser, here: Site) -> None:
    with here.serving(), enter(browser, here) as steward:
        here.cli("world", "init", "--members", "3", "--pace", "3600")
        httpx2.post(f"{here.url}/v1/agents/register", json={"name": "W" * 80}).raise_for_status()
        page = steward.open("/world")
        cut = "one => [one.scrollWidth > one.clientWidth, one.innerText.includes('Ban')]"
        assert page.locator("[aria-label=Players]").evaluate(cut) == [False, True]
        assert steward.complaints == []


def titles(home: Path) -> list[str]:
    return [row[0] for row in rows_of(home, "SELECT title FROM workspace_tasks ORDER BY title")]
