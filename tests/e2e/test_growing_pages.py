"""The window over a working daemon: pages that grow, conversations, plans that are decided, and nothing of other people."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.conducting import Mind, material, part, pick, understanding
from tests.documents import pdf
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, default_reply, error, text
from tests.harness import command, drop_command, environment, opened, rows_of, wait_until
from tests.site import Site, served_site
from tests.space import Space

SAID = "Cold data is what the archive holds, so the engine must be cheap at rest."
ANSWER = "Sow basil **after the last frost**. <script>alert(1)</script>"


@dataclass
class Council:
    """The site with a model that answers from its prompt, and holds back a deliberation until `gate` is open, an answer until
    `answers` is set."""

    site: Site
    fake: FakeGemini
    ids: dict[str, str]
    gate: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)

    def reply(self, request: RecordedRequest) -> FakeReply:
        prompt = "\n\n".join(request.all_texts)
        if "BROKEN" in prompt:
            return error(400)
        if "LATER" in prompt:
            self.answers.wait(60)
        if "one agent of several" in request.system or any(
            said in prompt for said in ("Read the request. Do not answer it.", "Choose an agent for each part.")
        ):
            return Mind(
                understand=self.understand,
                choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
                agents={"CONDUCTOR": lambda prompt: f"{ANSWER} {material(prompt, 'documents')}"},
            )(request)
        if "HELD" in prompt and not self.gate.is_set():
            if "STRATEGIST" in request.system.partition("\n")[0] or "You are STRATEGIST" in request.system:
                self.gate.wait(60)
            return text(SAID)
        return default_reply(request)

    def understand(self, prompt: str) -> dict[str, Any]:
        asked = material(prompt, "The request")
        return understanding(
            part(asked), missing="How long may it be?" if "video" in asked and "minutes" not in prompt else ""
        )


@pytest.fixture(name="council", scope="module")
def _council(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Council]:
    with ExitStack() as stack:
        fake = stack.enter_context(FakeGemini())
        env = environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url)
        home = tmp_path_factory.mktemp("window") / "home"
        site = stack.enter_context(
            served_site(home, settings="max_document_bytes = 400000\nday_max_calls = 500\n", env=env)
        )
        with opened(home) as store:
            ids = Space(store, home / ".council").furnish().ids
        council = Council(site, fake, ids)
        fake.reply = council.reply
        yield council
        council.gate.set()
        council.answers.set()


class Stream:
    """A page's stream, read beside the test."""

    def __init__(self, browser: httpx2.Client, path: str, last_id: str = "") -> None:
        self.messages: list[dict[str, str]] = []
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(browser, path, last_id), daemon=True)
        self._thread.start()

    def _read(self, browser: httpx2.Client, path: str, last_id: str) -> None:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        told: dict[str, str] = {}
        with contextlib.suppress(httpx2.RemoteProtocolError):  # a daemon that is killed ends no stream: it is not over
            with browser.stream("GET", path, headers=headers, timeout=120) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if not line and told:
                        self.messages.append(told)
                        told = {}
                    elif name in ("id", "data"):
                        told[name] = f"{told[name]}\n{value}" if name in told else value
            self.over.set()

    def until(self, words: str) -> dict[str, str]:
        """The first message with these words."""
        found: dict[str, str] = wait_until(
            lambda: next((one for one in list(self.messages) if words in one.get("data", "")), None),
            f"{words!r} is sent",
        )
        return found


