"""What kills, stops and pauses leave of a world: keys, players and state, and each accepted submission once."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import httpx2
import pytest

from tests.harness import command, drop_command, receipts, rows_of, wait_until
from tests.world_client import SLOW, events_of, serving, world_home

SCRIPT = 'default: {text: "Nothing to add.", delay_s: 1.0}\n'


@pytest.mark.parametrize(
    "instant",
    [
        "sql UPDATE world SET phase = 'accepting'",  # it is settled, and nothing of it is written
        "sql INSERT INTO world_events",  # all is written, and not committed
        "event world_round_settled",  # it is committed, and nobody knows
    ],
)
def test_a_kill_between_settling_and_the_next_round_counts_each_submission_once(tmp_path: Path, instant: str) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    with serving(home, clocked=True, fault=f"kill-at:1:{instant}") as served:
        player = served.register()
        [land] = [one["land"] for one in served.get("/v1/world/snapshot")["members"] if one["id"] == player.member_id]
        submitted = player.act("engine.expand()").json()["submission_id"]
        mechanism_id = player.propose("engine.rules['expands'] = 2").json()["mechanism_id"]
        served.pass_round()
        assert served.daemon.process.wait(60) == -9
    with serving(home, clocked=True) as served:
        player.served = served
        wait_until(lambda: served.get("/v1/world")["round_id"] == 1, "the round is settled")
        told = player.ask("GET", "/v1/agents/me").json()
        assert (told["member_id"], told["alive"]) == (player.member_id, True)
        accepted = served.get("/v1/world/rounds/1")["accepted_action_ids"]
        assert sorted(accepted) == sorted(["1-1-join", f"{submitted}.1", mechanism_id])
        [after] = [one["land"] for one in served.get("/v1/world/snapshot")["members"] if one["id"] == player.member_id]
        assert after == land + 1
        assert [one["event_id"] for one in served.get("/v1/world/events")] == [1]
        assert served.get(f"/v1/world/mechanisms/{mechanism_id}")["status"] == "pending_vote"
        served.end_round()
        assert "2 rounds, all as recorded" in served.order("verify")


def test_after_a_kill_and_hours_away_one_round_is_settled_and_none_caught_up_on(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    with serving(home, clocked=True) as served:
        player = served.register()
        submitted = player.act("engine.expand()").json()["submission_id"]
        served.daemon.kill()
        for _ in range(10):
            served.pass_round()
    with serving(home, clocked=True) as served:
        wait_until(lambda: served.get("/v1/world")["round_id"] >= 1, "the round is settled")
        assert served.get("/v1/world/rounds/1")["accepted_action_ids"] == ["1-1-join", f"{submitted}.1"]
        now = served.get("/v1/world/rounds/current/deadline")
        assert (now["round_id"], now["state"]) == (2, "accepting")
        assert now["seconds_remaining"] > 3_000


def test_who_registers_while_a_round_is_worked_on_plays_from_the_next(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    with serving(home, clocked=True) as served:
        first = served.register()
        first.act("while True: pass")
        served.pass_round()
        wait_until(lambda: rows_of(home, "SELECT phase FROM world") == [("executing",)], "the code runs")
        late = served.register()
        assert late.act("engine.expand()").json()["status"] == "rejected"
        wait_until(lambda: served.get("/v1/world")["round_id"] == 1, "the round is settled")
        assert late.act("engine.expand()").status_code == 200
        served.end_round()
        played = [one["id"] for one in served.get("/v1/world/snapshot")["members"] if one["played"]]
        assert played == [first.member_id, late.member_id]


def test_a_pause_while_a_round_is_worked_on_loses_nothing_that_is_accepted_afterwards(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    with serving(home, clocked=True) as served:
        first, second = served.register(), served.register()
        asked = [first.act("for _ in range(10**7): pass", "engine.expand()").json()["submission_id"]]
        served.pass_round()
        wait_until(lambda: rows_of(home, "SELECT phase FROM world") == [("executing",)], "the code runs")
        served.order("pause")
        served.order("resume")
        told = second.play("engine.expand()")
        asked.append(told["submission_id"])
        receipt = served.end_round()
        assert (told["round_id"], receipt["round_id"]) == (1, 1)
        assert {f"{one}.1" for one in asked} <= set(receipt["accepted_action_ids"])
        assert "1 rounds, all as recorded" in served.order("verify")


def test_who_is_banned_while_its_code_runs_changes_nothing(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    with serving(home, clocked=True) as served:
        player, spinning = served.register(), served.register()
        player.act("engine.expand()")
        spinning.act("while True: pass")
        served.pass_round()
        wait_until(lambda: rows_of(home, "SELECT phase FROM world") == [("executing",)], "the code runs")
        served.order("ban", str(player.agent_id))
        wait_until(lambda: served.get("/v1/world")["round_id"] == 1, "the round is settled")
        assert served.get("/v1/world/rounds/1")["accepted_action_ids"] == ["1-2-join"]
        errors = "SELECT error FROM world_submissions WHERE agent_id = ?"
        assert rows_of(home, errors, player.agent_id) == [("the player is banned",)]


def test_a_stop_with_open_streams_and_a_deliberation_in_mid_turn_loses_nothing(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=6, land="8x8", pace=SLOW)
    settings = home / "council.toml"
    settings.write_text(settings.read_text().replace('"offline"', '"scripted:script.yaml"'))
    (home / "script.yaml").write_text(SCRIPT)
    with serving(home, clocked=True) as served, contextlib.ExitStack() as open_streams:
        player = served.register()
        served.end_round()
        submitted = player.act("engine.expand()").json()["submission_id"]
        streams = []
        for _ in range(4):
            url = f"{served.url}/v1/world/events/stream"
            stream = open_streams.enter_context(httpx2.stream("GET", url, timeout=30))
            streams.append(events_of(stream.iter_lines()))
            assert [one["event_id"] for one in itertools.islice(streams[-1], 1)] == [1]
        drop_command(home, command())
        served.daemon.wait("turn_started")
        assert served.daemon.stop() == 0
        assert [list(stream) for stream in streams] == [[]] * 4, "each stream ended, and none broke"
    with serving(home, clocked=True) as served:
        served.daemon.wait("run_ended")
        served.end_round()
        assert f"{submitted}.1" in served.get("/v1/world/rounds/2")["accepted_action_ids"]
        assert "2 rounds, all as recorded" in served.order("verify")
    assert [one["status"] for one in receipts(home) if one.get("artifact")] == ["succeeded"]


def test_eight_players_for_fifty_rounds(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=20, land="14x12", pace="1")
    strategies = (
        "engine.expand()",
        "engine.attack(min((m for m in engine.current_members if m is not engine.me), key=lambda m: m.vitality))",
        "engine.expand(); engine.offer(min(engine.current_members, key=lambda m: m.cargo), 1)",
        "[engine.send_message(m.id, 'hello') for m in engine.current_members if m is not engine.me]; engine.expand()",
    )
    submitted: set[str] = set()
    acted_in: set[int] = set()
    with serving(home) as served:
        players = {number: served.register(f"p{number}") for number in range(8)}
        with httpx2.stream("GET", f"{served.url}/v1/world/events/stream", timeout=30) as stream:
            for event in itertools.islice(events_of(stream.iter_lines()), 50):
                for number, player in players.items():
                    answer = player.act(strategies[number % 4], key=f"round-{event['round_id']}")
                    told = answer.json()
                    if told.get("code") == "member_dead":  # old age comes to all: who lost its member registers again
                        players[number] = served.register(f"p{number}")
                    elif answer.status_code == 200:
                        submitted.add(told["submission_id"])
                        acted_in.add(told["round_id"])
                    assert answer.status_code in (200, 409), answer.text
        served.settle()
        counted: list[str] = []
        for event in served.get("/v1/world/events", limit=500):
            receipt = event["payload"]
            counted += {
                one.rpartition(".")[0]
                for one in (*receipt["accepted_action_ids"], *receipt["rejected_action_ids"])
                if "." in one
            }
        assert sorted(counted) == sorted(submitted), "each accepted submission counts in one round"
        assert len(acted_in) >= 45
        assert all(one["error"] == "" for one in players[0].ask("GET", "/v1/agents/me/submissions").json())
        figures = served.get("/v1/world/metrics", limit=500)
        assert sum(one["trade_volume"] for one in figures) > 0
        assert sum(one["conflict_volume"] for one in figures) > 0
        assert "all as recorded" in served.order("verify")
