"""Mechanisms: what a proposal may be, who decides it, from when it holds, what the canary tells."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from council.sandbox.cage import Sandbox, open_sandbox
from council.settings import Settings
from council.world.clock import canary_report, settle_copy
from council.world.kernel import (
    Action,
    RoundOutcome,
    World,
    at_older_state,
    new_world,
    settle,
    snapshot,
    world_of,
)
from council.world.player_code import Surroundings, proposal_job, proposed
from council.world.rule_changes import VOTING_ROUNDS, Mechanism, flaw_in
from council.world.world_rules import RULES

SEED = 3
CHEAP = {"base_consumption": 10_000}


@pytest.fixture(name="world", scope="module")
def _world() -> World:
    """Five members, of whom three have players."""
    made = new_world("w", 5, (8, 8), SEED)
    return settle(made, [Action(f"j{number}", number, "join") for number in (1, 2, 3)], SEED).world


def propose(rules: Mapping[str, Any], member_id: int = 1, name: str = "m") -> Action:
    return Action(name, member_id, "propose", text=json.dumps(rules))


def vote(member_id: int, amount: int, name: str = "m") -> Action:
    return Action(f"v{member_id}{amount}{name}", member_id, "vote", None, amount, name)


def rounds(world: World, *each: list[Action]) -> list[RoundOutcome]:
    outcomes = []
    for actions in each:
        outcomes.append(settle(world, actions, SEED))
        world = outcomes[-1].world
    return outcomes


def test_more_than_half_of_the_players_members_make_a_mechanism_active_from_the_next_round(world: World) -> None:
    proposed_, voted, after = rounds(world, [propose(CHEAP)], [vote(1, 1), vote(2, 1)], [])
    assert [one.id for one in proposed_.world.mechanisms] == ["m"]
    assert proposed_.receipt.accepted_action_ids == ("m",)
    assert voted.receipt.verdicts == {"m": "active"}
    assert (voted.world.mechanisms, voted.world.rules["base_consumption"]) == ((), 10_000)
    unchanged = rounds(world, [], [], [])
    assert voted.world.members == unchanged[1].world.members, "the round of the vote has the old numbers"
    gained = [
        sum(one.vitality + one.cargo for one in outcome.world.members.values()) for outcome in (after, unchanged[2])
    ]
    assert gained[0] - gained[1] == 5_000 * len(after.world.members)


def test_votes_add_up_over_rounds_and_the_last_of_a_member_counts(world: World) -> None:
    outcomes = rounds(world, [propose(CHEAP)], [vote(1, 1)], [vote(1, 0), vote(2, 1)], [vote(1, 1)])
    assert [one.receipt.verdicts for one in outcomes] == [{}, {}, {}, {"m": "active"}]
    [open_] = outcomes[2].world.mechanisms
    assert (open_.yes, open_.no) == ((2,), (1,))


def test_members_without_a_player_and_the_dead_have_no_vote() -> None:
    mechanism = Mechanism("m", 1, CHEAP, 1, yes=(1, 2), no=(9,))
    assert mechanism.verdict({1, 2, 3}, 2) == "active"
    assert mechanism.verdict({1, 2, 3, 4}, 2) is None, "half is no majority"
    assert mechanism.verdict({2, 3}, 2) is None
    assert mechanism.verdict({9}, 2) == "rejected"
    assert mechanism.verdict(set(), 2) is None


def test_without_a_majority_a_mechanism_lapses(world: World) -> None:
    outcomes = rounds(world, [propose(CHEAP)], [vote(1, 1)], *[[] for _ in range(VOTING_ROUNDS)])
    lapsed = [number for number, one in enumerate(outcomes) if one.receipt.verdicts == {"m": "lapsed"}]
    assert lapsed == [VOTING_ROUNDS]


def test_a_vote_on_nothing_and_a_proposal_out_of_bounds_are_rejected_with_reasons(world: World) -> None:
    outcome = settle(world, [vote(1, 1, "gone"), propose({"expands": 99}, name="big")], SEED)
    assert outcome.receipt.rejected == {
        "v11gone": "there is no vote on this mechanism",
        "big": "expands takes whole numbers from 0 to 8, not 99",
    }
    assert outcome.world.mechanisms == ()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({}, "changes no rule"),
        ({"gravity": 1}, "no rule gravity"),
        ({"expands": True}, "whole numbers from 0 to 8"),
        ({"expands": 1.5}, "whole numbers from 0 to 8"),
        ({"expands": "2"}, "whole numbers from 0 to 8"),
        ({"expands": -1}, "whole numbers from 0 to 8"),
        ({"expands": 2, "base_consumption": 4_999}, "base_consumption takes whole numbers from 5000 to 30000"),
    ],
)
def test_what_is_no_value_of_a_rule(rules: dict[str, Any], said: str) -> None:
    assert said in flaw_in(rules)


def test_each_rule_begins_within_its_bounds_and_these_are_values_of_it() -> None:
    for name, rule in RULES.items():
        assert flaw_in({name: rule.value}) == flaw_in({name: rule.least}) == flaw_in({name: rule.most}) == ""
        assert rule.least <= rule.value <= rule.most


def test_a_snapshot_holds_the_votes_and_a_rollback_brings_them_back(world: World) -> None:
    outcomes = rounds(world, [propose(CHEAP)], [vote(1, 1)], [vote(2, 1)])
    pending = outcomes[1].world
    assert world_of(json.loads(json.dumps(snapshot(pending)))) == pending
    again = at_older_state(pending, outcomes[2].world)
    assert (again.mechanisms, again.rules["base_consumption"]) == (pending.mechanisms, 15_000)


def test_the_canary_tells_what_the_rules_do_and_touches_nothing(world: World) -> None:
    before = snapshot(world)
    without = settle_copy(world, SEED, {})
    harsh = canary_report(without, settle_copy(world, SEED, {"base_consumption": 30_000}))
    mild = canary_report(without, settle_copy(world, SEED, {"offer_most": 301}))
    assert snapshot(world) == before
    assert harsh["members_died"] != []
    assert harsh["divergence_flags"] == ["vitality_drop", "members_died"]
    assert harsh["total_vitality"][1] < harsh["total_vitality"][0]
    assert (mild["divergence_flags"], mild["vitality_change_pct"]) == ([], 0.0)
    crowded = replace(world, members={})
    assert canary_report(crowded, crowded)["vitality_change_pct"] == 0.0


@pytest.fixture(name="cage")
async def _cage() -> AsyncIterator[Sandbox]:
    async with open_sandbox("zygote", Settings(model="offline"), lambda detail: None) as opened:
        yield opened


@pytest.mark.parametrize(
    ("body", "rules", "error"),
    [
        ("engine.rules['expands'] = 2", {"expands": 2}, ""),
        ("engine.rules.update(expands=2, birth_age=18)\n    engine.attack(2)", {"birth_age": 18, "expands": 2}, ""),
        ("engine.rules['expands'] = engine.rules['expands']", None, "the proposal changes no rule"),
        ("engine.rules['magic'] = 1", None, "there is no rule magic"),
        ("engine.rules = 7", None, "the answer is no table of rules"),
        ("1 / 0", None, "ZeroDivisionError: division by zero"),
        ("engine.rules['expands'] = engine.me.id + 4", {"expands": 5}, ""),
    ],
)
async def test_what_code_sets_is_the_proposal(
    cage: Sandbox, world: World, body: str, rules: dict[str, int] | None, error: str
) -> None:
    code = f"def propose_modification(engine):\n    {body}\n"
    result = await cage.run(proposal_job(code, Surroundings(world, {}), 1, 5))
    actions, told = proposed(result, "s", 1, world.rules)
    assert told == error
    assert [json.loads(one.text) for one in actions] == ([] if rules is None else [rules])


async def test_a_proposal_without_its_entry_point_is_told_so(cage: Sandbox, world: World) -> None:
    result = await cage.run(proposal_job("x = 1", Surroundings(world, {}), 1, 5))
    assert "propose_modification" in proposed(result, "s", 1, world.rules)[1]
