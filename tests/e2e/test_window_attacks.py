"""Hostile text in everything that the window shows, before a listener in the page: it is text, and stays text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Browsing, chromium
from tests.conducting import Mind, block, material, part, pick, understanding
from tests.creating import EMAIL
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import Daemon, command, drop_command, opened, rows_of, wait_until
from tests.household import settle_specialists
from tests.page_attacks import ATTACKS, SHORT, WHOLE
from tests.site import NO_PAGE, Site, site, ways
from tests.space import Space

SETTINGS = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 1000000\n"
TASK = "Judge the attacks.\n\n" + WHOLE.replace("\0", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened_browser:
        yield opened_browser


def hostile_model() -> Mind:
    """Says every attack, as each kind of agent."""
    return Mind(
        understand=lambda prompt: understanding(part(material(prompt, "The request"))),
        choose=lambda prompt: [pick(1, "NONE")],
        agents={"CONDUCTOR": lambda prompt: block(WHOLE)},
    )


def attack(space: Space) -> dict[str, str]:
    """The workspace with each attack in each of its texts. The ids of one of each."""
    ids = space.ids
    for number, words in enumerate(SHORT.values()):
        space.do("ada", "createTask", projectId=ids["project"], title=words, epic=words[:64])
        space.do("ada", "createNote", title=words, content=words)
        org = space.do("ada", "createOrganization", name=words) if number < 20 else ids["org"]
        date = f"2026-12-{number % 28 + 1:02}T10:00"
        space.do(
            "ada", "createEvent", orgId=org, title=words, date=date, region=words[:64], description=words, public=True
        )
        if number < 20:
            space.do("ada", "createProject", orgId=org, name=words)
    for words in (one for one in ATTACKS.values() if "\0" not in one):
        space.do("ada", "addComment", taskId=ids["task"], content=words)
    space.do(
        "ada",
        "updateTask",
        taskId=ids["task"],
        description=WHOLE.replace("\0", ""),
        acceptanceCriteria=list(SHORT.values())[:20],
    )
    note = space.do("ada", "createNote", title="All", content=WHOLE.replace("\0", ""), projectId=ids["project"])
    return {**ids, "orgId": ids["org"], "taskId": ids["task"], "noteId": note}


def speak(here: Site, daemon: Daemon, fake: FakeGemini, ids: dict[str, str]) -> dict[str, str]:
    """Runs, plans and a conversation that are made of attacks, and players who are named by them."""

    def member(request: RecordedRequest) -> FakeReply:
        return text(WHOLE) if "member of an AI council" in request.system else mind(request)

    fake.reply, mind = member, hostile_model()
    (here.home / "<img src=x onerror=heard(1)>.md").write_text(WHOLE)
    body = command(TASK, input_artifacts=["<img src=x onerror=heard(1)>.md"], title=SHORT["image"], user="ada")
    drop_command(here.home, body, "<svg onload=heard(2)>.json")
    run_id = daemon.wait("run_ended")["run_id"]
    drop_command(here.home, b'{"task_description": ', "<img src=x onerror=heard(3)>.json")
    talk = {"type": "ask", "request": TASK[:8_000], "conversation": "attacks", "user": "ada"}
    drop_command(here.home, talk, "ask.json")
    daemon.wait("run_ended", count=2)
    tasks = [
        {"tool": "createTask", "arguments": {"projectId": ids["project"], "title": words, "description": TASK[:2_000]}}
        for words in list(SHORT.values())[:20]
    ]
    drop_command(here.home, {"type": "plan", "kind": "tasks", "user": "ada", "operations": tasks}, "plan.json")
    daemon.wait("control", type="plan")
    [(plan,)] = rows_of(here.home, "SELECT plan_id FROM plans")
    drop_command(
        here.home, {"type": "world_init", "members": 20, "width": 8, "height": 8, "pace": 3600, "seed": 1}, "w.json"
    )
    daemon.wait("control", type="world_init")
    for words in list(SHORT.values())[:20]:
        joined = httpx2.post(f"{here.url}/v1/agents/register", json={"name": words, "description": TASK[:1_000]})
        assert joined.status_code == 200, joined.text
    return {**ids, "run": run_id, "plan": plan, "conversation": "attacks", "role": "AUDITOR", "order": "world_ban"}


def test_no_text_of_agents_people_or_players_runs_or_loads_anything(
    browser: Browser, home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text(SETTINGS)
    here = site(home, env)
    with opened(home) as store:
        ids = attack(Space(store, home / ".council").furnish())
        spec = EMAIL | {
            "purpose": TASK[:1_000],
            "dna_rules": list(SHORT.values()),
            "code": f"def run(input):\n  {WHOLE!r}",
        }
        ids["name"] = settle_specialists(store, ["judge"], spec)
    here.cli("users", "roles", "ada", "--grant", "administrator")
    here.cli("users", "add", "mallory", "--name", SHORT["svg"])
    with here.serving() as daemon:
        ids = speak(here, daemon, fake, ids) | {"action": "createTask"}
        found = [way.path for way in ways(home, ids) if way.method == "GET" and not NO_PAGE.search(way.path)]
        with Browsing(browser, here.url).sign_in(here.link("ada")) as ada:
            page, shown = ada.page, ""
            for path in [
                *found,
                "/house/search?question=onerror",
                f"/workspace/change/updateTask?taskId={ids['taskId']}",
            ]:
                if "{" not in path:
                    ada.open(path)
                    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
                    shown += page.inner_text("body")
                    assert (
                        page.locator("main script, main iframe, main img, main object, main embed, main base").count()
                        == 0
                    )
                    links = page.locator("a[href]").evaluate_all(
                        "all => all.map(one => new URL(one.getAttribute('href'), document.baseURI).protocol)"
                    )
                    assert set(links) <= {"http:"}, path
            for surface in (SHORT["image"], SHORT["end of a quote"], SHORT["htmx"], "onerror=heard(1)>.md"):
                assert surface in shown
            ada.open("/chat/attacks")
            for words in (SHORT["svg"], SHORT["stream's line"] if "stream's line" in SHORT else SHORT["script"]):
                page.locator("textarea").first.fill(words)
                page.get_by_role("button", name="Ask", exact=True).first.click()
                expect(page.get_by_role("article", name="You asked").last).to_contain_text(words)
            page.goto(f"/runs?words={SHORT['end of a quote']}")
            wait_until(lambda: page.evaluate("document.readyState") == "complete", "the page is there")
            assert ada.complaints == []
