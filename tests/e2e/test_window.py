"""The window in a real browser over the real daemon: each journey of a person, by keyboard alone.

The models answer from the prompt they got. `Browsing.complaints` holds what the page should not have met.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Browsing, chromium
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini, text
from tests.harness import command, drop_command, opened, rows_of
from tests.site import Site, site
from tests.space import Space

SPEECH = "The first words of a long speech. " * 12
SETTINGS = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 1000000\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened_browser:
        yield opened_browser


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
        drop_command(here.home, command("Which engine keeps the archive?", rounds=2))
        expect(page.get_by_text("1 run at work")).to_be_visible()
        run = page.get_by_role("article").filter(has_text="Which engine keeps the archive?")
        expect(run.get_by_text("round 1 of 2")).to_be_visible()
        gate.open()
        expect(run.locator(".heard")).to_contain_text("The first words of a long speech.")
        daemon.kill()
        with here.serving() as again:
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
        answer = otto.page.goto(f"/plans/{plan}")
        assert answer is not None
        assert answer.status >= 400
        assert "thyme" not in otto.page.inner_text("body")
        assert ada.complaints + otto.complaints == []


def titles(home: Path) -> list[str]:
    return [row[0] for row in rows_of(home, "SELECT title FROM workspace_tasks ORDER BY title")]
