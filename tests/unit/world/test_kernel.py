"""The rules of the world: twin worlds, one action apart, differ in exactly what the rule names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from council.world.kernel import (
    Action,
    Member,
    Relation,
    RoundOutcome,
    World,
    at_older_state,
    draw,
    gini,
    new_world,
    settle,
    snapshot,
    state_hash,
    world_of,
)
from council.world.world_rules import MAX_ACTIONS, UNIT, ageing
from tests.twins import differences

SEED = 42


def world_with(*members: Member, shape: tuple[int, int] = (8, 6), **rules: int) -> World:
    base = new_world("w", 1, shape, SEED)
    return replace(
        base,
        members={member.id: member for member in members},
        next_member_id=max(member.id for member in members) + 1,
        rules={**base.rules, **rules},
    )


def member(number: int, *cells: int, **values: int) -> Member:
    told = {"vitality": 80_000, "cargo": 40_000, "age": 20, "productivity": 16_000, **values}
    return Member(number, cells=cells, played=True, **told)


TWO = (member(1, 0, 1), member(2, 20, 21))


def act(world: World, *actions: Action) -> RoundOutcome:
    return settle(world, actions, SEED)


def change(world: World, *actions: Action) -> tuple[dict[str, Any], RoundOutcome]:
    """What differs between the settled world with the actions and without, by path."""
    with_, without = act(world, *actions), act(world)
    return dict(differences("", snapshot(without.world), snapshot(with_.world))), with_


def test_the_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    one, other = new_world("w", 20, (10, 10), 7), new_world("w", 20, (10, 10), 7)
    for _ in range(5):
        one, other = settle(one, [], 7).world, settle(other, [], 7).world
        assert state_hash(one) == state_hash(other)
    assert state_hash(new_world("w", 20, (10, 10), 8)) != state_hash(new_world("w", 20, (10, 10), 7))


def test_a_snapshot_reads_nothing_but_the_state_and_gives_it_back() -> None:
    world = settle(new_world("w", 20, (10, 10), 7), [], 7).world
    before = state_hash(world)
    assert [snapshot(world) for _ in range(3)] == [snapshot(world)] * 3
    assert state_hash(world) == before == settle(world, [], 7).receipt.snapshot_hash_before
    assert world_of(json.loads(json.dumps(snapshot(world)))) == world


def test_hashes_agree_in_another_process_whatever_its_hash_seed() -> None:
    code = (
        "from council.world.kernel import *\nw = new_world('w', 30, (9, 9), 5)\n"
        "for _ in range(30): w = settle(w, [], 5).world\nprint(state_hash(w))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": number}
        ).stdout
        for number in ("1", "2")
    }
    assert len(told) == 1


def test_expand_takes_one_free_cell_beside_ones_own() -> None:
    world = world_with(*TWO)
    differs, settled = change(world, Action("a", 1, "expand"))
    assert settled.receipt.accepted_action_ids == ("a",)
    [cell] = set(settled.world.members[1].cells) - {0, 1}
    assert cell in {2, 7, 8, 9, 40, 41}, "beside cells 0 and 1, round the edges"
    assert set(differs) == {"/members/1/cells", "/members/1/land", "/members/1/cargo", "/members/1/vitality"} - (
        {"/members/1/vitality"} if settled.world.members[1].vitality == act(world).world.members[1].vitality else set()
    )


def test_expand_is_bounded_by_the_rule_and_refused_without_a_free_cell() -> None:
    twice = act(world_with(*TWO), Action("a", 1, "expand"), Action("b", 1, "expand")).receipt
    assert twice.accepted_action_ids == ("a",)
    assert twice.rejected == {"b": "a member takes at most 1 cells in one round"}
    full = world_with(member(1, 0), member(2, 1), shape=(2, 1))
    assert act(full, Action("a", 1, "expand")).receipt.rejected == {"a": "there is no free cell beside yours"}


def test_attack_wounds_the_target_and_the_stolen_cargo_goes_to_the_attacker() -> None:
    world = world_with(*TWO)
    differs, settled = change(world, Action("a", 1, "attack", 2))
    remembered = settled.world.relations[2, 1]
    assert settled.world.relations == {(2, 1): Relation(victim=remembered.victim)}
    assert 16_000 <= remembered.victim <= 48_000, "damage and theft, each 10 to 30 % of a vitality of 80"
    assert settled.receipt.metrics["conflict_volume"] == remembered.victim / UNIT
    gained = sum(getattr(settled.world.members[1], kind) for kind in ("vitality", "cargo")) - sum(
        getattr(act(world).world.members[1], kind) for kind in ("vitality", "cargo")
    )
    assert 8_000 <= gained <= 24_000
    assert set(differs) <= {
        "/members/1/cargo", "/members/1/vitality", "/members/2/cargo", "/members/2/vitality", "/relationships",
    }  # fmt: skip


def test_who_dies_of_an_attack_loses_its_land_and_the_attacker_takes_a_cell() -> None:
    world = world_with(member(1, 0, vitality=100_000), member(2, 20, 21, vitality=5_000))
    settled = act(world, Action("a", 1, "attack", 2)).world
    assert 2 not in settled.members
    assert len(set(settled.members[1].cells) & {20, 21}) == 1
    assert settled.relations == {}


@pytest.mark.parametrize("verb", ["attack", "offer", "offer_land"])
def test_an_action_on_oneself_is_refused_without_effect(verb: str) -> None:
    differs, settled = change(world_with(*TWO), Action("a", 1, verb, 1))
    assert settled.receipt.rejected == {"a": "the target is the member itself"}
    assert differs == {}


def test_offer_moves_the_amount_and_is_remembered() -> None:
    world = world_with(*TWO)
    differs, settled = change(world, Action("a", 1, "offer", 2, 12_345))
    assert settled.world.relations == {(2, 1): Relation(benefit=12_345)}
    assert settled.receipt.metrics["trade_volume"] == 12.345
    assert set(differs) <= {
        "/members/1/cargo", "/members/1/vitality", "/members/2/cargo", "/members/2/vitality", "/relationships",
    }  # fmt: skip
    total = [sum(one.vitality + one.cargo for one in each.world.members.values()) for each in (settled, act(world))]
    assert total[0] == total[1], "nothing is made or lost"


def test_offer_gives_no_more_than_there_is_and_nothing_below_one() -> None:
    assert act(world_with(*TWO), Action("a", 1, "offer", 2, 10**9)).world.relations[2, 1].benefit == 40_000
    refused = act(world_with(*TWO), Action("a", 1, "offer", 2, 999)).receipt.rejected
    assert refused == {"a": "an offer must be at least 1"}
    drawn = act(world_with(*TWO), Action("a", 1, "offer", 2)).world.relations[2, 1].benefit
    assert 4_000 <= drawn <= 12_000, "10 to 30 % of the cargo"


def test_offer_land_gives_the_cell_that_lies_nearest_to_the_target() -> None:
    world = world_with(member(1, 0, 1, 2), member(2, 4))
    _, settled = change(world, Action("a", 1, "offer_land", 2))
    assert settled.world.members[1].cells == (0, 1)
    assert settled.world.members[2].cells == (2, 4)
    assert settled.world.relations == {(2, 1): Relation(benefit_land=1)}


def test_a_message_changes_no_field_of_the_world_and_reaches_its_member() -> None:
    differs, settled = change(world_with(*TWO), Action("a", 1, "message", 2, text="Truce?"))
    assert differs == {}
    assert [(one.member_id, one.target_id, one.text) for one in settled.letters] == [(1, 2, "Truce?")]


def test_what_cannot_be_done_is_rejected_with_its_reason() -> None:
    told = act(
        world_with(*TWO),
        Action("dead", 1, "attack", 9),
        Action("word", 1, "pray"),
        Action("none", 7, "expand"),
    ).receipt.rejected
    assert told == {
        "dead": "member not found",
        "word": "no such action: pray",
        "none": "member not found",
    }


def test_more_actions_than_a_round_allows_are_rejected() -> None:
    many = [Action(f"m{number}", 1, "message", 2, text="hi") for number in range(MAX_ACTIONS + 2)]
    receipt = act(world_with(*TWO), *many).receipt
    assert len(receipt.accepted_action_ids) == MAX_ACTIONS
    assert list(receipt.rejected) == [f"m{MAX_ACTIONS}", f"m{MAX_ACTIONS + 1}"]


def test_the_order_of_members_is_drawn_and_not_that_of_arrival() -> None:
    actions = [Action("a", 1, "attack", 2), Action("b", 2, "attack", 1)]
    worlds = {state_hash(settle(world_with(*TWO), order, SEED).world) for order in (actions, actions[::-1])}
    assert len(worlds) == 1
    orders = {settle(world_with(*TWO), actions, seed).receipt.accepted_action_ids for seed in range(20)}
    assert orders == {("a", "b"), ("b", "a")}


def test_nobody_skips_consumption_when_another_one_dies() -> None:
    world = world_with(
        *(member(n, n, cargo=0, productivity=0, vitality=90_000 if n != 2 else 1_000) for n in range(1, 6))
    )
    after = act(world).world
    assert set(after.members) == {1, 3, 4, 5}
    assert {one.vitality for one in after.members.values()} == {90_000 - 15_000 - ageing(21)}


def test_production_follows_the_root_of_the_land() -> None:
    lands = ((1, 8_000), (4, 16_000), (9, 24_000))
    for count, produced in lands:
        world = world_with(member(1, *range(count), vitality=100_000, cargo=0), base_consumption=5_000)
        after = act(world).world.members[1]
        eaten = 5_000 + ageing(21)
        assert after.vitality + after.cargo == 100_000 - eaten + produced


def test_age_costs_and_nobody_is_older_than_ninety_nine() -> None:
    assert (ageing(49), ageing(99)) == (UNIT, 85 * UNIT)
    assert 1 not in act(world_with(member(1, 0, age=99, vitality=100_000))).world.members
    assert act(world_with(member(1, 0, age=20))).world.members[1].age == 21


def test_rich_neighbours_have_a_child_with_land_of_both_and_ids_are_never_used_again() -> None:
    parents = (member(1, 0, 1, 2, 8), member(2, 3, 4, 5, 11))
    born = act(world_with(*parents)).world
    child = born.members[3]
    assert (child.age, child.vitality, child.played, len(child.cells)) == (0, 50_000, False, 4)
    assert {len(born.members[n].cells) for n in (1, 2)} == {2}
    assert born.relations[3, 1].benefit + born.relations[3, 2].benefit == 50_000
    gone = replace(born, members={n: one for n, one in born.members.items() if n != 3})
    assert settle(replace(gone, relations={}), [], SEED).world.next_member_id >= 4


def test_an_action_of_the_house_makes_a_member_played_or_gives_it_up() -> None:
    joined = act(world_with(replace(TWO[0], played=False), TWO[1]), Action("j", 1, "join")).world
    assert joined.members[1].played is True
    assert act(joined, Action("l", 1, "leave")).world.members[1].played is False


def test_a_rollback_is_a_new_round_and_brings_back_members() -> None:
    worlds = [new_world("w", 30, (8, 8), 3)]
    for _ in range(20):
        worlds.append(settle(worlds[-1], [], 3).world)
    back = at_older_state(worlds[2], worlds[20])
    assert back.members == worlds[2].members
    assert (back.round_id, back.next_member_id) == (21, worlds[20].next_member_id)


def test_a_world_left_alone_neither_dies_out_nor_explodes() -> None:
    world = new_world("w", 50, (20, 20), SEED)
    counts = []
    for _ in range(500):
        world = settle(world, [], SEED).world
        counts.append(len(world.members))
    assert min(counts) > 30
    assert max(counts) < 200


@pytest.mark.parametrize("shape", [(50, 2), (1, 101), (7, 15)])
def test_land_of_any_shape_holds_its_members(shape: tuple[int, int]) -> None:
    world = new_world("w", 60, shape, 1)
    cells = [cell for one in world.members.values() for cell in one.cells]
    assert len(set(cells)) == 60
    assert max(cells) < shape[0] * shape[1]
    assert settle(world, [], 1).receipt.metrics["population"] >= 1


def test_land_must_exceed_the_members() -> None:
    with pytest.raises(ValueError, match="more cells"):
        new_world("w", 4, (2, 2), 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], 0.0), ([5], 0.0), ([3, 3, 3], 0.0), ([0, 0, 0], 0.0), ([0, 10], 0.5), ([0, 0, 0, 8], 0.75)],
)
def test_gini(values: list[int], expected: float) -> None:
    assert gini(values) == pytest.approx(expected)


def test_draws_hang_on_their_arguments_alone_and_stay_in_bounds() -> None:
    told = [draw(1, round_id, "x", 7, 10, 20, number) for round_id in range(100) for number in range(5)]
    assert set(told) == set(range(10, 21))
    assert draw(1, 3, "x", 7, 10, 20) == draw(1, 3, "x", 7, 10, 20)
    assert len({draw(seed, 1, "x", 1, 0, 1 << 60) for seed in range(50)}) == 50


SEEDS = range(20)
T_95 = 2.093  # Student's t for 19 degrees of freedom


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """95 % for the mean."""
    half = T_95 * stdev(samples) / len(samples) ** 0.5
    return fmean(samples) - half, fmean(samples) + half


def played(seed: int, verb: str, rounds: int) -> tuple[int, World]:
    """The rounds that member 1 lives when it does `verb` to member 2 in each, and the world at the end."""
    world = new_world("w", 20, (20, 20), seed)
    for round_id in range(1, rounds + 1):
        actions = [Action("j", 1, "join")] if round_id == 1 else []
        actions += [Action("a", 1, verb, 2)] if verb else []
        world = settle(world, actions, seed).world
        if 1 not in world.members:
            return round_id, world
    return rounds, world


def test_expanding_outlives_doing_nothing() -> None:
    least, _ = interval([played(seed, "expand", 80)[0] - played(seed, "", 80)[0] for seed in SEEDS])
    assert least > 0


def test_attacking_and_trading_change_cargo_and_land() -> None:
    def wealth(seed: int, verb: str, member_id: int) -> float:
        one = played(seed, verb, 3)[1].members.get(member_id)
        return 0.0 if one is None else (one.cargo + one.vitality) / UNIT

    assert interval([wealth(seed, "attack", 2) - wealth(seed, "", 2) for seed in SEEDS])[1] < 0
    assert interval([wealth(seed, "offer", 2) - wealth(seed, "", 2) for seed in SEEDS])[0] > 0
    given = [
        len(played(seed, "offer_land", 1)[1].members[2].cells) - len(played(seed, "", 1)[1].members[2].cells)
        for seed in (1, 2, 3)
    ]
    assert given == [1, 1, 1]
