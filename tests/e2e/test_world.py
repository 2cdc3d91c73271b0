"""The world over HTTP, through the real daemon and the real cage (Leviathan phase 2, *Testing Strategy*)."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cage import below
from tests.harness import (
    TIMEOUT_S,
    command,
    drop_command,
    execute,
    make_home,
    opened,
    receipts,
    rows_of,
    run_cli,
    wait_until,
)
from tests.world_client import SLOW, Caller, Served, answers, events_of, serving, world_home


@pytest.fixture(name="quick", scope="module")
def _quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A world whose rounds take two seconds. Each test brings players of its own."""
    home = world_home(tmp_path_factory.mktemp("quick") / "home", members=60, land="30x30", pace="2")
    with serving(home) as served:
        yield served


@pytest.fixture(name="open_")
def _open(tmp_path: Path) -> Iterator[Served]:
    """A world whose first round stays open."""
    with serving(world_home(tmp_path / "home", members=2, land="4x4", pace=SLOW)) as served:
        yield served


def member(served: Served, member_id: int) -> dict[str, Any]:
    return next(one for one in served.get("/v1/world/snapshot")["members"] if one["id"] == member_id)


# ── the document's own tests ─────────────────────────────────────────────────────────────────────────────────────────


def test_register_agent(quick: Served) -> None:
    player = quick.register("MyBot")
    assert player.agent_id >= 1
    assert player.key.startswith("lev_")
    assert len(player.key) >= len("lev_") + 24
    assert player.member_id in {one["id"] for one in quick.get("/v1/world/snapshot")["members"]}


def test_a_name_writes_nothing_else_into_the_terminal(quick: Served) -> None:
    httpx2.post(f"{quick.url}/v1/agents/register", json={"name": "a\x1b]0;title\x07\nplayer 9 forged"})
    lines = run_cli("world", "status", cwd=quick.home).stdout.splitlines()
    assert not [line for line in lines if "\x1b" in line or "\x07" in line]
    assert [line.split()[0] for line in lines if "forged" in line] == ["player"]
    assert [line for line in lines if line.startswith("player")] == []


def test_register_too_many(open_: Served) -> None:
    players = [open_.register() for _ in range(2)]
    assert len({player.member_id for player in players}) == 2
    refused = httpx2.post(f"{open_.url}/v1/agents/register", json={"name": "late"})
    assert (refused.status_code, refused.json()["code"]) == (409, "world_full")


def test_agent_me(quick: Served) -> None:
    player = quick.register("Anna")
    told = player.ask("GET", "/v1/agents/me").json()
    assert {key: told[key] for key in ("agent_id", "name", "member_id", "alive")} == {
        "agent_id": player.agent_id, "name": "Anna", "member_id": player.member_id, "alive": True,
    }  # fmt: skip


def test_submit_action_accepted(open_: Served) -> None:
    told = open_.register().act("engine.expand()")
    assert (told.status_code, told.json()["status"], told.json()["round_id"]) == (200, "accepted", 1)


def test_submit_action_rejected(open_: Served) -> None:
    player = open_.register()
    open_.order("pause")
    told = player.act("engine.expand()")
    assert (told.status_code, told.json()["status"], told.json()["round_id"]) == (409, "rejected", 1)
    assert "paused" in told.json()["reason"]
    open_.order("resume")
    assert player.act("engine.expand()").status_code == 200


def test_submit_action_unauthorized(open_: Served) -> None:
    body = {"code": "def agent_action(e, m): pass", "idempotency_key": "k"}
    without = httpx2.post(f"{open_.url}/v1/world/actions", json=body)
    unknown = httpx2.post(f"{open_.url}/v1/world/actions", json=body, headers={"X-API-Key": "lev_" + "0" * 48})
    in_query = httpx2.get(f"{open_.url}/v1/agents/me", params={"api_key": open_.register().key})
    assert [one.status_code for one in (without, unknown, in_query)] == [401, 403, 401]


def test_submit_action_idempotency(open_: Served) -> None:
    one, other = open_.register(), open_.register()
    first, again = one.act("engine.expand()"), one.act("engine.expand()")
    assert first.json() == again.json()
    assert one.act("engine.attack(2)").status_code == 422, "the same key with another body"
    assert other.act("engine.expand()").json()["submission_id"] != first.json()["submission_id"], (
        "keys are each player's"
    )
    assert len(rows_of(open_.home, "SELECT 1 FROM world_submissions WHERE kind = 'action'")) == 2


