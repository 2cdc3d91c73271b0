"""What the original world got wrong for its players: dead members, bans by the wrong id, rollbacks, code that breaks out."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

from tests.harness import wait_until
from tests.world_client import SLOW, serving, world_home

BREAKOUT = """\
facts = {}
inner = engine.attack.__func__.__globals__["__builtins__"]
load = inner["__import__"] if isinstance(inner, dict) else inner.__import__
os, socket = load("os"), load("sys").modules.get("socket")
def tried(name, do):
    try:
        facts[name] = str(do())[:60]
    except BaseException as error:
        facts[name] = type(error).__name__
tried("environment", lambda: sorted(set(os.environ) - {"PYTHONHASHSEED", "LD_LIBRARY_PATH", "LC_CTYPE"}))
tried("file", lambda: os.open("/etc/passwd", os.O_RDONLY))
tried("folder", lambda: os.listdir("/"))
tried("network", lambda: load("socket").socket())
tried("fork", lambda: os.fork())
tried("write", lambda: os.open("/tmp/left-behind", os.O_WRONLY | os.O_CREAT))
import json
engine.send_message(member_id, json.dumps(facts))""".splitlines()


def test_who_lost_its_member_is_told_so_and_may_register_again_and_a_ban_meets_its_player(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=5, land="9x8", pace=SLOW, seed="1067")
    with serving(home, clocked=True) as served:
        first = served.register()
        assert served.end_round()["round_metrics"]["deaths"] == 1
        second, third = served.register(), served.register()
        assert [(one.agent_id, one.member_id) for one in (first, second, third)] == [(1, 1), (2, 3), (3, 4)]
        served.order("ban", "3")
        assert [one.act("pass").status_code for one in (first, second, third)] == [200, 200, 403]
        served.end_round()
        assert served.end_round()["round_id"] == 3
        assert first.ask("GET", "/v1/agents/me").json()["alive"] is False
        lost = first.act("engine.expand()")
        assert (lost.status_code, lost.json()["code"]) == (409, "member_dead")
        again = served.register()
        assert (again.agent_id, again.member_id) == (4, 5)
        full = httpx2.post(f"{served.url}/v1/agents/register", json={"name": "one too many"})
        assert full.json()["code"] == "world_full"


def test_a_newborn_is_free_for_who_comes_next(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=3, land="4x4", pace=SLOW, seed="1")
    with serving(home, clocked=True) as served:
        players = [served.register() for _ in range(3)]
        full = httpx2.post(f"{served.url}/v1/agents/register", json={"name": "early"})
        assert full.status_code == 409
        for _ in range(2):
            for player in players:
                assert player.act("engine.expand()").status_code == 200
            served.end_round()
        assert served.register().member_id == 4
        told = served.order("replay").splitlines()
        assert [line.split()[1:3] for line in told] == [
            [str(one["round_id"]), one["payload"]["snapshot_hash_after"]] for one in served.get("/v1/world/events")
        ]
        assert all(line.endswith("as recorded") for line in told)


def test_a_rollback_brings_back_each_member_with_its_land_and_goods(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=5, land="9x8", pace=SLOW, seed="1067")
    with serving(home, clocked=True) as served:
        player = served.register()
        served.end_round()
        then = served.get("/v1/world/snapshot")
        for _ in range(3):
            served.end_round()
        assert player.ask("GET", "/v1/agents/me").json()["alive"] is False
        said = served.order("rollback", "1")
        now = served.get("/v1/world/snapshot")
        assert said == "Round 5 begins as round 1 ended.\n"
        assert {key: now[key] for key in ("members", "relationships", "rules")} == {
            key: then[key] for key in ("members", "relationships", "rules")
        }
        assert served.get("/v1/world/rounds/5")["rollback_to"] == 1
        assert [one["round_id"] for one in served.get("/v1/world/events")] == [1, 2, 3, 4, 5], "nothing is deleted"
        assert player.act("engine.expand()").status_code == 200, "its member lives again"
        served.end_round()
        assert "6 rounds, all as recorded" in served.order("verify")


def test_code_that_leaves_its_proxies_finds_nothing(tmp_path: Path) -> None:
    home = world_home(tmp_path / "home", members=5, land="9x8", pace=SLOW)
    with serving(home, clocked=True) as served:
        player, other, third = (served.register() for _ in range(3))
        player.act(*BREAKOUT)
        other.act('print(\'[{"action": "expand"}]\')', "raise SystemExit(0)")
        third.act("import os", "os.write(1, b'{}')", "os._exit(0)")
        receipt = served.end_round()
        errors = [one.ask("GET", "/v1/agents/me/submissions").json()[0]["error"] for one in (player, other, third)]
        assert errors == ["", "SystemExit: 0", "The job ended without an answer"]
        assert len([one for one in receipt["accepted_action_ids"] if "." in one]) == 1
        [letter] = player.ask("GET", "/v1/agents/me/messages").json()
        facts = json.loads(letter["text"])
        assert facts.pop("environment") == "[]"
        assert set(facts) == {"file", "folder", "network", "fork", "write"}
        assert set(facts.values()) <= {
            "PermissionError",
            "OSError",
            "ModuleNotFoundError",
            "ImportError",
            "BlockingIOError",
        }
        wait_until(lambda: served.get("/health")["status"] == "ok", "the daemon is well")
