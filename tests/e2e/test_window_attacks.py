"""Hostile text in everything that the window shows, before a listener in the page: it is text, and stays text."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect
from sqlalchemy import Connection, insert

from council.users.tables import users
from council.workspace.tables import members
from tests.browser import Browsing
from tests.conducting import Mind, block, part, pick, understanding
from tests.creating import EMAIL
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import Daemon, command, drop_command, opened, rows_of, wait_until
from tests.household import settle_specialists
from tests.page_attacks import ATTACKS, SHORT, WHOLE
from tests.site import NO_PAGE, Site, site, ways
from tests.space import Space
from tests.world_client import Served

SETTINGS = "settle_s = 0.5\nscan_interval_s = 0.5\nhttp_requests_per_minute = 1000000\n"
NO_NUL = [words for words in ATTACKS.values() if "\0" not in words]
ELSEWHERE = [
    words.replace("http:", "").replace("//", "https:") for words in NO_NUL
]  # no name of a file has two slashes
FILES = [words for words in ELSEWHERE if words.isprintable() and words[0] not in "/.\\＜"]
ENOUGH = 40
SPEECH = WHOLE.replace("\0", "")
TASK = f"Judge the attacks.\n\n{SPEECH}"


def hostile_model() -> Mind:
    """Says every attack, as each kind of agent."""
    return Mind(
        understand=lambda prompt: understanding(part("Judge the attacks.")),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: block(SPEECH)},
    )


def attack(space: Space) -> dict[str, str]:
    """The workspace with each attack in each of its texts. The ids of one of each."""
    ids = space.ids
    org, project = ids["org"], ids["project"]
    for number, words in enumerate(SHORT.values()):
        space.do("ada", "createTask", projectId=project, title=words, epic=words[:64])
        space.do("ada", "createNote", title=words, content=words)
        space.do("ada", "createOrganization", name=words)
        space.do("ada", "createProject", orgId=org, name=words)
        date = f"2026-12-{number % 28 + 1:02}T10:00"
        space.do(
            "ada", "createEvent", orgId=org, title=words, date=date, region=words[:64], description=words, public=True
        )
    for words in NO_NUL:
        space.do("ada", "addComment", taskId=ids["task"], content=words)
    criteria = list(SHORT.values())[:20]
    space.do("ada", "updateTask", taskId=ids["task"], description=SPEECH, acceptanceCriteria=criteria)
    note = space.do("ada", "createNote", title="All", content=SPEECH, projectId=project)

    def named(connection: Connection) -> None:
        for number, words in enumerate(SHORT.values()):
            who = f"user-{number}"
            connection.execute(insert(users).values(user_id=who, name=words, created="2026-11-22"))
            connection.execute(insert(members).values(user_id=who, org_id=org, role="member", created_ms=1))

    space.store.write_now(lambda tx: named(tx.core))
    return {**ids, "orgId": org, "projectId": project, "taskId": ids["task"], "noteId": note}


def speak(here: Site, daemon: Daemon, fake: FakeGemini, ids: dict[str, str]) -> dict[str, str]:
    """Runs, plans and a conversation that are made of attacks, and players who are named by them and write them."""

    def member(request: RecordedRequest) -> FakeReply:
        return text(SPEECH) if "member of an AI council" in request.system else mind(request)

    fake.reply, mind = member, hostile_model()
    for words in FILES:
        (here.home / f"{words}.md").parent.mkdir(parents=True, exist_ok=True)
        (here.home / f"{words}.md").write_text(f"It says: {words}")
    drop_command(here.home, b'{"task_description": ', "<img src=x onerror=heard(3)>.json")
    world = {"type": "world_init", "members": 48, "width": 16, "height": 16, "pace": 4, "seed": 1}
    drop_command(here.home, world, "w.json")
    body = command(TASK, input_artifacts=[f"{words}.md" for words in FILES], title=SHORT["image"], user="ada")
    drop_command(here.home, body, "<svg onload=heard(2)>.json")
    run_id = daemon.wait("run_ended")["run_id"]
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
    served = Served(daemon, here.url)
    players = [served.register(words, TASK[:1_000]) for words in list(SHORT.values())[:45]]
    players[0].propose("engine.rules.update({})", description=TASK[:1_000])
    players[0].play(*(f"engine.send_message({players[1].member_id}, {words!r})" for words in NO_NUL[:60]))
    wait_until(lambda: len(rows_of(here.home, "SELECT 1 FROM world_letters")) >= ENOUGH, "the messages are there")
    drop_command(here.home, {"type": "world_pause"}, "pause.json")
    daemon.wait("control", type="world_pause")
    return {**ids, "run": run_id, "plan": plan, "conversation": "attacks", "role": "AUDITOR", "order": "world_ban"}


def folded(told: str) -> str:
    """Without what Markdown shows in another way: line ends, and the marks of code."""
    return " ".join(told.replace("`", "").split())


def test_no_text_of_agents_people_or_players_runs_or_loads_anything(
    browser: Browser, home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text(SETTINGS)
    here = site(home, env)
    with opened(home) as store:
        ids = attack(Space(store, home / ".council").furnish())
        code = f"def run(input):\n  {WHOLE!r}"
        spec = EMAIL | {"purpose": TASK[:1_000], "dna_rules": list(SHORT.values()), "code": code}
        ids["name"] = settle_specialists(store, ["judge"], spec)
    here.cli("users", "roles", "ada", "--grant", "administrator")
    with here.serving() as daemon:
        ids = speak(here, daemon, fake, ids) | {"action": "createTask"}
        found = [way.path for way in ways(home, ids) if way.method == "GET" and not NO_PAGE.search(way.path)]
        run, org, task = (
            f"/runs/{ids['run']}",
            f"/workspace/organizations/{ids['org']}",
            f"/workspace/tasks/{ids['task']}",
        )
        project, specialist = f"/workspace/projects/{ids['project']}", f"/specialists/{ids['name']}"
        carriers = {  # what holds at least ENOUGH attacks: the parts of pages that show it, the second half in brackets
            "artifacts": [f"{run} #decision ~ .said"], "task text": [f"{run} #decision ~ details"],
            "file names": [f"{run} [aria-labelledby=read]"],
            "tasks": [f"{project} main", f"{project}?todo=2 main"],
            "notes": ["/workspace main", "/workspace?notes=2 main"],
            "a note": [f"/workspace/notes/{ids['noteId']} main"],
            "comments": [f"{task} main", f"{task}?comments=2 main"],
            "events": ["/workspace/events main", "/workspace/events?events=2 main"],
            "names of organizations": ["/workspace #organizations ~ *", "/workspace?organizations=2 #organizations ~ *"],
            "names of people": [f"{org} [aria-label=Members]", f"{org}?members=2 [aria-label=Members]"],
            "chat": ["/chat/attacks .asked"], "answers": ["/chat/attacks .answered .said"],
            "names of players": ["/world [aria-label=Players]", "/world?players=2 [aria-label=Players]"],
            "messages": [f"/world?messages={part} [aria-labelledby=messages]" for part in (1, 2, 3)],
            "specs": [f"{specialist} #spec ~ ol"], "code": [f"{specialist} pre"],
        }  # fmt: skip
        shown: dict[str, str] = dict.fromkeys(carriers, "")
        extra = {place.partition(" ")[0] for places in carriers.values() for place in places} - set(found)
        found += ["/house/search?q=onerror", f"/workspace/change/updateTask?taskId={ids['taskId']}", *sorted(extra)]
        with Browsing(browser, here.url).sign_in(here.link("ada")) as ada:
            page = ada.page
            assert [path for path in found if "{" in path] == [], "each page is looked at"
            for path in found:
                ada.open(path)
                page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
                hostile = "main script, main iframe, main img, main object, main embed, main base"
                assert page.locator(hostile).count() == 0, path
                links = page.locator("a[href]").evaluate_all(
                    "all => all.map(one => new URL(one.getAttribute('href'), document.baseURI).protocol)"
                )
                assert set(links) <= {"http:"}, path
                for carrier, places in carriers.items():
                    for at, _, part in (place.partition(" ") for place in places):
                        shown[carrier] += "\n".join(page.locator(part).all_inner_texts()) if at == path else ""
            counts = {
                carrier: sum(folded(words) in folded(told) for words in {*NO_NUL, *FILES})
                for carrier, told in shown.items()
            }
            assert {carrier: count for carrier, count in counts.items() if count < ENOUGH} == {}
            ada.open("/chat/attacks")
            for words in (SHORT["svg"], SHORT["script"]):
                page.locator("textarea").first.fill(words)
                page.get_by_role("button", name="Ask", exact=True).first.click()
                expect(page.get_by_role("article", name="You asked").last).to_contain_text(words)
            page.goto(f"/runs?words={SHORT['end of a quote']}")
            wait_until(lambda: page.evaluate("document.readyState") == "complete", "the page is there")
            assert ada.complaints == []
