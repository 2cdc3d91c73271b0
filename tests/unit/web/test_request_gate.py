"""What stands before every route: safe headers on every answer, and who may send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from council.desk.desk import Desk
from council.events import Events
from council.ids import SystemClock
from council.settings import Home, Settings
from council.web.asgi import build_application
from council.web.live_updates import Broadcast, Floor
from council.world.world_store import Book

HOST = "council.example.org"


def client(tmp_path: Path, **settings: Any) -> httpx2.AsyncClient:
    desk, events = Desk(Home(tmp_path), {}), Events()
    broadcast, floor = Broadcast(events, "none"), Floor(events)
    app = build_application(desk, Settings(**settings), Book(desk.store, SystemClock()), broadcast, floor)

    @app.get("/defect")
    def defect() -> None:
        raise ZeroDivisionError("a secret")

    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}")


async def test_every_answer_has_the_policy_also_one_to_a_defect_or_to_a_stranger(tmp_path: Path) -> None:
    async with client(tmp_path, http_hosts=(HOST,)) as asking:
        answers = [
            await asking.get(path)
            for path in ("/defect", "/nowhere", "/v1/runs/a%00b", "/v1/runs", "/sign-in", "/static/window.css")
        ]
        answers += [
            await asking.get("/health", headers={"Host": "evil.example"}),
            await asking.post("/sign-in", content=b"x" * 300_000),
        ]
    assert [one.status_code for one in answers] == [500, 404, 404, 401, 200, 200, 400, 413]
    for one in answers:
        assert one.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self';"
        )
        assert "unsafe" not in one.headers["content-security-policy"]
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "same-origin"
    assert "secret" not in answers[0].text


async def test_a_person_in_a_browser_gets_a_page_and_a_program_json_whatever_is_refused(tmp_path: Path) -> None:
    foreign, wants = {"Origin": "https://evil.example"}, {"Accept": "text/html,application/xhtml+xml"}
    asked: list[tuple[int, str, str, dict[str, str]]] = [
        (400, "GET", "/now", {"Host": "evil.example"}), (403, "POST", "/chat", foreign), (404, "GET", "/nowhere", {}),
        (401, "POST", "/chat", {}), (405, "DELETE", "/now", {}), (500, "GET", "/defect", {}), (429, "GET", "/now", {}),
    ]  # fmt: skip
    async with client(tmp_path, http_hosts=(HOST,), http_requests_per_minute=4) as asking:
        pages = [await asking.request(how, path, headers={**said, **wants}) for _, how, path, said in asked]
        programs = [await asking.get("/now"), await asking.get("/v1/runs", headers=wants)]
        programs.append(await asking.get("/now", headers=asked[0][3]))
    assert [one.status_code for one in pages] == [status for status, *_ in asked]
    for one in pages:
        assert one.headers["content-type"] == "text/html; charset=utf-8"
        assert 'role="alert"' in one.text
        assert "default-src" in one.headers["content-security-policy"]
    assert int(pages[-1].headers["retry-after"]) >= 1
    assert {one.headers["content-type"] for one in programs} == {"application/problem+json"}


SAME = {"Sec-Fetch-Site": "same-origin"}
COOKIE = {"Cookie": "council_session=x"}


@pytest.mark.parametrize(
    ("behind_tls", "said", "is_let_through"),
    [
        (False, {}, True),  # a program
        (False, {**SAME, "Origin": f"http://{HOST}", **COOKIE}, True),
        (False, {**SAME, **COOKIE}, True),
        (False, {"Origin": f"http://{HOST}", **COOKIE}, True),
        (False, COOKIE, False),
        (False, {"Sec-Fetch-Site": "none", **COOKIE}, False),
        (False, {"Sec-Fetch-Site": "same-site", "Origin": f"http://{HOST}"}, False),
        (False, {**SAME, "Origin": "null"}, False),
        (False, {**SAME, "Origin": f"http://{HOST}:81"}, False),
        (False, {**SAME, "Origin": f"https://{HOST}"}, False),
        (True, {**SAME, "Origin": f"https://{HOST}", **COOKIE}, True),
        (True, {**SAME, "Origin": f"http://{HOST}", **COOKIE}, False),
    ],
)
async def test_only_a_page_of_this_server_or_a_program_sends(
    tmp_path: Path, behind_tls: bool, said: dict[str, str], is_let_through: bool
) -> None:
    async with client(tmp_path, http_hosts=(HOST,), behind_tls=behind_tls) as asking:
        codes = {
            (await asking.request(method, "/nowhere", headers=said)).status_code for method in ("POST", "PUT", "DELETE")
        }
        assert codes == ({404} if is_let_through else {403})
        assert (await asking.get("/nowhere", headers=said)).status_code == 404


REGISTER = "/v1/agents/register"
FORM = "application/x-www-form-urlencoded"  # of `curl -d`


@pytest.mark.parametrize("kind", ["", FORM, "text/plain", "application/json"])
async def test_a_body_is_json_whatever_its_type_and_no_foreign_form_sends_one(tmp_path: Path, kind: str) -> None:
    said = {"Content-Type": kind} if kind else {}
    async with client(tmp_path, http_hosts=(HOST,)) as asking:
        told = await asking.post(REGISTER, content=b'{"name": ""}', headers=said)
        foreign = {**said, "Origin": "https://evil.example"}
        refused = await asking.post(REGISTER, content=b'{"name": "ada"}', headers=foreign)
        wrong = [await asking.post(REGISTER, content=body, headers=said) for body in (b"name=ada", b"", b'{"x": 1}')]
        twice = await asking.post(REGISTER, content=b'{"name": "ada", "name": "eve"}', headers=said)
    assert told.json()["faults"] == [{"where": "body.name", "problem": "is empty"}]  # so far was it read
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_page")
    assert [one.status_code for one in wrong] == [422, 422, 422]
    assert twice.json()["faults"] == [{"where": "body.name", "problem": "this key stands twice"}]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"name": }', "is not JSON: expecting value (line 1, column 10)"),
        (b'"\xff"', "is not text in UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"name": ' + b"1" * 5_000 + b"}", "has a number with too many digits"),
        (b"[]", "must be an object with keys"),
    ],
)
async def test_a_body_that_is_no_json_object_is_told_so(tmp_path: Path, body: bytes, problem: str) -> None:
    async with client(tmp_path, http_hosts=(HOST,)) as asking:
        told = await asking.post(REGISTER, content=body)
    assert (told.status_code, told.json()["faults"]) == (422, [{"where": "body", "problem": problem}])
