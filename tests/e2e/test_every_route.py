"""Every route and page that the router has, asked as nobody should ask it: refused, and nothing is changed.

The routes come from the application itself. A new one without a sign-in fails here until it stands in OPEN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from council.storage.reader import Reader
from tests.harness import drop_command, make_home, opened, rows_of, wait_until
from tests.site import Site, Way, site, ways
from tests.space import Space

SETTINGS = 'model = "offline"\nhttp_requests_per_minute = 1000000\nsettle_s = 0.5\n'
CANARY = "walnut-7731"  # stands in all that is ada's
OPEN = {  # these answer whoever asks: the daemon's pulse, the way in, and the world, which strangers' programs read
    "GET /openapi.json", "GET /health", "GET /sign-in", "GET /static/{name}",
    "GET /.well-known/leviathan-agent.json", "POST /v1/agents/register", "GET /v1/world", "GET /v1/world/snapshot",
    "GET /v1/world/rules", "GET /v1/world/rounds/current", "GET /v1/world/rounds/current/deadline",
    "GET /v1/world/rounds/{round_id}", "GET /v1/world/metrics", "GET /v1/world/events", "GET /v1/world/events/stream",
    "GET /v1/world/mechanisms", "GET /v1/world/mechanisms/{mechanism_id}",
}  # fmt: skip
REFUSED = (401, 403, 303)  # with the page to sign in instead
_PLAYERS = re.compile(r"/v1/(world|agents)(/|$)")  # by a player's key, which is no person's


@pytest.fixture(scope="module", name="served")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, list[Way]]]:
    home = make_home(tmp_path_factory.mktemp("every") / "home", settings=SETTINGS)
    with opened(home) as store:
        space = Space(store, home / ".council").furnish()
        note = space.do("ada", "createNote", title=CANARY, content=CANARY)
    served = site(home)
    served.cli("users", "add", "bob")
    task = {"projectId": space.ids["project"], "title": CANARY}
    with served.serving() as daemon:
        drop_command(
            home,
            {"type": "plan", "kind": "tasks", "user": "ada", "operations": [{"tool": "createTask", "arguments": task}]},
            "p.json",
        )
        daemon.wait("control", type="plan")
        [(plan,)] = rows_of(home, "SELECT plan_id FROM plans")
        drop_command(home, {"task_description": CANARY, "user": "ada", "config": {"max_rounds": 1},
                            "output_artifact_path": "artifacts/ada.md"})  # fmt: skip
        run_id = daemon.wait("run_ended")["run_id"]
        wait_until(lambda: rows_of(home, "SELECT run_id FROM runs WHERE open = 1") == [], "its file is taken")
        ids = {
            "run_id": run_id, "run": run_id, "plan_id": plan, "plan": plan, "note_id": note, "note": note,
            "role": "AUDITOR", "round_id": "1", "mechanism_id": "1-1", "name": "window.css", "conversation": "ada",
            "projectId": space.ids["project"], "taskId": space.ids["task"], "noteId": note, "orgId": space.ids["org"],
        }  # fmt: skip
        yield served, ways(home, ids)


def ask(way: Way, client: httpx2.Client, **how: object) -> tuple[int, str]:
    """The status, and the body; of the stream of a page, its beginning."""
    with client.stream(way.method, way.path, timeout=60, **how) as answer:  # type: ignore[arg-type]
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, next(answer.iter_text(), "") if way.path.endswith(".live") else ""
        return answer.status_code, answer.read().decode()


def state(home: Path) -> dict[str, object]:
    """All that a request could change: every row but the daemon's own notes, and every file but the logs."""

    def rows(tx: object) -> dict[str, object]:
        names = [row[0] for row in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]  # type: ignore[attr-defined]
        kept = [name for name in names if not name.startswith(("audit", "sqlite", "marks"))]
        return {name: sorted(map(repr, tx.execute(f"SELECT * FROM {name}").fetchall())) for name in kept}  # type: ignore[attr-defined]

    files = {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and ".council" not in path.parts
    }
    return {**Reader(home / ".council").read(rows), **files}


def test_whoever_is_not_signed_in_gets_nothing_but_the_way_in(served: tuple[Site, list[Way]]) -> None:
    here, found = served
    before = state(here.home)
    with httpx2.Client(base_url=here.url) as nobody:
        for sent in ({}, {"X-API-Key": "lev_" + "0" * 48}, {"Cookie": "council_session=council-session-" + "0" * 48}):
            silent = {} if "Cookie" not in sent else {"Origin": here.url}
            answered = {way.name for way in found if ask(way, nobody, headers={**sent, **silent})[0] not in REFUSED}
            assert answered == OPEN & {way.name for way in found}
    assert state(here.home) == before


def test_another_person_sees_and_changes_nothing_that_is_not_theirs(served: tuple[Site, list[Way]]) -> None:
    here, found = served
    before = state(here.home)
    persons = [way for way in found if way.name not in OPEN and not _PLAYERS.match(way.route)]
    with here.signed_in("bob") as bob, here.signed_in("ada") as ada:
        before["sign_ins"] = state(here.home)["sign_ins"]
        shown = [way.name for way in persons if way.method == "GET" and CANARY in ask(way, bob)[1]]
        assert shown == []
        of_somebody = [way for way in persons if way.path != way.route and way.route != "/static/{name}"]
        allowed = [way.name for way in of_somebody if ask(way, bob)[0] < 400]
        assert allowed == []
        closed = {way.name for way in persons if way.method == "GET" and ask(way, ada)[0] == 403}
        assert closed >= {"GET /house", "GET /house/audit", "GET /house/settings", "GET /v1/audit", "GET /v1/cortex"}
        assert closed <= {way.name for way in persons if way.method == "GET" and ask(way, bob)[0] == 403}
        seen = [way.name for way in persons if way.method == "GET" and CANARY in ask(way, ada)[1]]
        assert seen, "the canary is where it would be seen"
    assert state(here.home) == before


def test_what_another_site_or_name_sends_is_refused_before_it_is_looked_at(served: tuple[Site, list[Way]]) -> None:
    here, found = served
    with here.signed_in() as steward:
        before = state(here.home)
        answers = {ask(way, steward, headers={"Host": "evil.example"}) for way in found}
        assert {status for status, _ in answers} == {400}
        writes = [way for way in found if way.method != "GET"]
        for foreign in (
            {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
        ):  # fmt: skip
            for way in writes:
                status, told = ask(way, steward, headers=foreign, data={"plan": "last"})
                assert (status, json.loads(told)["code"]) == (403, "foreign_page"), (way, foreign)
        assert state(here.home) == before


def test_to_look_changes_nothing_and_a_write_is_never_a_look(served: tuple[Site, list[Way]]) -> None:
    here, found = served
    with here.signed_in() as steward:
        before = state(here.home)
        for way in found:
            status, told = ask(way._replace(method="GET"), steward)
            assert status < 500, (way, told)
            assert way.method == "GET" or way._replace(method="GET") in found or status in (404, 405), way
        assert state(here.home) == before