def test_deadline_endpoint(open_: Served) -> None:
    told = open_.get("/v1/world/rounds/current/deadline")
    assert (told["round_id"], told["state"]) == (1, "accepting")
    assert 0 < told["seconds_remaining"] <= 3600
    assert told["deadline_utc"].endswith("Z")
    open_.order("pause")
    told = open_.get("/v1/world/rounds/current/deadline")
    assert (told["state"], told["deadline_utc"], told["seconds_remaining"]) == ("paused", None, 0.0)


def test_a_number_that_no_database_holds_is_refused_by_name(open_: Served) -> None:
    player, most = open_.register(), 9 * 10**30
    for path, place in (
        (f"/v1/world/rounds/{most}", "path.round_id"),
        (f"/v1/world/events?since_round={most}", "query.since_round"),
    ):
        refused = player.ask("GET", path)
        assert (refused.status_code, refused.json()["faults"][0]["where"]) == (422, place)


def test_full_external_agent_round(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", pace="8")) as served:
        served.settle()  # from here the window is open for all of its time
        player = served.register()
        before = served.get("/v1/world/snapshot")
        submitted = player.play("engine.expand(engine.me)")
        assert submitted["round_id"] == before["round_id"] + 1
        receipt = served.settle()
        assert f"{submitted['submission_id']}.1" in receipt["accepted_action_ids"]
        after = member(served, player.member_id)
        [land] = [one["land"] for one in before["members"] if one["id"] == player.member_id]
        assert (after["land"], after["played"]) == (land + 1, True)


# ── what else is promised ────────────────────────────────────────────────────────────────────────────────────────────


def test_discovery_lists_every_route_of_players(open_: Served) -> None:
    told = open_.get("/.well-known/leviathan-agent.json")
    described = open_.get("/openapi.json")["paths"]
    of_players = ("/health", "/.well-known/", "/v1/agents", "/v1/world")
    assert set(told["endpoints"]) == {
        f"{method.upper()} {path}"
        for path, methods in described.items()
        for method in methods
        if path.startswith(of_players)
    }
    assert (told["name"], told["api_version"]) == ("council", "v1")


def test_errors_of_code_reach_their_player_and_nobody_else(quick: Served) -> None:
    player, other = quick.register(), quick.register()
    submitted = player.play("1 / 0")
    other.play("engine.expand()")
    wait_until(lambda: quick.get("/v1/world")["round_id"] >= submitted["round_id"], "the round is settled")
    told = [one["error"] for one in player.ask("GET", "/v1/agents/me/submissions").json() if one["kind"] == "action"]
    assert told == ["ZeroDivisionError: division by zero"]
    assert all(not one["error"] for one in other.ask("GET", "/v1/agents/me/submissions").json())
    assert "def agent_action" not in "".join(
        row[0]
        for row in rows_of(quick.home, "SELECT code FROM world_submissions WHERE round_id = ?", submitted["round_id"])
    ), "the log keeps the actions, not the code"


def test_code_that_never_ends_takes_the_time_of_its_player_and_of_nobody_else(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", pace="6")) as served:
        endless, other = served.register(), served.register()
        served.settle()  # from here the window is open for all of its time
        bodies = [(endless, "while True: pass")] * 3 + [(other, "engine.expand()")] * 2
        sent = [player.act(body, key=str(number)).json() for number, (player, body) in enumerate(bodies)]
        assert len({one["round_id"] for one in sent}) == 1
        assert all("submission_id" in one for one in sent)
        wait_until(lambda: served.get("/v1/world")["round_id"] >= sent[0]["round_id"], "the round is settled")

        def errors(player: Caller) -> list[str]:
            return [one["error"] for one in player.ask("GET", "/v1/agents/me/submissions").json()]

        assert errors(endless).count("it was not run: your code has had its 2 s of this round") == 2
        assert errors(other) == ["", ""]


def test_messages_reach_their_member_in_its_code_and_over_http(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", pace="5")) as served:
        sender, receiver = served.register(), served.register()
        served.settle()  # from here the window is open for all of its time
        sent = sender.play(f"engine.send_message({receiver.member_id}, 'Truce?')")
        wait_until(lambda: served.get("/v1/world")["round_id"] >= sent["round_id"], "the round is settled")
        answered = receiver.play("[(who, text)] = engine.me.messages", "engine.send_message(who, text + ' Yes.')")
        told = receiver.ask("GET", "/v1/agents/me/messages").json()
        assert [(one["from_id"], one["text"]) for one in told] == [(sender.member_id, "Truce?")]
        assert sender.ask("GET", "/v1/agents/me/messages").json() == []
        wait_until(lambda: served.get("/v1/world")["round_id"] >= answered["round_id"], "the round is settled")
        assert [one["text"] for one in sender.ask("GET", "/v1/agents/me/messages").json()] == ["Truce? Yes."]


def test_the_stream_goes_on_after_the_last_event_and_ends_with_the_daemon(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home")) as served:
        served.settle(2)
        with httpx2.stream(
            "GET", f"{served.url}/v1/world/events/stream", headers={"Last-Event-ID": "1"}, timeout=30
        ) as stream:
            events = events_of(stream.iter_lines())
            told = [event["event_id"] for event in itertools.islice(events, 2)]
            drop_command(served.home, command())
            served.daemon.wait("run_ended")
            assert served.daemon.stop() == 0
            list(events)
        assert told == [2, 3]
    assert [one["status"] for one in receipts(served.home) if one.get("artifact")] == ["succeeded"]


def test_the_stream_tells_each_event_of_a_long_log_once_and_then_the_new_ones(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home")
    with opened(home) as store:
        row = "INSERT INTO world_events (event_id, event_type, round_id, timestamp, payload) VALUES (?, 'past', 0, '', '{}')"
        store.write_now(lambda tx: [tx.execute(row, (number,)) for number in range(1, 1_201)])
        store.write_now(lambda tx: tx.execute("UPDATE world SET next_event_id = 1201"))
    with serving(home) as served:
        for since in (0, 700):
            headers = {"Last-Event-ID": str(since)}
            with httpx2.stream("GET", f"{served.url}/v1/world/events/stream", headers=headers, timeout=30) as stream:
                told = list(itertools.islice(events_of(stream.iter_lines()), 1_202 - since))
            assert [event["event_id"] for event in told] == list(range(since + 1, 1_203))
            assert {event["event_type"] for event in told[-2:]} == {"round_settled"}


@pytest.mark.parametrize("name", ["settler", "raider"])
def test_an_example_player_without_a_server_says_so_in_one_line(name: str) -> None:
    player = Path(__file__).parents[2] / "docs" / "players" / f"{name}.py"
    words = [sys.executable, str(player), "http://127.0.0.1:1", "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"http://127\.0\.0\.1:1: .+\n", done.stderr)


def test_the_example_players_play(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "docs" / "players"
    with serving(world_home(tmp_path / "home", pace="3")) as served:
        for name in ("settler", "raider"):
            words = [sys.executable, str(examples / f"{name}.py"), served.url, "2"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
            assert [line.split()[1] for line in done.stdout.splitlines()] == ["accepted", "accepted"]
        accepted = [
            one
            for event in served.get("/v1/world/events")
            for one in event["payload"]["accepted_action_ids"]
            if "." in one
        ]
        assert {one.split("-")[1] for one in accepted} == {"1", "2"}
        assert rows_of(served.home, "SELECT DISTINCT error FROM world_submissions") == [("",)]


def test_reads_change_nothing(tmp_path: Path) -> None:
    homes = [world_home(tmp_path / name, members=8, land="6x6") for name in ("read", "unread")]
    told = []
    for number, home in enumerate(homes):
        with serving(home) as served:
            for path in ("/v1/world/snapshot", "/v1/world", "/v1/world/metrics", "/v1/world/rounds/current") * (
                10 if number == 0 else 0
            ):
                served.get(path)
            served.settle(2)
            told.append([served.get(f"/v1/world/rounds/{number}")["snapshot_hash_after"] for number in (1, 2)])
    assert told[0] == told[1]


def test_keys_and_world_outlive_a_kill_and_what_was_accepted_counts_once(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", pace="3")
    with serving(home) as served:
        player = served.register()
        submitted = player.play("engine.expand()")
        served.daemon.kill()
    with serving(home) as served:
        player.served = served
        wait_until(lambda: served.get("/v1/world")["round_id"] >= submitted["round_id"], "the round is settled")
        assert player.ask("GET", "/v1/agents/me").json()["member_id"] == player.member_id
        receipt = served.get(f"/v1/world/rounds/{submitted['round_id']}")
        assert receipt["accepted_action_ids"].count(f"{submitted['submission_id']}.1") == 1
        assert "all as recorded" in served.order("verify")


def test_a_kill_while_code_is_in_the_cage_loses_nothing(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", pace="4")
    state = "SELECT phase, round_id FROM world"
    with serving(home) as served:
        player = served.register()
        submitted = player.play("for _ in range(10**7): pass", "engine.expand()")
        caged = ("executing", submitted["round_id"] - 1)
        wait_until(lambda: rows_of(home, state) == [caged], "the code runs")
        served.daemon.kill()
        assert rows_of(home, state) == [caged]
    with serving(home) as served:
        wait_until(lambda: served.get("/v1/world")["round_id"] >= submitted["round_id"], "the round is settled")
        receipt = served.get(f"/v1/world/rounds/{submitted['round_id']}")
        assert receipt["accepted_action_ids"].count(f"{submitted['submission_id']}.1") == 1
        assert "all as recorded" in served.order("verify")


def test_what_a_player_submits_takes_effect_in_the_order_in_which_it_was_accepted(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", pace=SLOW)
    with serving(home, clocked=True) as served:
        player = served.register()
        sent = [player.act("engine.expand()", key=key).json()["submission_id"] for key in ("i1", "i5", "i3", "i4")]
        again = player.act("engine.expand()", key="i5").json()["submission_id"]
        receipt = served.end_round()
        told = player.ask("GET", "/v1/agents/me/submissions").json()
        assert again == sent[1]
        assert [one["submission_id"] for one in told] == sent
        assert f"{sent[0]}.1" in receipt["accepted_action_ids"]
        assert receipt["rejected_action_ids"] == [f"{one}.1" for one in sent[1:]]
        assert "all as recorded" in served.order("verify")


def test_code_of_several_players_runs_at_the_same_time(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", pace="4")
    (home / "council.toml").write_text(f"{(home / 'council.toml').read_text()}sandbox_workers = 2\n")
    with serving(home) as served:
        for player in (served.register(), served.register()):
            player.play("while True: pass")

        def jobs() -> int:
            found = 0
            for pid in below(served.daemon.process.pid):
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    found += "Max open files            8 " in Path(f"/proc/{pid}/limits").read_text()
            return found

        assert wait_until(lambda: (found := jobs()) > 1 and found, "jobs run side by side") == 2


def test_one_changed_byte_in_one_recorded_action_is_found(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home")
    with serving(home) as served:
        player = served.register()
        round_id = player.play("engine.offer(2, 3)")["round_id"]
        wait_until(lambda: served.get("/v1/world")["round_id"] >= round_id + 1, "the round is settled")
    assert run_cli("world", "verify", cwd=home).returncode == 0
    [(action,)] = rows_of(
        home, "SELECT action FROM world_actions WHERE round_id = ? AND action LIKE '%offer%'", round_id
    )
    execute(
        home,
        "UPDATE world_actions SET action = ? WHERE round_id = ? AND action LIKE '%offer%'",
        action.replace("3000", "3001"),
        round_id,
    )
    found = run_cli("world", "verify", cwd=home)
    assert found.returncode == 1
    assert found.stdout.startswith(f"Round {round_id} differs: ")


def test_the_steward_bans_and_lets_in_again_by_the_agents_id(open_: Served) -> None:
    one, other = open_.register(), open_.register()
    open_.order("ban", str(other.agent_id))
    assert (one.act("engine.expand()").status_code, other.act("engine.expand()").status_code) == (200, 403)
    assert other.ask("GET", "/v1/agents/me").json()["code"] == "banned"
    open_.order("unban", str(other.agent_id))
    assert other.act("engine.expand()").status_code == 200
    open_.daemon.wait("world_changed", note=f"Player {other.agent_id} is banned.")
    assert rows_of(open_.home, "SELECT kind, action, actor FROM audit_records ORDER BY seq") == [
        ("effect", action, "steward") for action in ("world_init", "world_ban", "world_unban")
    ]
    assert run_cli("audit", "verify", cwd=open_.home).returncode == 0


def test_who_is_no_administrator_orders_nothing(open_: Served) -> None:
    assert run_cli("users", "add", "anna", cwd=open_.home).returncode == 0
    player = open_.register()
    for order in (
        {"type": "world_pause"},
        {"type": "world_ban", "agent": 1},
        {"type": "world_rollback", "to_round": 0},
    ):
        path = drop_command(open_.home, {**order, "user": "anna"}, f"{order['type']}.json")
        refused = open_.daemon.wait("command_refused", file=path.name)
        assert "not an administrator" in refused["error"]
    assert player.act("engine.expand()").status_code == 200


def test_the_wrong_orders_are_refused_in_words(open_: Served) -> None:
    for words, said in (
        (("init",), "there is a world already"),
        (("resume",), "not paused"),
        (("ban", "99"), "no player 99"),
        (("rollback", "5"), "not an older round"),
        (("init", "--land", "big"), "20x20"),
        (("init", "--members", "400"), "400 cells for 400 members"),
    ):
        refused = run_cli("world", *words, cwd=open_.home)
        assert refused.returncode != 0
        assert said in refused.stderr
        assert [*(open_.home / "commands" / "failed").glob("[!.]*")] == []  # there is no file to correct
    file = open_.home / "order.json"
    for order, said in (
        ({"type": "world_init"}, "there is a world already"),
        ({"type": "world_resume"}, "not paused"),
        ({"type": "world_ban", "agent": 99}, "no player 99"),
        ({"type": "world_rollback", "to_round": 5}, "not an older round"),
        ({"type": "world_pause"}, "ok (world_pause)"),
    ):
        file.write_text(json.dumps(order))
        assert said in run_cli("validate", str(file), cwd=open_.home).stdout


def test_bodies_that_do_not_fit_are_problems(open_: Served) -> None:
    player = open_.register()
    big = player.ask("POST", "/v1/world/actions", json={"code": "x" * 300_000, "idempotency_key": "k"})
    long = player.ask("POST", "/v1/world/actions", json={"code": "x" * 70_000, "idempotency_key": "k"})
    headers = {"X-API-Key": player.key, "Content-Type": "application/json"}
    deep = httpx2.post(f"{open_.url}/v1/world/actions", content=b"[" * 100_000, headers=headers)
    said_nothing = httpx2.post(
        f"{open_.url}/v1/world/actions", content=iter([b"x" * 100_000] * 3), headers=headers
    )  # chunked: nothing declares its length
    assert [one.status_code for one in (big, long, deep, said_nothing)] == [413, 422, 422, 413]
    assert big.json()["code"] == said_nothing.json()["code"] == "content_too_large"
    for told in (big, long, deep, said_nothing):
        assert told.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in told.text
    assert answers(open_.url)


def test_a_home_without_a_world_says_so(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "offline"\n')
    with serving(home) as served:
        for path in (
            "/v1/world",
            "/v1/world/snapshot",
            "/v1/world/rounds/current",
            "/v1/world/rounds/current/deadline",
        ):
            told = httpx2.get(f"{served.url}{path}")
            assert (told.status_code, told.json()["code"]) == (404, "no_world")
    assert "council world init" in run_cli("world", "status", cwd=home).stderr
    (tmp_path / "pause.json").write_text('{"type": "world_pause"}')
    for asked in (("world", "pause"), ("submit", "--wait", str(tmp_path / "pause.json"))):
        refused = run_cli(*asked, cwd=home)
        assert (refused.returncode, "error (no_world): " in refused.stderr) == (2, True)


def test_a_world_that_another_version_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", pace=SLOW)
    execute(home, """UPDATE world SET state = replace(state, '"relationships"', '"relations"')""")
    with serving(home) as served:
        told = httpx2.get(f"{served.url}/v1/world")
        assert (told.status_code, told.json()["code"]) == (500, "world_unreadable")
    for words in (("status",), ("verify",), ("rollback", "0")):
        refused = run_cli("world", *words, cwd=home)
        assert refused.returncode != 0
        assert "another version of Council" in refused.stderr
        assert "another home" in refused.stderr


def test_the_status_shows_the_players(open_: Served) -> None:
    player = open_.register("Anna")
    told = json.loads(run_cli("world", "status", "--json", cwd=open_.home).stdout)
    assert [(one["agent_id"], one["name"], one["member_id"]) for one in told["players"]] == [
        (player.agent_id, "Anna", player.member_id)
    ]
    assert player.key not in json.dumps(told)
