"""Mechanisms over HTTP: proposed once in the cage, tried on a copy, voted on, in force from the next round (phase 3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import execute, rows_of, run_cli
from tests.world_client import SLOW, Caller, Served, serving, world_home

CHEAPER = "engine.rules['base_consumption'] = 10000"


@pytest.fixture(name="served")
def _served(tmp_path: Path) -> Iterator[Served]:
    with serving(world_home(tmp_path / "home", members=6, land="6x6", pace=SLOW), clocked=True) as served:
        yield served


def value_of(served: Served, rule: str) -> Any:
    [value] = [one["value"] for one in served.get("/v1/world/rules") if one["name"] == rule]
    return value


def proposal(player: Caller, *lines: str) -> str:
    told = player.propose(*lines or (CHEAPER,))
    assert told.status_code == 200, told.text
    assert told.json()["status"] == "submitted"
    return str(told.json()["mechanism_id"])


def status(served: Served, mechanism_id: str) -> str:
    return str(served.get(f"/v1/world/mechanisms/{mechanism_id}")["status"])


def test_a_majority_of_the_living_changes_a_rule_from_the_next_round(served: Served) -> None:
    one, other, third = (served.register() for _ in range(3))
    mechanism_id = proposal(one)
    assert one.vote(mechanism_id, "yes").json()["code"] == "not_votable", "it has not run yet"
    receipt = served.end_round()
    assert mechanism_id in receipt["accepted_action_ids"]
    told = served.get(f"/v1/world/mechanisms/{mechanism_id}")
    assert (told["status"], told["rules"], told["description"]) == (
        "pending_vote", {"base_consumption": 10_000}, "Try it.",
    )  # fmt: skip
    assert told["canary"]["total_vitality"][1] > told["canary"]["total_vitality"][0]
    assert told["canary"]["divergence_flags"] == []
    assert one.vote(mechanism_id, "yes").status_code == 200
    assert served.end_round()["activated_mechanism_ids"] == []
    assert served.get(f"/v1/world/mechanisms/{mechanism_id}")["yes"] == [one.member_id]
    assert f"vote on {mechanism_id}: base_consumption 10000; 1 yes, 0 no" in served.order("status")
    assert other.vote(mechanism_id, "yes").status_code == 200
    assert third.vote(mechanism_id, "no").status_code == 200
    assert value_of(served, "base_consumption") == 15_000
    assert served.end_round()["activated_mechanism_ids"] == [mechanism_id]
    assert (status(served, mechanism_id), value_of(served, "base_consumption")) == ("active", 10_000)
    assert served.get("/v1/world/snapshot")["rules"]["base_consumption"] == 10_000
    served.end_round()
    assert one.vote(mechanism_id, "no").json()["code"] == "not_votable"
    assert "4 rounds, all as recorded" in served.order("verify")
    assert rows_of(served.home, "SELECT code FROM world_submissions WHERE kind = 'propose'") == [("",)], (
        "no foreign code is left that could run"
    )


def test_one_vote_moved_in_the_log_is_found(served: Served) -> None:
    one, other = served.register(), served.register()
    mechanism_id = proposal(one)
    served.end_round()
    for player in (one, other):
        assert player.vote(mechanism_id, "yes").status_code == 200
    served.end_round()
    assert "all as recorded" in served.order("verify")
    [(action,)] = rows_of(
        served.home, "SELECT action FROM world_actions WHERE action LIKE '%vote%' ORDER BY number LIMIT 1"
    )
    served.daemon.stop()
    execute(served.home, "UPDATE world_actions SET action = ? WHERE action = ?", action.replace(": 1,", ": 0,"), action)
    found = run_cli("world", "verify", cwd=served.home)
    assert (found.returncode, found.stdout) == (1, "Round 2 differs: actions_hash.\n")


def test_a_majority_against_it_rejects_it(served: Served) -> None:
    one, other = served.register(), served.register()
    mechanism_id = proposal(one)
    served.end_round()
    assert [player.vote(mechanism_id, "no").status_code for player in (one, other)] == [200, 200]
    assert served.end_round()["mechanism_verdicts"] == {mechanism_id: "rejected"}
    assert (status(served, mechanism_id), value_of(served, "base_consumption")) == ("rejected", 15_000)
    assert [told["mechanism_id"] for told in served.get("/v1/world/mechanisms", status="rejected")] == [mechanism_id]
    assert served.get("/v1/world/mechanisms", status="active") == []


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("engine.rules['base_consumption'] = 1", "base_consumption takes whole numbers from 5000 to 30000, not 1"),
        ("engine.rules['magic'] = 1", "there is no rule magic"),
        ("pass", "the proposal changes no rule"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import os; os.listdir('/')", ""),
    ],
)
def test_a_proposal_that_is_none_is_rejected_with_the_reason(served: Served, line: str, error: str) -> None:
    player = served.register()
    mechanism_id = proposal(player, line)
    served.end_round()
    told = served.get(f"/v1/world/mechanisms/{mechanism_id}")
    assert (told["status"], told["rules"]) == ("rejected", {})
    assert told["error"] != ""
    assert error in told["error"]
    assert player.vote(mechanism_id, "yes").status_code == 409
    assert player.propose(CHEAPER).status_code == 200, "who has no open proposal may make one"


def test_proposals_and_votes_have_their_windows_keys_and_bounds(served: Served) -> None:
    one, other = served.register(), served.register()
    mechanism_id = proposal(one)
    assert one.propose(CHEAPER).json()["mechanism_id"] == mechanism_id, "the same key has the same answer"
    assert one.propose("pass").status_code == 422, "and with another body none"
    assert one.act("engine.expand()").status_code == 200, "the same key does for an action too"
    assert one.propose(CHEAPER, key="second").json()["code"] == "too_many_submissions"
    served.end_round()
    assert one.propose(CHEAPER, key="third").json()["code"] == "proposal_open"
    assert other.propose(CHEAPER, key="third").status_code == 200
    assert one.vote(mechanism_id, "yes").json() == one.vote(mechanism_id, "yes").json()
    assert one.vote(mechanism_id, "no").status_code == 422
    assert one.vote(mechanism_id, "no", key="again").json()["code"] == "voted"
    assert one.vote("9-9-nothing", "yes", key="x").status_code == 404
    assert one.vote(mechanism_id, "perhaps", key="x").status_code == 422
    assert httpx2.get(f"{served.url}/v1/world/mechanisms/9-9-nothing").json()["code"] == "mechanism_not_found"
    for path, body in (
        ("propose", {"code": "x = 1", "idempotency_key": "k"}),
        (f"{mechanism_id}/vote", {"vote": "yes", "idempotency_key": "k"}),
    ):
        url = f"{served.url}/v1/world/mechanisms/{path}"
        assert httpx2.post(url, json=body).status_code == 401
        assert httpx2.post(url, json=body, headers={"X-API-Key": "lev_" + "0" * 48}).status_code == 403
    served.order("pause")
    assert other.vote(mechanism_id, "yes").json()["status"] == "rejected"
    assert other.propose(CHEAPER, key="late").json()["status"] == "rejected"


def test_a_banned_player_has_no_vote_and_does_not_count(served: Served) -> None:
    one, two, three = (served.register() for _ in range(3))
    mechanism_id = proposal(one)
    served.end_round()
    assert [player.vote(mechanism_id, "yes").status_code for player in (one, two)] == [200, 200]
    served.order("ban", str(two.agent_id))
    served.order("ban", str(three.agent_id))
    receipt = served.end_round()
    assert receipt["activated_mechanism_ids"] == [mechanism_id], "one of one"
    assert {f"2-{player.agent_id}-leave" for player in (two, three)} <= set(receipt["accepted_action_ids"])
    assert [one["id"] for one in served.get("/v1/world/snapshot")["members"] if one["played"]] == [one.member_id]
    assert "all as recorded" in served.order("verify")


def test_a_rollback_takes_rules_back_and_votes_with_them(served: Served) -> None:
    one, other = served.register(), served.register()
    mechanism_id = proposal(one)
    served.end_round()
    for player in (one, other):
        player.vote(mechanism_id, "yes")
    served.end_round()
    later = proposal(other)
    assert value_of(served, "base_consumption") == 10_000
    served.order("rollback", "1")
    assert (value_of(served, "base_consumption"), status(served, mechanism_id)) == (15_000, "pending_vote")
    assert status(served, later) == "rolled_back"
    assert [told["error"] for told in other.ask("GET", "/v1/agents/me/submissions").json()][-1] == (
        "the world was set back"
    )
    for player in (one, other):
        assert player.vote(mechanism_id, "yes").status_code == 200
    assert served.end_round()["activated_mechanism_ids"] == [mechanism_id]
    assert "4 rounds, all as recorded" in served.order("verify")
