"""Workspace, world, house and new command in the window: one daemon, people who are signed in, and what each of them meets."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import insert

from council.desk.desk import Desk
from council.engine.run_import import insert_run
from council.plans.plan import Advice, Plan
from council.plans.register import add_plan
from council.settings.home import find_home
from council.storage.store import Tx
from council.users.enrolment import add_user
from council.users.tables import users
from council.workspace.tables import members
from tests.harness import Daemon, command, drop_command, make_home, opened, receipts, rows_of, run_cli, wait_until
from tests.rows import header, receipt
from tests.site import Site, site

SETTINGS = 'model = "offline"\nhttp_requests_per_minute = 100000\n'
ATTACK = "<img src=x onerror=alert(1)>"


@pytest.fixture(name="served", scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Daemon]]:
    home = make_home(tmp_path_factory.mktemp("rooms") / "home", settings=SETTINGS)
    (home / "needs.md").write_text("# Needs\n\nThe archive keeps storage engines for decades.\n")
    served = site(home)
    enrol(home, anna="user", ben="user")
    with served.serving() as daemon:
        yield served, daemon


def enrol(home: Path, **roles: str) -> None:
    """People of this home, each with a role."""
    with Desk(find_home(home, {}, home), os.environ).safe() as safe:
        for user, role in roles.items():
            add_user(safe.trail.log(), user, "", [role])


def sent_on(answer: httpx2.Response) -> str:
    """Where a form that was taken leads."""
    assert answer.status_code == 303, text_of(answer)
    return str(answer.headers["location"])


def text_of(answer: httpx2.Response) -> str:
    """The words of a page, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.text))


def test_the_form_of_a_new_command_offers_each_agent_that_may_sit_in_a_council_and_no_other(
    served: tuple[Site, Daemon],
) -> None:
    here, _ = served
    with here.signed_in() as steward, here.program() as program:
        [agents] = [one for one in told(steward, "/command")["fields"] if one["name"] == "config.agents"]

        def fits(role: str) -> bool:
            members = list(dict.fromkeys(["COORDINATOR", role]))
            asked = command(config={"agents": members})
            judged = program.post("/v1/commands/validate", json=asked).json()
            return not judged["code"]

        every = set(Desk(find_home(here.home, {}, here.home), os.environ).personas())
        assert {"WRITER", "ETHICAL_HACKER", "TAX_SPECIALIST"} <= every
        assert set(agents["options"]) == {role for role in every if fits(role)}


