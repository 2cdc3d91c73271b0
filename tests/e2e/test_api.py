"""The HTTP API of people's programs against the real daemon: what it does, what it refuses, and to whom it shows what."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conducting import Mind, part, pick, understanding
from tests.creating import WISH, CreationMind
from tests.fake_gemini import FakeGemini
from tests.harness import command, inbox, run_cli, wait_until
from tests.site import Site, refusal, served_site


@pytest.fixture(name="site", scope="module")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served_site(tmp_path_factory.mktemp("site") / "home") as site:
        for user in ("anna", "bert"):
            site.cli("users", "add", user)
        site.cli("users", "add", "boss", "--role", "administrator")
        yield site


def given(program: httpx2.Client, body: dict[str, Any], **how: Any) -> Any:
    """What comes of a command, once it has ended."""
    return program.post("/v1/commands", json=body, params={"wait_s": 60}, **how)


def done(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


def test_a_command_is_dropped_in_its_persons_name_and_answered_by_its_receipt(site: Site) -> None:
    anna, bert, boss = (site.program(user) for user in ("anna", "bert", "boss"))
    once, body = (
        {"Idempotency-Key": "first-1"},
        command("Which crop for the north field?", output_artifact_path="artifacts/n.md"),
    )
    receipt = done(given(anna, body, headers=once))
    run = receipt["run_id"]
    assert (receipt["status"], receipt["id"]) == ("succeeded", "first-1")
    assert json.loads(site.cli("journal", run, "--jsonl").splitlines()[0])["command"]["user"] == "anna"
    assert done(given(anna, body, headers=once))["run_id"] == run
    assert refusal(given(anna, {**body, "task_description": "Another?"}, headers=once)) == (409, "id_conflict")
    same_key = done(given(bert, command("Which crop for the south field?"), headers=once))
    assert (same_key["id"], same_key["run_id"] != run) == ("first-1", True)

    assert {one["run_id"] for one in done(anna.get("/v1/runs"))["runs"]} == {run}
    assert [one["run_id"] for one in done(bert.get("/v1/runs"))["runs"]] == [same_key["run_id"]]
    assert done(boss.get("/v1/runs", params={"words": "north", "limit": 1}))["runs"][0]["run_id"] == run
    assert done(boss.get("/v1/runs", params={"part": 2, "limit": 500}))["runs"] == []
    for since, is_in in (("7d", True), ("2020-01-01T16:00:00+02:00", True), ("2999-01-01T00:00:00Z", False)):
        found = done(anna.get("/v1/runs", params={"since": since}))["runs"]
        assert [one["run_id"] for one in found] == ([run] if is_in else [])
    assert [one["run_id"] for one in done(anna.get("/v1/runs?since=2020-01-01T16:00:00+02:00"))["runs"]] == [run]
    assert refusal(anna.get("/v1/runs", params={"since": "banana"})) == (422, "usage")
    browser = site.signed_in("anna")
    shown = {since: browser.get("/runs", params={"since": since}) for since in ("7d", "2999-01-01", "banana")}
    assert {since: (page.status_code, run in page.text) for since, page in shown.items()} == {
        "7d": (200, True), "2999-01-01": (200, False), "banana": (422, False)
    }  # fmt: skip
    assert "is not a time" in shown["banana"].text
    assert refusal(anna.get("/v1/runs", params={"status": "failed"})) == (422, "request_invalid")
    assert done(anna.get(f"/v1/runs/{run}"))["receipt"]["run_id"] == run
    page = (site.home / "artifacts/n.md").read_text()
    assert [anna.get(f"/v1/runs/{run}/{what}").text for what in ("artifact", "replay")] == [page, page]
    assert done(anna.get(f"/v1/runs/{run}/explain")) == json.loads(site.cli("explain", run, "--json"))
    for path in (f"/v1/runs/{run}", *(f"/v1/runs/{run}/{what}" for what in ("artifact", "replay", "explain"))):
        assert refusal(bert.get(path)) == (404, "run_not_found")


def test_what_the_command_line_refuses_is_refused_with_the_same_code_and_nothing_is_dropped(site: Site) -> None:
    anna, bert = site.program("anna"), site.program("bert")
    run = done(given(anna, command("Whose run is it?", output_artifact_path="artifacts/w.md")))["run_id"]
    own = done(given(anna, {"type": "ask", "request": "Which crop?", "dry_run": True}))["details"]["conversation"]
    before = len(done(site.program().get("/v1/runs", params={"limit": 500}))["runs"])
    wrong = given(anna, {"config": {"max_rounds": 0}})
    assert refusal(wrong) == (422, "command_invalid")
    assert {"task_description", "config.max_rounds"} <= {one["field"] for one in wrong.json()["problems"]}
    for body in (
        {"type": "retry", "run": run},
        {"type": "memory", "role": "AUDITOR", "action": "reset"},
        command("As somebody else?", user="anna"),
    ):
        assert refusal(given(bert, body)) == (422, "command_invalid")
    assert refusal(given(bert, command("Outside?", output_artifact_path="../x.md")))[0] in (403, 422)
    both = given(bert, command("Outside?", output_artifact_path="../x.md", config={"agents": ["NOPE"]}))
    assert [one["field"] for one in both.json()["problems"]] == ["config.agents", "output_artifact_path"]
    assert refusal(anna.post("/v1/commands", content=b"[1]")) == (422, "command_invalid")
    no_door = {  # words of a file or of the command line have no place here
        "forget": given(anna, {"type": "forget", "text": "Dig in March."}),
        "conversation": given(bert, {"type": "ask", "request": "And then?", "conversation": own}),
        "not UTF-8": anna.post("/v1/commands", content=b'{"type": "\xff"}'),
        "UTF-16": anna.post("/v1/commands", content='{"type": "ask"}'.encode("utf-16")),
        "half": anna.post("/v1/commands", content=b'{"type": "ask"'),
        "empty": anna.post("/v1/commands", content=b""),
    }
    assert {name: refusal(told) for name, told in no_door.items()} == dict.fromkeys(no_door, (422, "command_invalid"))
    fixes = {name: told.json()["fix"] for name, told in no_door.items()}
    assert fixes["forget"].startswith("let the steward give it, without `user`; ")
    assert fixes["conversation"] == "leave `conversation` out to ask in your own"
    assert (fixes["not UTF-8"], fixes["UTF-16"], fixes["empty"]) == (
        *["write it in UTF-8"] * 2,
        "write a command there",
    )
    assert all("the file" not in told.json()["detail"] + fixes[name] for name, told in no_door.items())
    assert anna.get("/v1/commands").status_code == 405
    judged = done(anna.post("/v1/commands/validate", json={"config": {"max_rounds": 0}}))
    assert {one["field"] for one in judged["problems"]} == {one["field"] for one in wrong.json()["problems"]}
    assert "deliberate" in json.dumps(done(anna.get("/v1/commands/schema")))
    assert len(done(site.program().get("/v1/runs", params={"limit": 500}))["runs"]) == before
    assert inbox(site.home) == []
    assert [*(site.home / "commands" / "failed").glob("[!.]*")] == []


def test_what_is_given_is_refused_as_it_is_judged_and_a_refused_plan_is_in_the_audit(site: Site) -> None:
    anna = site.program("anna")
    run = done(given(anna, command("Which?", output_artifact_path="artifacts/which.md")))["run_id"]
    note = {"tool": "createNote", "arguments": {"title": "Soil", "content": "Dig."}}
    for body, code in (
        ({"type": "plan", "kind": "nothing", "operations": [note]}, "unknown_kind"),
        ({"type": "plan", "kind": "notes", "operations": [{**note, "arguments": {}}]}, "bad_arguments"),
        ({"type": "cancel", "run": run}, "command_invalid"),
        ({"type": "answer", "run": run, "answer": "Yes."}, "command_invalid"),
    ):
        judged = done(anna.post("/v1/commands/validate", json=body))
        refused = given(anna, body)
        assert (judged["code"], refusal(refused)[1]) == (code, code)
        [problem] = judged["problems"]
        assert problem["message"].removeprefix("is refused: ").rstrip(".") in refused.json()["detail"]
    assert site.cli("audit", "tail", "-n", "20").count("plan_refused") == 2
    assert [*(site.home / "commands" / "failed").glob("[!.]*")] == []


def test_a_plan_of_somebody_else_is_refused_like_one_that_is_not_there(site: Site) -> None:
    anna, bert, boss = (site.program(user) for user in ("anna", "bert", "boss"))
    note = {"kind": "notes", "operations": [{"tool": "createNote", "arguments": {"content": "Dig."}}]}
    done(given(anna, {"type": "plan", **note}))
    [hers, *_] = anna.get("/v1/plans", params={"state": "draft"}).json()
    for body in (
        *({"type": verb, "plan": hers["plan_id"]} for verb in ("confirm", "reject", "apply", "undo")),
        {"type": "plan", **note, "revises": hers["plan_id"]},
    ):
        unknown = json.loads(json.dumps(body).replace(hers["plan_id"], "20200101-000000-aaaaaaaa"))
        for door in ("/v1/commands", "/v1/commands/validate"):
            foreign, absent = (bert.post(door, json=asked, params={"wait_s": 60}) for asked in (body, unknown))
            assert "anna" not in foreign.text
            assert foreign.text.replace(hers["plan_id"], "20200101-000000-aaaaaaaa") == absent.text
            assert foreign.status_code == absent.status_code
        assert "anna" in given(boss, body).text
    assert anna.get(f"/v1/plans/{hers['plan_id']}").json()["state"] == "draft"


def test_a_plan_is_confirmed_applied_and_undone_by_its_person_alone(site: Site) -> None:
    anna, bert, browser = site.program("anna"), site.program("bert"), site.signed_in("anna")

    def workspace(verb: str, **keys: str) -> dict[str, Any]:
        return done(anna.post(f"/v1/workspace/{verb}", json=keys))

    org = workspace("orgs/add", name="Garden")["id"]
    project = workspace("projects/add", orgId=org, name="Beds")["id"]
    assert refusal(anna.post("/v1/workspace/orgs/add", json={"nam": "x"})) == (422, "request_invalid")
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # as `curl -d` says
    curled = json.dumps({"projectId": project, "title": "Rake"}).encode()
    raked = done(anna.post("/v1/workspace/tasks/add", content=curled, headers=form))["id"]
    workspace("tasks/delete", taskId=raked)
    hidden = bert.get("/v1/workspace/projects/show", params={"projectId": project})
    assert hidden.status_code in (403, 404)
    said = run_cli("workspace", "projects", "show", project, "--user", "bert", cwd=site.home).stderr
    assert hidden.json()["code"] in said

    def drafted(title: str) -> str:
        operation = {"tool": "createTask", "arguments": {"projectId": project, "title": title}}
        receipt = done(given(anna, {"type": "plan", "kind": "tasks", "title": title, "operations": [operation]}))
        assert (receipt["command_sha256"], receipt["command_hash"]) == ("not_kept", "not_kept")
        assert done_list(anna.get("/v1/plans", params={"state": "draft"}))[0]["plan_id"] == receipt["details"]["plan"]
        return str(receipt["details"]["plan"])

    def done_list(response: Any) -> list[dict[str, Any]]:
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()
        return found

    def titles() -> list[str]:
        return [task["title"] for task in done_list(anna.get("/v1/workspace/tasks/list", params={"limit": 500}))]

    of_two = [workspace("tasks/add", projectId=project, title=title)["id"] for title in ("Hoe", "Weed")]
    parts = [done_list(anna.get("/v1/workspace/tasks/list", params={"part": n, "limit": 1})) for n in (1, 2, 3)]
    assert [[task["title"] for task in part] for part in parts] == [["Hoe"], ["Weed"], []]
    assert refusal(anna.get("/v1/workspace/tasks/list", params={"limit": 501})) == (422, "request_invalid")
    assert refusal(anna.get("/v1/workspace/orgs/whoami", params={"part": 1})) == (422, "request_invalid")
    for task in of_two:
        workspace("tasks/delete", taskId=task)
    first = drafted("Dig")
    assert done_list(bert.get("/v1/plans")) == []
    assert refusal(bert.post(f"/v1/plans/{first}/confirm", json={})) == (404, "plan_not_found")
    assert refusal(given(bert, {"type": "confirm", "plan": first}))[0] == 422
    early = anna.post(f"/v1/plans/{first}/apply", json={})
    assert refusal(early) == (422, "not_confirmed")
    unlisted = anna.post(f"/v1/plans/{first}/confirm", json={"edits": "x"})
    assert (refusal(unlisted), unlisted.json()["fix"]) == ((422, "command_invalid"), "correct the value")
    assert unlisted.json()["detail"].endswith('`edits` must be a list in brackets, not the text "x"')
    confirmed = done(
        anna.post(f"/v1/plans/{first}/confirm", json={"edits": [{"index": 1, "arguments": {"title": "Dig deep"}}]})
    )
    assert confirmed["plan"]["state"] == "confirmed"
    assert confirmed["token"].startswith("council-plan-1.")
    without_script = re.sub("<[^>]+>", "", browser.get(f"/plans/{first}").text)
    assert re.search(r"Time to apply: until \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", without_script)
    assert refusal(anna.post(f"/v1/plans/{first}/apply", json={"token": "council-plan-1.x.y"}))[0] == 422
    assert titles() == []
    applied = done(anna.post(f"/v1/plans/{first}/apply", json={"token": confirmed["token"]}))
    assert (applied["plan"]["state"], titles()) == ("applied", ["Dig deep"])
    without_script = re.sub("<[^>]+>", "", browser.get(f"/plans/{first}").text)
    assert re.search(r"Time to undo: until \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", without_script)
    assert done(browser.post(f"/v1/plans/{first}/undo", json={}))["plan"]["state"] == "undone"
    assert titles() == []

    second = drafted("Sow")
    done(browser.post(f"/v1/plans/{second}/confirm"))
    assert done(browser.post(f"/v1/plans/{second}/apply", json={}))["receipt"]["status"] == "succeeded"
    assert titles() == ["Sow"]
    assert (
        done(anna.post(f"/v1/plans/{drafted('Weed')}/reject", json={"comment": "No."}))["plan"]["state"] == "rejected"
    )

    note = workspace("notes/add", projectId=project, title="Well", content="the canary sings")["id"]
    workspace("notes/lock", noteId=note, secret="a long secret")
    shown = anna.get("/v1/workspace/notes/show", params={"noteId": note})
    assert "canary" not in shown.text
    assert anna.post("/v1/workspace/notes/unlock", json={"noteId": note, "secret": "wrong"}).status_code >= 400
    workspace("notes/unlock", noteId=note, secret="a long secret")
    assert "canary" in anna.get("/v1/workspace/notes/show", params={"noteId": note}).text
    workspace("notes/remove-lock", noteId=note)


def test_what_is_the_houses_is_for_the_steward_and_administrators(site: Site) -> None:
    anna, boss = site.program("anna"), site.program("boss")
    (site.home / "crops.md").write_text("# Crops\n\nThe north field is wet, so rye grows there.\n")
    paths = {
        "/v1/cortex?question=rye": "north field is wet",
        "/v1/audit": "key_added",
        "/v1/audit/verify": '"ok":true',
        "/v1/council/status": "AWAITING_COMMAND",
        "/v1/council/agents": "AUDITOR",
        "/v1/council/agents/auditor": "instructions",
    }
    for path, said in paths.items():
        assert refusal(anna.get(path)) == (403, "administrator_needed")
        shown = boss.get(path)
        assert shown.status_code == 200, shown.text
        assert said in shown.text.replace('": ', '":')
    assert refusal(boss.get("/v1/council/agents/NOBODY")) == (404, "agent_not_found")
    actions = {one["action"] for one in boss.get("/v1/audit", params={"limit": 500}).json()}
    assert {"key_added", "workspace_changed", "plan_applied"} & actions


def test_a_person_hears_of_their_own_runs_and_catches_up(site: Site) -> None:
    anna, bert = site.program("anna"), site.program("bert")

    def ends(stream: Any, count: int) -> list[tuple[str, str]]:
        """The ids and runs of so many ends of runs."""
        found: list[tuple[str, str]] = []
        event: dict[str, str] = {}
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            event[name] = value
            if not line:
                if event.get("event") == "run_ended":
                    found.append((event["id"], json.loads(event["data"])["run_id"]))
                event = {}
            if len(found) == count:
                break
        return found

    with bert.stream("GET", "/v1/council/events") as hears_bert, anna.stream("GET", "/v1/council/events") as hears_anna:
        mine = [
            done(given(anna, command(f"Question {n}?", output_artifact_path=f"artifacts/e{n}.md")))["run_id"]
            for n in (1, 2)
        ]
        his = done(given(bert, command("His?", output_artifact_path="artifacts/his.md")))["run_id"]
        heard = ends(hears_anna, 2)
        assert [run for _, run in heard] == mine
        assert [run for _, run in ends(hears_bert, 1)] == [his]
    with anna.stream("GET", "/v1/council/events", headers={"Last-Event-ID": heard[0][0]}) as again:
        assert [run for _, run in ends(again, 1)] == mine[1:]
    assert refusal(httpx2.get(f"{site.url}/v1/council/events")) == (401, "sign_in_needed")


def test_an_open_stream_ends_with_its_key_and_tells_no_more_than_the_roles_of_the_moment(site: Site) -> None:
    for user in ("gone", "lowered"):
        site.cli("users", "add", user, "--role", "administrator")
    bert, gone, lowered = site.program("bert"), site.program("gone"), site.program("lowered")
    told = {"gone": "", "lowered": ""}
    with gone.stream("GET", "/v1/council/events") as hears_gone, lowered.stream("GET", "/v1/council/events") as hears:
        site.cli("keys", "revoke", "gone")
        site.cli("users", "roles", "lowered", "--grant", "user", "--revoke", "administrator")
        his = done(given(bert, command("His?", output_artifact_path="artifacts/his-2.md")))["run_id"]
        mine = done(given(lowered, command("Mine?", output_artifact_path="artifacts/mine.md")))["run_id"]
        for line in hears.iter_lines():
            told["lowered"] += line
            if "run_ended" in told["lowered"] and line.startswith("id:"):
                break
        told["gone"] = "".join(hears_gone.iter_lines())  # to its end
    assert (mine in told["lowered"], his in told["lowered"]) == (True, False)
    assert (mine in told["gone"], his in told["gone"]) == (False, False)


def test_the_conductor_asks_back_and_is_answered(tmp_path: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    gate = threading.Event()
    gate.set()
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Do it"), missing="" if "4711" in prompt else "Which code?"),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: "I did it." if gate.wait(30) else "The gate stayed shut."},
    )
    with served_site(tmp_path / "home", settings="", env=env) as site:
        site.cli("users", "add", "anna")
        site.cli("users", "add", "bert")
        anna, bert = site.program("anna"), site.program("bert")
        asked = done(anna.post("/v1/ask", json={"request": "Do it."}, params={"wait_s": 60}))
        assert (asked["question"], asked["receipt"]) == ("Which code?", None)
        answer = {"answer": "4711"}
        assert refusal(bert.post(f"/v1/ask/{asked['run_id']}/answer", json=answer)) == (404, "run_not_found")
        told = done(anna.post(f"/v1/ask/{asked['run_id']}/answer", json=answer, params={"wait_s": 60}))
        assert told["receipt"]["status"] == "succeeded"
        assert (told["answer"], told["agents"]) == ("I did it.", ["conductor"])
        assert asked["conversation"] == told["conversation"] != ""
        assert json.loads(site.cli("show", asked["run_id"], "--json"))["answer"] == "I did it."
        again = json.loads(site.cli("ask", "Do 4711.", "--json"))
        assert (again["answer"], again["agents"], again["status"]) == ("I did it.", ["conductor"], "succeeded")
        assert again["conversation"] == again["details"]["conversation"]
        assert "I did it." in anna.get(f"/v1/runs/{asked['run_id']}/artifact").text
        [told] = anna.get("/v1/ask").json()
        [exchange] = anna.get(f"/v1/ask/{told['conversation']}").json()
        assert (exchange["request"], exchange["status"]) == ("Do it.", "succeeded")
        assert "I did it." in exchange["answer"]
        gate.clear()
        begun = anna.post("/v1/ask", json={"request": "Do 4711."}, params={"wait_s": 0})
        assert begun.status_code == 202, begun.text
        gate.set()
        assert begun.json()["location"] == f"/v1/runs/{begun.json()['run_id']}"
        wait_until(lambda: done(anna.get(begun.json()["location"]))["receipt"], "it has ended")
        hers = bert.post("/v1/ask", json={"request": "And mine?", "conversation": told["conversation"]})
        assert (hers.status_code, "is not yours." in hers.json()["detail"], "anna" in hers.text) == (422, True, False)
        assert bert.get("/v1/ask").json() == []
        assert refusal(bert.get(f"/v1/ask/{told['conversation']}")) == (404, "run_not_found")


def test_a_specialist_is_made_for_its_person(tmp_path: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = CreationMind()
    with served_site(tmp_path / "home", settings="", env=env) as site:
        site.cli("users", "add", "anna")
        site.cli("users", "add", "bert")
        anna, bert = site.program("anna"), site.program("bert")
        began = anna.post("/v1/commands", json={"type": "create_specialist", "request": WISH})
        assert began.status_code == 202, began.text
        assert began.json()["location"] == f"/v1/runs/{began.json()['run_id']}"
        [draft] = wait_until(lambda: anna.get("/v1/plans", params={"state": "draft"}).json(), "the plan is drafted")
        assert refusal(bert.post(f"/v1/plans/{draft['plan_id']}/confirm", json={})) == (404, "plan_not_found")
        for verb in ("confirm", "apply"):
            done(anna.post(f"/v1/plans/{draft['plan_id']}/{verb}", json={}))
        run = began.json()["run_id"]
        wait_until(lambda: done(anna.get(f"/v1/runs/{run}"))["receipt"], "the specialist is trained")
        [made] = anna.get("/v1/specialists").json()
        shown = done(anna.get(f"/v1/specialists/{made['role']}"))
        assert (shown["created_by"], len(shown["versions"])) == ("anna", 1)
        assert bert.get("/v1/specialists").json() == []
        for name in (made["role"], "NOBODY"):
            assert refusal(bert.get(f"/v1/specialists/{name}")) == (404, "specialist_refused")
        assert refusal(anna.post(f"/v1/specialists/uses/{run}", json={"rating": "good"})) == (400, "usage")
        assert refusal(bert.post(f"/v1/specialists/uses/{run}", json={"rating": "bad"})) == (404, "run_not_found")