def html(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    told: str = response.text
    return told


def sent(response: Any) -> str:
    """The page to which a form leads."""
    assert response.status_code == 303, response.text
    return str(response.headers["location"])


def test_a_run_grows_on_now_and_on_its_own_page_and_is_told_replayed_and_kept(council: Council) -> None:
    site, steward = council.site, council.site.signed_in()
    assert "The council awaits a command" in html(steward.get("/now"))
    now = Stream(site.signed_in(), "/now.live")
    now.until("The council awaits a command")

    drop_command(site.home, command("HELD: which engine keeps the archive?", output_artifact_path="artifacts/held.md"))
    grown = now.until("round 1 of 1, STRATEGIST speaks")
    assert "1 run at work" in grown["data"]
    assert "Nothing of yours is at work" in html(site.signed_in("mia").get("/now"))
    [run] = steward.get("/now.json").json()["runs"]["rows"]
    own = Stream(site.signed_in(), f"/runs/{run['run_id']}.live")
    own.until(SAID)
    council.gate.set()
    now.until("The council awaits a command")
    own.until("succeeded")
    ended = Stream(site.signed_in(), f"/runs/{run['run_id']}.live").until("succeeded")  # the page as it stays

    again = Stream(site.signed_in(), f"/runs/{run['run_id']}.live", ended["id"])
    drop_command(site.home, command("And the next?", output_artifact_path="artifacts/next.md"), "next.json")
    site.daemon.wait("run_ended", file="next.json")
    page = f"/runs/{run['run_id']}"
    assert all("id" not in one for one in again.messages), "nothing is sent again to who has it"

    told = html(steward.get(page))
    assert 'aria-labelledby="decision"' in told
    assert "Who spent what" in told
    explained = steward.get(f"{page}.json").json()["explained"]["explanation"]
    assert (explained["run_id"], explained["status"]) == (run["run_id"], "succeeded")
    assert "byte for byte" in html(steward.get(f"{page}/replay"))
    assert steward.get(f"/v1{page}/artifact").content == (site.home / "artifacts/held.md").read_bytes()
    listed = html(steward.get("/runs", params={"q": "HELD", "status": "succeeded"}))
    for ending in ("", ".json", ".live", "/replay"):  # `last` and the beginning of an id lead to the run's own address
        for given, whole in (
            (run["run_id"][:-2], page),
            ("last", f"/runs/{site.daemon.all('run_ended')[-1]['run_id']}"),
        ):
            led = steward.get(f"/runs/{given}{ending}", headers={"Accept": "text/html"})
            assert (led.status_code, led.headers["location"]) == (303, f"{whole}{ending}")
    assert page in listed
    assert "And the next?" not in listed
    assert steward.get("/runs.json", params={"q": "no such words"}).json()["runs"]["of"] == 0
    assert html(steward.get("/runs/nothing"), 404)


def test_a_conversation_asks_back_takes_documents_and_ends(council: Council) -> None:
    site, nora = council.site, council.site.signed_in("nora")
    talk = sent(nora.post("/chat", data={"request": "Plan a video about basil."}))
    stream = Stream(site.signed_in("nora"), f"{talk}.live")
    stream.until("How long may it be?")
    asked = html(nora.get("/now"))
    assert "How long may it be?" in asked
    [waiting] = nora.get("/now.json").json()["questions"]["rows"]
    answered = nora.post(f"/runs/{waiting['run_id']}/answer", data={"answer": "two minutes", "back": talk})
    assert sent(answered) == talk
    answer = stream.until("<strong>after the last frost</strong>")["data"]
    assert "&lt;script&gt;" in answer
    assert "<script" not in answer.replace("&lt;script", "")

    document = pdf(["The soil report: four per cent of humus."])
    with_it = {"file": ("../../the contract.pdf", document, "application/pdf")}
    assert sent(nora.post(talk, data={"request": "What does the report say?"}, files=with_it)) == talk
    stream.until("four per cent of humus")
    [kept] = (site.home / "artifacts/uploads").rglob("*.pdf")
    assert kept.read_bytes() == document
    assert (kept.parent.parent.name, kept.name[49:]) == ("uploads", "-the-contract.pdf")
    cards = nora.get(f"{talk}.json").json()["cards"]["rows"]
    assert [card["exchange"]["documents"] for card in cards] == [[], ["the-contract.pdf"]]
    site.cli("cortex", "index")
    assert "humus" not in site.cli("cortex", "query", "How much humus does the soil have?"), (
        "its name alone leads to it"
    )
    refused = nora.post(talk, data={"request": "And this?"}, files={"file": ("a.pdf", b"MZ", "application/pdf")})
    assert 'role="alert"' in html(refused, 400)
    assert "And this?" in refused.text, "what was typed is still there"
    huge = nora.post(talk, data={"request": "And this?"}, files={"file": ("a.pdf", b"%PDF-" + b"0" * 400_000)})
    assert "400,000 bytes" in html(huge, 400)
    for charset in ("idna", "undefined", "raw_unicode_escape", "utf-16", "a\tb", "x" * 500):
        odd = {"Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
        body = b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n\\ud800\xff\r\n--b--\r\n'
        wrong = nora.post(talk, content=body, headers={**odd, "Accept": "text/html"})
        assert "A form is sent as UTF-8" in html(wrong, 400)
    flood = nora.post(talk, data={"request": "And this?"}, files={"file": ("a.pdf", b"%PDF-" + b"0" * 800_000)})
    assert flood.status_code == 413

    for other in ("ada", "steward"):
        browser = site.signed_in(other)
        assert html(browser.get(talk), 404)
        assert html(browser.post(talk, data={"request": "What was said?"}), 404)
        assert html(browser.post(f"{talk}/end"), 404)
    too_long = nora.post(talk, data={"request": "x" * 20_001}, files=with_it)
    assert 'role="alert"' in html(too_long, 422)
    assert [*(site.home / "artifacts/uploads").rglob("*.pdf")] == [kept], "what came with a refused request is gone"
    assert sent(nora.post(f"{talk}/end")) == "/chat"
    wait_until(lambda: not kept.exists(), "its documents are gone")
    wait_until(lambda: "This conversation has ended" in nora.get(talk).text, "it is over")
    assert [one["is_over"] for one in nora.get("/chat.json").json()["history"]["rows"]] == [True]
    newest = wait_until(
        lambda: [one for one in nora.get("/runs.json").json()["runs"]["rows"][:1] if one["finished"]], "it has ended"
    )
    assert newest[0]["title"] == "End of a conversation"
    for person in (nora, site.signed_in()):
        recent = person.get("/now.json").json()["recent"]
        assert recent[0]["title"] == "What does the report say?"
        assert all(one["artifact"] for one in recent), "the end of a conversation is no decision"
    damaged = sent(
        nora.post("/chat", data={"request": "BASIL"}, files={"file": ("b.pdf", b"%PDF-1.4\nno", "application/pdf")})
    )
    unread = Stream(site.signed_in("nora"), f"{damaged}.live").until("could not be read")["data"]
    openly = unread.partition("<details")[0]
    assert '<p class="callout bad">An input could not be read: <code>' in openly, (
        "that nobody read it stands beside the answer"
    )
    assert 'callout bad">Part 1' not in openly


def test_a_conversation_is_about_the_project_in_which_it_began(council: Council) -> None:
    site, ids, nora = council.site, council.ids, council.site.signed_in("nora")
    panel = f'name="project" value="{ids["project"]}"'
    for page in (f"projects/{ids['project']}", f"tasks/{ids['task']}", f"notes/{ids['note']}"):
        assert panel in html(nora.get(f"/workspace/{page}")), page
    assert panel in html(nora.get("/workspace/change/updateNote", params={"noteId": ids["note"]}))
    assert 'name="project"' not in html(nora.get(f"/workspace/notes/{ids['own']}"))
    request = "When to sow?\nAnd \u202ewhere?"
    talk = sent(nora.post("/chat", data={"request": request, "project": ids["project"]}))
    stream = Stream(site.signed_in("nora"), f"{talk}.live")
    stream.until("after the last frost")
    page = html(nora.get(talk))
    assert "<p>When to sow?\nAnd \\u202ewhere?</p>" in page, "nothing in it turns the reading"
    assert panel in page, "the next request is about it, too"
    assert "Herbs" in page
    assert sent(nora.post(talk, data={"request": "And when to reap?", "project": ids["project"]})) == talk
    assert 'role="alert"' in html(
        site.signed_in("otto").post("/chat", data={"request": "?", "project": ids["project"]}), 403
    )
    stranger = site.signed_in("otto").get("/chat", params={"project": ids["project"]})
    assert "Herbs" not in html(stranger), "who does not see a project is told nothing of it"
    told = nora.get(f"{talk}.json").json()
    assert [card["exchange"]["project"] for card in told["cards"]["rows"]] == [ids["project"]] * 2
    assert sent(nora.post(talk, data={"request": "LATER: and to eat?", "project": ids["project"]})) == talk
    stream.until("The council is at work.")
    [open_card] = [card for card in nora.get(f"{talk}.json").json()["cards"]["rows"] if card["is_open"]]
    assert (open_card["words"], ">queued<" in str(stream.messages)) == ("", False)
    assert sent(nora.post(talk, data={"request": "And to keep?", "project": ids["project"]})) == talk
    stream.until("It stands in line.")
    council.answers.set()
    assert sent(nora.post(talk, data={"request": "BROKEN"})) == talk
    failed = stream.until('<p class="callout bad">')["data"]
    assert '<p class="callout bad"><strong>Failed</strong> (<code>' in failed, "the reason stands openly"


def test_a_plan_is_edited_confirmed_applied_and_undone_by_its_person_alone(council: Council) -> None:
    site, ada = council.site, council.site.signed_in("ada")
    project = council.ids["project"]
    operations = [
        {"tool": "createTask", "arguments": {"projectId": project, "title": title}}
        for title in ("Sow thyme", "Sow sage")
    ]
    plan = {"type": "plan", "kind": "tasks", "title": "Herbs <b>now</b>", "operations": operations, "user": "ada"}
    stream = Stream(site.signed_in("ada"), "/plans.live")
    stream.until("There is no plan")
    drop_command(site.home, plan, "plan.json")
    stream.until("Herbs &lt;b&gt;now&lt;/b&gt;")
    [card] = ada.get("/plans.json").json()["cards"]["rows"]
    page = f"/plans/{card['plan_id']}"
    assert page in html(ada.get("/now")), "what waits is shown on Now"

    def titles() -> list[str]:
        return [
            row[0]
            for row in rows_of(site.home, "SELECT title FROM workspace_tasks WHERE title LIKE 'Sow%' ORDER BY title")
        ]

    assert html(site.signed_in("nora").get(page), 404)
    boss = site.signed_in("hana")
    assert 'name="do"' not in html(boss.get(page)), "an administrator sees it, and has no button"
    assert 'role="alert"' in html(boss.post(page, data={"do": "confirm", "keep": ["1", "2"]}), 422)
    assert titles() == ["Sow basil"]

    assert "leaves out every operation" in html(ada.post(page, data={"do": "confirm", "keep": "9" * 5_000}), 422)
    assert "cannot be done with a plan" in html(ada.post(page, data={"do": "explode"}), 400)
    edited = {"do": "confirm", "keep": "1", "edit.1.title": "Sow thyme & mint"}
    assert sent(ada.post(page, data=edited)) == page
    confirmed = html(ada.get(page))
    assert "data-until" in confirmed
    assert titles() == ["Sow basil"]
    assert sent(ada.post(page, data={"do": "apply"})) == page
    assert titles() == ["Sow basil", "Sow thyme & mint"]
    assert sent(ada.post(page, data={"do": "undo"})) == page
    assert titles() == ["Sow basil"]
    again = ada.post(page, data={"do": "undo"})
    assert 'role="alert"' in html(again, 422)
    assert ada.get(f"{page}.json").json()["state"] == "undone"

    drop_command(site.home, {**plan, "title": "Another"}, "plan-2.json")
    stream.until("Another")
    second = next(one for one in ada.get("/plans.json").json()["cards"]["rows"] if one["title"] == "Another")
    other = f"/plans/{second['plan_id']}"
    assert sent(ada.post(other, data={"do": "reject", "comment": "Too late in the year."})) == other
    assert "Too late in the year." in html(ada.get(other))

    leaving = site.signed_in("ada")
    shown = Stream(leaving, "/now.live")
    shown.until("Recent decisions")
    assert sent(leaving.post("/sign-out")) == "/sign-in"
    drop_command(site.home, {**plan, "title": "Nobody sees this"}, "plan-3.json")
    shown.until("You are not signed in")
    assert shown.over.wait(30), "the stream of a session ends with it, and in order"
    assert "Nobody sees this" not in str(shown.messages)


def test_a_person_sees_nothing_of_other_peoples_runs_and_steers_none(council: Council) -> None:
    site, bert = council.site, council.site.signed_in("mia")
    drop_command(site.home, command("A matter of the steward.", output_artifact_path="artifacts/own.md"), "own.json")
    run = site.daemon.wait("run_ended", file="own.json")["run_id"]
    assert "A matter of the steward" in html(site.signed_in().get("/runs"))
    for path in ("/now", "/runs", "/plans", "/chat"):
        assert "A matter of the steward" not in html(bert.get(path))
    for path in (f"/runs/{run}", f"/runs/{run}/replay"):
        assert html(bert.get(path), 404)
    for path in (f"/runs/{run}.json", f"/runs/{run}.live", f"/v1/runs/{run}/artifact"):
        assert bert.get(path).status_code == 404
    for path, data in ((f"/runs/{run}", {"do": "cancel"}), (f"/runs/{run}/answer", {"answer": "yes"})):
        assert html(bert.post(path, data=data), 404)
    assert 'action="/sign-in"' in html(site.browser().get("/now", headers={"Accept": "text/html"}), 401)


def test_streams_end_with_the_daemon(council: Council) -> None:
    stream = Stream(council.site.signed_in(), "/now.live")
    stream.until("The council awaits a command")
    assert council.site.daemon.stop() == 0
    assert stream.over.wait(30)
    assert json.loads(council.site.cli("status", "--json"))["daemon"] is None