def told(browser: httpx2.Client, path: str) -> Any:
    """A page as JSON."""
    plain, question, filters = path.partition("?")
    answer = browser.get(f"{plain}.json{question}{filters}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_person_works_in_the_workspace_and_another_one_sees_nothing_of_it(served: tuple[Site, Daemon]) -> None:
    window, _ = served
    with window.signed_in("anna") as anna, window.signed_in("ben") as ben:
        assert "You see no project yet" in text_of(anna.get("/workspace"))
        org = sent_on(anna.post("/workspace/change/createOrganization", data={"name": f"River towns {ATTACK}"}))
        org_id = org.rpartition("/")[2]
        project = sent_on(anna.post("/workspace/change/createProject", data={"orgId": org_id, "name": "Maps"}))
        project_id = project.rpartition("/")[2]

        form = anna.get(f"/workspace/change/createTask?projectId={project_id}").text
        assert f'name="projectId" value="{project_id}"' in form
        assert '<option value="anna">' in form
        typed = {"projectId": project_id, "title": "", "description": "By hand", "orderIndex": "2"}
        refused = anna.post(f"/workspace/change/createTask?projectId={project_id}", data=typed)
        assert refused.status_code == 400 or refused.status_code == 422
        assert 'aria-invalid="true"' in refused.text
        assert "By hand</textarea>" in refused.text, "what was typed is still there"
        task = sent_on(anna.post("/workspace/change/createTask", data={**typed, "title": f"Scan {ATTACK}"}))
        task_id = task.rpartition("/")[2]
        form = anna.get(f"/workspace/change/updateTask?taskId={task_id}").text
        assert re.search('<input type="date" id="f-dueDate" name="dueDate" value=""', form)
        due = {"taskId": task_id, "dueDate": "2027-01-05T10:00:00+05:30"}
        sent_on(anna.post("/workspace/change/updateTask", data=due))
        assert "due 2027-01-05 10:00 +05:30" in text_of(anna.get(task))
        form = anna.get(f"/workspace/change/updateTask?taskId={task_id}").text
        assert '<input type="text" id="f-dueDate"' in form, "a time with its zone stays as it was written"
        sent_on(anna.post("/workspace/change/updateTaskStatus", data={"taskId": task_id, "status": "in_progress"}))
        patch = {"taskId": task_id, "title": "Scan box 1", "was.title": f"Scan {ATTACK}"}
        patch |= {"description": "By hand", "was.description": "By hand"}
        sent_on(anna.post("/workspace/change/updateTask", data=patch))
        sent_on(anna.post("/workspace/change/addComment", data={"taskId": task_id, "content": f"Soon. {ATTACK}"}))
        board = told(anna, project)
        assert [one["title"] for one in board["columns"]["in_progress"]["rows"]] == ["Scan box 1"]
        assert board["columns"]["todo"]["rows"] == []
        page = anna.get(task)
        assert "Move to done" in text_of(page)
        assert f'name="project" value="{project_id}"' in page.text, "what is asked there is about its project"
        assert ATTACK not in page.text
        assert ATTACK in text_of(page)

        note = sent_on(anna.post("/workspace/change/createNote", data={"content": "Left drawer", "title": "Keys"}))
        note_id = note.rpartition("/")[2]
        sent_on(anna.post("/workspace/change/lockNote", data={"noteId": note_id, "secret": "tulips"}))
        assert "Left drawer" not in anna.get(note).text
        assert told(anna, note)["content"] is None
        wrong = anna.post("/workspace/change/unlockNote", data={"noteId": note_id, "secret": "roses"})
        assert (wrong.status_code, "has another secret" in text_of(wrong)) == (403, True)
        assert "roses" not in wrong.text
        assert sent_on(anna.post("/workspace/change/unlockNote", data={"noteId": note_id, "secret": "tulips"})) == note
        assert "Left drawer" in anna.get(note).text
        sent_on(anna.post("/workspace/change/deleteNote", data={"noteId": note_id}))
        assert anna.get(note).status_code == 403

        event = {
            "orgId": org_id,
            "title": "Opening",
            "date": "2027-05-01T18:00",
            "zone": "Europe/Sofia",
            "region": "Sofia",
        }
        form = anna.get(f"/workspace/change/createEvent?orgId={org_id}&region=Sofia").text
        assert re.search(r'name="region" value="Sofia"', form)
        sent_on(anna.post("/workspace/change/createEvent", data=event))
        sent_on(anna.post("/workspace/change/createEvent", data={**event, "title": "Talk", "region": "The valley"}))
        chosen = anna.get("/workspace/events?region=Sofia")
        assert ("Opening" in chosen.text, "Talk" in chosen.text) == (True, False)
        assert 'class="chosen"' in chosen.text
        assert told(anna, "/workspace/events")["elsewhere"] == {"The valley": 1}
        for year in ("1999", "2999", "2020"):
            sent_on(
                anna.post("/workspace/change/createEvent", data={**event, "title": year, "date": f"{year}-01-01T08:00"})
            )
        for path in (org, "/workspace/events", "/workspace/events?region=sofia"):
            page = told(anna, path)
            ahead, past = ([one["title"] for one in page[name]["rows"]] for name in ("events", "past"))
            assert (ahead[-1], past[-2:]) == ("2999", ["2020", "1999"]), path
            shown = text_of(anna.get(path))
            assert shown.index(" 2999 ") < shown.index(" 2020 ")

        form = anna.get(f"/workspace/change/inviteMember?orgId={org_id}").text
        assert re.findall('<option value="(ben|anna)">', form) == ["ben"], "those of the home who are no members"
        invitation = {"orgId": org_id, "userId": "ben", "role": "guest"}
        sent_on(anna.post("/workspace/change/inviteMember", data={**invitation, "was.role": "member"}))
        assert "invited" in text_of(ben.get("/workspace/notifications"))
        assert told(ben, "/workspace/notifications")["unread"] == 1
        sent_on(ben.post("/workspace/change/readNotifications", data={}))
        assert told(ben, "/workspace/notifications")["unread"] == 0
        assert "You are invited to River towns" in " ".join(text_of(ben.get("/workspace")).split())
        for hidden in (org, project, task):
            assert ben.get(hidden).status_code == 403, hidden
            assert ben.get(f"{hidden}.json").status_code == 403, hidden
        stolen = ben.post("/workspace/change/deleteTask", data={"taskId": task_id})
        assert (stolen.status_code, "There is no task, or you may not see it." in text_of(stolen)) == (403, True)
        assert ben.post("/workspace/change/listTasks", data={}).status_code == 400
        assert anna.get(task).status_code == 200
        assert told(ben, "/workspace")["projects"]["rows"] == []
        assert 'action="/workspace/change/leaveOrganization"' in ben.get("/workspace").text
        assert sent_on(ben.post("/workspace/change/leaveOrganization", data={"orgId": org_id})) == "/workspace"
        assert "You are invited" not in text_of(ben.get("/workspace"))
        sent_on(anna.post("/workspace/change/inviteMember", data={**invitation, "was.role": "member"}))
        assert sent_on(ben.post("/workspace/change/acceptInvitation", data={"orgId": org_id})) == org
        assert told(ben, org)["members"]["rows"][1]["role"] == "guest"
        form = anna.get(f"/workspace/change/setProjectPermission?projectId={project_id}").text
        assert '<option value="ben">' in form, "a guest may be given a first permission"
        at = f"orgId={org_id}&userId=ben"
        assert '<option value="guest" selected>' in anna.get(f"/workspace/change/changeRole?{at}").text
        sent_on(anna.post("/workspace/change/grantCapability", data={**invitation, "capability": "manage_events"}))
        for action, has, offered in (("grant", False, 5), ("revoke", True, 1)):
            form = anna.get(f"/workspace/change/{action}Capability?{at}").text
            offers = re.findall('<option value="([a-z]+_[a-z]+)">', form)
            assert ("manage_events" in offers, len(offers)) == (has, offered)
            assert "(choose)" in form
        for number in range(51):
            sent_on(ben.post("/workspace/change/createNote", data={"content": "x", "title": f"Note {number}"}))
        first, second = ben.get("/workspace").text, ben.get("/workspace?notes=2").text
        assert 'href="/workspace?notes=2" rel="next"' in first
        assert ("Note 50<" in first, "Note 0<" in first, "Note 0<" in second) == (True, False, True)
    changed = rows_of(window.home, "SELECT actor FROM audit_records WHERE action = 'workspace_changed'")
    assert {row[0] for row in changed} == {"anna", "ben"}


def fields_of(page: str) -> dict[str, str]:
    """The fields of a form as a browser sends them when nobody touches it."""
    hidden = re.findall(r'<input (?:type="hidden" )?name="([^"]+)" value="([^"]*)"', page)
    found = hidden + re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n([^<]*)</textarea>', page)
    return {name: html.unescape(text) for name, text in found}


def test_words_that_somebody_else_saved_meanwhile_are_not_overwritten_unseen(served: tuple[Site, Daemon]) -> None:
    window, _ = served
    with window.signed_in("anna") as anna, window.signed_in() as steward:
        org = sent_on(anna.post("/workspace/change/createOrganization", data={"name": "Two"})).rpartition("/")[2]
        project = sent_on(anna.post("/workspace/change/createProject", data={"orgId": org, "name": "Desk"}))
        of_project = {"projectId": project.rpartition("/")[2]}
        note = sent_on(anna.post("/workspace/change/createNote", data={**of_project, "content": "First\nline"}))
        form = f"/workspace/change/updateNote?noteId={note.rpartition('/')[2]}"
        first, second = fields_of(anna.get(form).text), fields_of(steward.get(form).text)
        assert (first["content"], first["was.content"]) == ("First\nline", "First\nline")
        sent_on(anna.post(form, data={**first, "content": "Anna's words"}))
        refused = steward.post(form, data={**second, "content": "Another's words"})
        assert refused.status_code == 403
        assert re.search(r"anna, at \S+Z, changed content while you wrote", text_of(refused)), text_of(refused)
        assert "Anna's words" in html.unescape(refused.text.partition("<pre>")[2])
        again = fields_of(refused.text)
        assert (again["content"], told(anna, note)["content"]) == ("Another's words", "Anna's words")
        sent_on(steward.post(form, data=again))
        assert told(anna, note)["content"] == "Another's words"
        sent_on(anna.post(form, data={**first, "title": "A title"}))
        assert told(anna, note)["content"] == "Another's words", "a field that was left as it was is not sent on"


def test_every_list_is_read_in_parts_to_its_end(served: tuple[Site, Daemon]) -> None:
    window, _ = served
    plan = Plan("", "tasks", "steward", "draft", {}, (), (), Advice("A plan"), "h", 0, 4_102_444_800_000)
    people = [f"person-{number:02}" for number in range(60)]

    def many(tx: Tx) -> None:
        for number in range(1_030):
            add_plan(tx, msgspec.structs.replace(plan, plan_id=f"20261101-000000-{number:08}"))
        for number in range(65):
            run = {
                "run_id": f"20261101-000000-{number:08}",
                "type": "ask",
                "lane": "ask-long",
                "title": f"No. {number}",
            }
            asked = header(**run, command={"type": "ask", "user": None, "request": f"Request {number}"})
            insert_run(tx, [asked], receipt(**run), number, is_open=False)
        tx.core.execute(insert(users), [{"user_id": one, "name": one, "created": "2026-11-22"} for one in people])
        stands = {"org_id": org_id, "role": "member", "created_ms": 1}
        tx.core.execute(insert(members), [{**stands, "user_id": one} for one in people])

    with window.signed_in("anna") as anna, window.signed_in() as steward:
        org_id = sent_on(anna.post("/workspace/change/createOrganization", data={"name": "Crowd"})).rpartition("/")[2]
        project = sent_on(anna.post("/workspace/change/createProject", data={"orgId": org_id, "name": "Square"}))
        with opened(window.home) as store:
            store.write_now(many)
        plans = told(steward, "/plans?plans=42&state=draft")["cards"]
        assert [plans[name] for name in ("of", "parts", "number")] == [1_030, 42, 42]
        assert [one["plan_id"][-4:] for one in plans["rows"]] == ["0004", "0003", "0002", "0001", "0000"]
        assert 'href="/plans?plans=41" rel="prev"' in steward.get("/plans?plans=42").text
        waiting = told(steward, "/now?plans=206")["plans"]
        assert [waiting[name] for name in ("of", "parts", "number")] == [1_030, 206, 206]
        assert len(waiting["rows"]) == 5
        assert steward.get("/now").text.count('class="card plan draft"') == 5
        assert 'href="/now?plans=2" rel="next"' in steward.get("/now").text
        api = steward.get("/v1/plans", params={"part": 3, "limit": 500}).json()
        assert [one["plan_id"][-4:] for one in (api[0], api[-1])] == ["0029", "0000"]
        talk = told(steward, "/chat/long?requests=3")
        assert [card["exchange"]["request"] for card in talk["cards"]["rows"]] == [f"Request {n}" for n in range(5)]
        assert (talk["title"], talk["cards"]["of"], talk["history"]["rows"][0]["requests"]) == ("No. 0", 65, 65)
        newest = steward.get("/v1/ask/long", params={"limit": 2}).json()
        assert [one["request"] for one in newest] == ["Request 63", "Request 64"]
        assert anna.get("/chat/long").status_code == 404
        seen = [one["userId"] for part in (1, 2) for one in told(anna, f"{project}?people={part}")["people"]["rows"]]
        assert sorted(seen) == sorted(["anna", *people])
        runs = [told(steward, f"/runs?runs={part}")["runs"] for part in (1, 2)]
        assert sum(len(one["rows"]) for one in runs) == runs[0]["of"] == 65
        assert "ask-long" not in told(steward, "/runs")["facets"]["lane"], (
            "a conversation is no filter, among a thousand"
        )
        assert told(steward, "/runs?lane=ask-long")["facets"]["lane"] == {"ask-long": 65}
        records = told(steward, "/house/audit?records=999")["records"]
        assert (records["number"], records["rows"][-1]["seq"]) == (records["parts"], 1)


def test_administrators_order_the_world_and_everybody_follows_its_rounds(served: tuple[Site, Daemon]) -> None:
    window, _ = served
    with window.signed_in() as steward, window.signed_in("anna") as anna:
        assert "Make one" in text_of(steward.get("/world"))
        assert "An administrator can make one" in text_of(anna.get("/world"))
        wrong = steward.post("/world/world_init", data={"members": "9", "width": "2", "height": "2", "pace": "x"})
        assert wrong.status_code == 422
        beside = html.unescape(wrong.text.partition('id="wrong-pace"')[2].partition("</div>")[0])
        assert 'must be a whole number without quotes, not the text "x"' in beside
        made = {"members": "9", "width": "6", "height": "4", "pace": "1", "was.members": "50"}
        assert sent_on(steward.post("/world/world_init", data=made)) == "/world"
        joined = httpx2.post(f"{window.url}/v1/agents/register", json={"name": ATTACK}).json()
        agent = str(joined["agent_id"])
        wait_until(lambda: told(anna, "/world")["rounds"], "a round is settled")
        page = anna.get("/world")
        assert all(word in text_of(page) for word in ("Round", "Mean vitality", "Inequality", ATTACK))
        assert ATTACK not in page.text
        assert 'id="land-title"' in page.text
        assert ("world_pause" in page.text, "Ban" in page.text) == (False, False)
        with anna.stream("GET", "/world.live") as stream:
            heard, lines = 0, stream.iter_lines()
            while heard < 2:
                heard += next(lines).startswith("id:")
        for order in ("world_pause", "world_ban"):
            assert anna.post(f"/world/{order}", data={"agent": agent}).status_code == 403
            assert anna.get(f"/world/{order}").status_code == 403
        assert told(anna, "/world")["phase"] != "paused"
        sent_on(steward.post("/world/world_pause", data={}))
        assert "is paused" in text_of(anna.get("/world"))
        sent_on(steward.post("/world/world_ban", data={"agent": agent}))
        assert told(anna, "/world")["players"]["rows"][0]["banned"] is True
        sent_on(steward.post("/world/world_unban", data={"agent": agent}))
        assert told(anna, "/world")["players"]["rows"][0]["banned"] is False
        assert "no player 99" in text_of(steward.post("/world/world_ban", data={"agent": "99"}))
        sent_on(steward.post("/world/world_resume", data={}))
        assert told(anna, "/world")["phase"] != "paused"
    orders = rows_of(window.home, "SELECT action FROM audit_records WHERE action LIKE 'world%' ORDER BY seq")
    assert [row[0] for row in orders] == ["world_init", "world_pause", "world_ban", "world_unban", "world_resume"]


def test_a_command_is_judged_beside_its_fields_and_dropped_in_the_persons_name(served: tuple[Site, Daemon]) -> None:
    window, daemon = served
    typed = {"task_description": "Choose a storage engine.", "output_artifact_path": "/etc/x.md"}
    typed |= {"config.max_rounds": "0", "was.config.max_rounds": "3", "input_artifacts": "nowhere.md"}
    with window.signed_in("anna") as anna:
        form = anna.get("/command").text
        assert all(f'value="{role}"' in form for role in ("COORDINATOR", "STRATEGIST", "AUDITOR"))
        refused = anna.post("/command", data=typed)
        assert (refused.status_code, "Choose a storage engine.</textarea>" in refused.text) == (422, True)
        body = {key: typed[key] for key in ("task_description", "output_artifact_path")}
        body |= {"config": {"max_rounds": 0}, "input_artifacts": ["nowhere.md"]}
        file = window.home / "judged.json"
        file.write_text(json.dumps(body))
        judged = json.loads(run_cli("validate", str(file), "--json", cwd=window.home).stdout)
        assert judged["problems"]
        for problem in judged["problems"]:
            beside = refused.text.partition(f'id="wrong-{problem["field"]}"')[2].partition("</div>")[0]
            words = html.unescape(re.sub(r"</?code>", "`", beside))
            assert problem["message"] in words, problem
            assert problem["fix"] in words

        fits = {**typed, "output_artifact_path": "artifacts/anna.md", "config.max_rounds": "1"}
        warned = anna.post("/command", data=fits)
        assert (warned.status_code, "Drop it all the same" in warned.text) == (422, True)
        assert 'id="wrong-input_artifacts"' in warned.text
        assert "The command fits, but as things are its run would fail." in warned.text
        assert not [one for one in receipts(window.home) if one["type"] == "deliberate"]
        fits["input_artifacts"] = "needs.md"
        assert sent_on(anna.post("/command", data=fits)) == "/now"
    ended = daemon.wait("run_ended", status="succeeded")
    page = (window.home / "artifacts" / "anna.md").read_text()
    assert ended["run_id"] in page
    assert '"user":"anna"' in rows_of(window.home, "SELECT header FROM runs WHERE run_id = ?", ended["run_id"])[0][0]


def test_the_house_shows_and_forgets_and_only_to_administrators(tmp_path: Path) -> None:
    window = site(make_home(tmp_path / "home", settings=SETTINGS))
    (window.home / "needs.md").write_text("# Needs\n\nThe archive keeps storage engines for decades.\n")
    enrol(window.home, anna="user", cleo="administrator")
    with window.serving() as daemon, window.signed_in("cleo") as cleo, window.signed_in("anna") as anna:
        drop_command(window.home, command(input_artifacts=["needs.md"]))
        run_id = daemon.wait("run_ended")["run_id"]
        assert "remembers nothing in lane side" in text_of(cleo.get("/house/agents/STRATEGIST?lane=side"))
        rows = told(cleo, "/house")["agents"]["rows"]
        assert {one["role"]: one["lanes"] for one in rows}["STRATEGIST"] == ["main"]
        for number in range(21):
            talk = window.home / "session_states" / f"ask-{number:02}"
            talk.mkdir()
            (talk / "strategist_session.json").write_bytes(
                (window.home / "session_states" / "strategist_session.json").read_bytes()
            )
        assert "main , 21 conversations" in " ".join(text_of(cleo.get("/house")).split())
        assert "ask-" not in text_of(cleo.get("/house"))
        strategist = told(cleo, "/house/agents/STRATEGIST?conversations=2")
        assert (strategist["lanes"], strategist["conversations"]["rows"]) == (["main"], ["ask-00"])
        memory = cleo.get("/house/agents/STRATEGIST")
        assert run_id in memory.text
        hits = told(cleo, "/house/search?q=storage+engine")["hits"]
        assert {one["path"] for one in hits} == {"needs.md", "artifacts/out.md"}
        assert "<mark>engines</mark>" in cleo.get("/house/search?q=storage+engine").text
        assert cleo.get("/house/search?q=x&limit=900").status_code == 400
        assert cleo.get(f"/house/search?q=x&limit={'9' * 5_000}").status_code == 400
        assert cleo.get(f"/house/agents/STRATEGIST?lane={'a' * 65}").status_code == 400
        assert cleo.get(f"/house/agents/STRATEGIST?lane={'a' * 5_000}").status_code == 400

        verified = cleo.get("/house/audit?verify=1")
        assert "Intact." in text_of(verified)
        (window.home / "artifacts" / "out.md").write_text("edited")
        assert "changed: artifacts/out.md" in " ".join(text_of(cleo.get("/house/audit?verify=1")).split())
        signed = told(cleo, "/house/audit?action=signed_in")
        assert {one["actor"] for one in signed["records"]["rows"]} == {"cleo", "anna"}
        settings = told(cleo, "/house/settings?own=1")["settings"]
        assert settings["model"] == {"value": "offline", "source": "council.toml"}
        assert "early_stop" not in settings
        assert {one["name"] for one in told(cleo, "/house/doctor")["checks"]} >= {"database", "sandbox"}

        for path in (
            "/house",
            "/house/agents/STRATEGIST",
            "/house/search",
            "/house/audit",
            "/house/settings",
            "/house/doctor",
        ):
            assert anna.get(path).status_code == 403, path
            assert anna.get(f"{path}.json").status_code == 403, path
        assert anna.post("/house/agents/STRATEGIST", data={"run": run_id}).status_code == 403
        page = cleo.get("/house/agents/STRATEGIST").text
        assert run_id in page
        assert page.count("It does not reach files of <code>council backup</code>") == 2

        assert cleo.post("/house/agents/STRATEGIST", data={}).status_code == 400
        assert (
            sent_on(cleo.post("/house/agents/STRATEGIST", data={"run": run_id})) == "/house/agents/STRATEGIST?lane=main"
        )
        assert "remembers nothing in lane main" in text_of(cleo.get("/house/agents/STRATEGIST"))
        forgotten = next(one for one in receipts(window.home) if one["type"] == "forget")
        header = rows_of(window.home, "SELECT header FROM runs WHERE run_id = ?", forgotten["run_id"])[0][0]
        assert '"user":"cleo"' in header
