"""Each rule of the island, with values; and what was wrong with the original's (L numbers of its list of defects)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from council.world.kernel import (
    MAX_ACTIONS,
    Action,
    Member,
    Relation,
    RoundReceipt,
    WorldState,
    consumption,
    draw,
    found_world,
    metrics_of,
    neighbours,
    production,
    settle,
)

ATTACK, OFFER, EXPAND = Action("attack", 2), Action("offer", 2, 5_000), Action("expand")


def island(
    *people: tuple[int, int], land: dict[int, list[int]] | None = None, width: int = 6, height: int = 4
) -> WorldState:
    """Members of 30 years with (vitality, cargo), each on one cell of its own unless `land` says otherwise."""
    members = tuple(Member(number, *each, 30, 16_000) for number, each in enumerate(people, 1))
    owners = [0] * (width * height)
    for owner, cells in (land or {each.id: [2 * each.id - 2] for each in members}).items():
        for cell in cells:
            owners[cell] = owner
    return WorldState(5, width, height, tuple(owners), members, len(members) + 1)


def played(state: WorldState, actions: dict[int, list[Action]], seed: int = 1) -> tuple[WorldState, RoundReceipt]:
    """One round in which every member is led by a player."""
    return settle(state, {member.id: actions.get(member.id, []) for member in state.members}, seed)


def member(state: WorldState, number: int) -> Member:
    [found] = [each for each in state.members if each.id == number]
    return found


def land(state: WorldState, number: int) -> int:
    return len(state.cells.get(number, ()))


# ── a world and its hashes ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("width", "height"), [(20, 20), (3, 17), (40, 2)])
def test_a_new_world_gives_each_member_one_cell_of_land_of_any_shape(width: int, height: int) -> None:  # L18
    state = found_world(50, width, height, 42)
    assert [each.id for each in state.members] == list(range(1, 51))
    assert sorted(owner for owner in state.owners if owner) == list(range(1, 51))
    assert len(state.owners) == width * height
    assert max(cell // width for cell, owner in enumerate(state.owners) if owner) >= height // 2
    assert max(cell % width for cell, owner in enumerate(state.owners) if owner) >= width // 2
    for each in state.members:
        assert 10_000 <= each.vitality <= 90_000
        assert 0 <= each.cargo <= 100_000
        assert 15_000 <= each.productivity <= 20_000
        assert 10 <= each.age < 99


def test_there_must_be_more_land_than_members() -> None:
    with pytest.raises(ValueError, match="2x2 cells are not more than 4 members"):
        found_world(4, 2, 2, 1)


def test_the_same_seed_gives_the_same_hashes_and_another_seed_others() -> None:
    def hashes(seed: int) -> list[str]:
        state, found = found_world(20, 10, 10, seed), []
        for number in range(10):
            state, receipt = settle(state, {1: [ATTACK, EXPAND], 2: [OFFER]}, seed + number)
            found += [receipt.snapshot_hash_after, receipt.receipt_hash]
        return found

    assert hashes(1) == hashes(1)
    assert not set(hashes(1)) & set(hashes(2))


def test_the_hash_is_the_same_on_every_machine() -> None:
    state = found_world(20, 10, 10, 7)
    for number in range(20):
        state, _ = settle(state, {1: [ATTACK], 2: [Action("offer_land", 1)], 3: [Action("offer", 1)]}, number)
    assert state.state_hash == "b49e2c8c788abfc62f665d534ae05bead6d236a8b68465fb28ebb91f63614f00"


def test_the_hash_changes_with_every_part_of_the_state() -> None:
    state = island((50_000, 0), (50_000, 0))
    [one, two] = state.members
    others = [
        replace(state, seed=6), replace(state, round_id=1), replace(state, next_id=9),
        replace(state, owners=state.owners[::-1]), replace(state, relations={(1, 2): Relation(1)}),
        replace(state, rules=replace(state.rules, least_offer=1)),
        *(replace(state, members=(replace(one, **change), two)) for change in (
            {"vitality": 1}, {"cargo": 1}, {"age": 1}, {"productivity": 1}, {"messages": ("x",)},
            {"last_round_actions": {"expand": 1}},
        )),
    ]  # fmt: skip
    assert len({state.state_hash, *(other.state_hash for other in others)}) == len(others) + 1


def test_reading_changes_nothing_and_neither_does_the_order_of_the_players() -> None:  # L9
    state = found_world(20, 10, 10, 3)
    actions = {number: [ATTACK, EXPAND] for number in range(3, 12)}
    first, receipt = settle(state, actions, 8)
    for _ in range(3):
        assert neighbours(state, 5) == neighbours(state, 5)
        assert state.state_hash == replace(state).state_hash
        assert metrics_of(state)["population"] == 20
    second, again = settle(replace(state), dict(reversed(actions.items())), 8)
    assert (second, again) == (first, receipt)


def test_a_receipt_names_each_action_and_the_receipt_before_it() -> None:  # L10
    state, first = played(island((50_000, 0), (50_000, 0)), {1: [ATTACK, Action("attack", 9)]})
    assert first.accepted_action_ids == ("1-1-0",)
    assert dict(first.rejected_action_ids) == {"1-1-1": "no living member 9"}
    assert (first.snapshot_hash_after, first.last_receipt_hash) == (state.state_hash, "")
    _, second = played(state, {})
    assert second.last_receipt_hash == first.receipt_hash
    assert second.snapshot_hash_before == first.snapshot_hash_after
    assert replace(second, seed=9).receipt_hash != second.receipt_hash


# ── living ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("cells", "made"), [(0, 0), (1, 8_000), (2, 11_313), (4, 16_000), (16, 32_000)])
def test_production_grows_with_the_root_of_the_land(cells: int, made: int) -> None:
    assert production(16_000, cells) == made


@pytest.mark.parametrize(("age", "needed"), [(10, 15_031), (30, 15_185), (49, 16_000), (74, 24_220), (99, 100_000)])
def test_consumption_climbs_with_age(age: int, needed: int) -> None:
    assert consumption(age) == needed


def test_a_round_ages_feeds_and_uses_up() -> None:
    state, receipt = played(island((50_000, 30_000), (99_000, 0)), {})
    first, second = state.members
    assert (first.age, second.age, state.round_id, receipt.round_id) == (31, 31, 1, 1)
    need = consumption(31)
    assert first.vitality == 50_000 - need + 30_000 + 8_000  # it eats all that it has
    assert (second.vitality, second.cargo) == (99_000 - need + 8_000, 0)
    full, _ = played(island((99_000, 90_000)), {})
    assert (member(full, 1).vitality, member(full, 1).cargo) == (100_000, 98_000 - (1_000 + need))


def test_who_cannot_feed_itself_dies_and_everybody_else_consumes() -> None:  # L16
    before = island(*[(90_000, 0)] * 5)
    weak = replace(before.members[0], vitality=1_000)
    state, receipt = played(replace(before, members=(weak, *before.members[1:]), relations={(2, 1): Relation(5)}), {})
    assert [each.id for each in state.members] == [2, 3, 4, 5]
    assert {each.vitality for each in state.members} == {90_000 - consumption(31) + 8_000}
    assert (land(state, 1), dict(state.relations)) == (0, {})
    assert (receipt.round_metrics["deaths"], receipt.round_metrics["population"]) == (1, 4)


def test_nobody_lives_beyond_a_hundred() -> None:
    state = island((100_000, 100_000))
    old, _ = played(replace(state, members=(replace(state.members[0], age=98),)), {})
    assert old.members == ()


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_expand_takes_a_free_cell_beside_the_land_across_the_edge_too() -> None:  # L1
    state, _ = played(island((50_000, 0), land={1: [0]}, width=4, height=3), {1: [EXPAND]})
    assert land(state, 1) == 2
    taken = {
        tuple(played(island((50_000, 0), land={1: [0]}, width=4, height=3), {1: [EXPAND]}, seed)[0].cells[1])
        for seed in range(40)
    }
    assert taken == {(0, 1), (0, 3), (0, 4), (0, 8)}


def test_expand_without_free_land_is_refused_and_changes_nothing() -> None:
    state = island((50_000, 0), (50_000, 0), land={1: [0, 1], 2: [2, 3]}, width=2, height=2)
    twin, _ = played(state, {})
    after, receipt = played(state, {1: [EXPAND]})
    assert after == replace(twin, last_receipt_hash=receipt.receipt_hash)
    assert dict(receipt.rejected_action_ids) == {"1-1-0": "no free cell beside its land"}


def test_an_attack_hurts_and_robs_and_the_attacker_has_what_was_stolen() -> None:
    state = island((80_000, 0), (60_000, 50_000))
    twin, _ = played(state, {})
    after, receipt = played(state, {1: [ATTACK]})
    relation = after.relations[2, 1]
    stolen = member(after, 1).vitality + member(after, 1).cargo - member(twin, 1).vitality - member(twin, 1).cargo
    assert 8_000 <= stolen <= 24_000  # a tenth to three tenths of the attacker's vitality
    lost = member(twin, 2).vitality + member(twin, 2).cargo - member(after, 2).vitality - member(after, 2).cargo
    assert lost == relation.victim
    assert 8_000 <= relation.victim - stolen <= 24_000
    assert receipt.round_metrics["conflict_count"] == 1  # L11
    assert dict(member(after, 1).last_round_actions) == {"attack": 1}
    assert after.owners == twin.owners


def test_no_more_is_stolen_than_there_is() -> None:
    state = island((80_000, 0), (60_000, 300))
    twin, _ = played(state, {})
    after, _ = played(state, {1: [ATTACK]})
    assert member(after, 1).vitality - member(twin, 1).vitality == 300


def test_who_kills_takes_a_cell_and_the_dead_act_no_more() -> None:
    state = island((100_000, 0), (2_000, 0), land={1: [0], 2: [2, 3]})
    outcomes = [played(state, {1: [ATTACK], 2: [EXPAND]}, seed) for seed in range(20)]
    for after, receipt in outcomes:
        assert [each.id for each in after.members] == [1]
        assert (land(after, 1), land(after, 2)) == (2, 0)
        assert receipt.round_metrics["deaths"] == 1
    reasons = {receipt.rejected_action_ids.get("1-2-0") for _, receipt in outcomes}
    assert reasons == {None, "the member is dead"}  # who comes first is drawn


@pytest.mark.parametrize("verb", ["attack", "offer", "offer_land", "message"])
def test_nothing_can_be_done_to_oneself_or_to_the_dead(verb: Any) -> None:  # L13, L17
    state = island((50_000, 20_000), (50_000, 20_000))
    twin, _ = played(state, {})
    after, receipt = played(state, {1: [Action(verb, 1), Action(verb, 7)]})
    assert after == replace(twin, last_receipt_hash=receipt.receipt_hash)
    assert dict(receipt.rejected_action_ids) == {
        "1-1-0": "a member cannot do that to itself",
        "1-1-1": "no living member 7",
    }


@pytest.mark.parametrize(("amount", "given"), [(5_000, 5_000), (999_000, 20_000), (1_000, 1_000)])
def test_an_offer_gives_what_was_said_and_no_more_than_there_is(amount: int, given: int) -> None:
    state = island((50_000, 20_000), (50_000, 0))
    twin, _ = played(state, {})
    after, receipt = played(state, {1: [Action("offer", 2, amount)]})
    assert member(twin, 1).vitality - member(after, 1).vitality == given
    assert member(after, 2).vitality - member(twin, 2).vitality == given
    assert after.relations == {(2, 1): Relation(benefit=given)}
    assert receipt.round_metrics["trade_volume"] == given  # L11


def test_an_offer_without_an_amount_gives_a_drawn_share_and_none_below_one_unit() -> None:
    state = island((50_000, 20_000), (50_000, 0))
    given = {played(state, {1: [Action("offer", 2)]}, seed)[1].round_metrics["trade_volume"] for seed in range(50)}
    assert 2_000 <= min(given) < max(given) <= 6_000
    _, receipt = played(state, {1: [Action("offer", 2, 999)], 2: [Action("offer", 1)]})
    assert set(receipt.rejected_action_ids.values()) == {"less than one unit of cargo"}


def test_land_is_offered_from_the_edge_that_is_nearest_to_the_other() -> None:
    state = island((50_000, 0), (50_000, 0), land={1: [0, 1, 2], 2: [4]}, width=9, height=3)
    after, _ = played(state, {1: [Action("offer_land", 2)]})
    assert (after.cells[1], after.cells[2]) == ([0, 1], [2, 4])
    assert after.relations == {(2, 1): Relation(benefit_land=1_000)}
    bare = island((50_000, 0), (50_000, 0), land={1: [0], 2: []})
    assert played(bare, {1: [Action("offer_land", 2)]})[0].cells[2] == [0]
    _, receipt = played(bare, {2: [Action("offer_land", 1)]})
    assert dict(receipt.rejected_action_ids) == {"1-2-0": "no land of its own"}


def test_a_message_is_read_in_the_next_round_and_only_then() -> None:
    state, _ = played(island((50_000, 0), (50_000, 0)), {1: [Action("message", 2, text="peace?")]})
    assert (member(state, 2).messages, member(state, 1).messages) == (("From member_1: peace?",), ())
    later, _ = played(state, {})
    assert member(later, 2).messages == ()


def test_nobody_can_drown_what_others_say() -> None:
    state = found_world(40, 20, 20, 1)
    after, receipt = played(state, {number: [Action("message", 1, text="x")] * 9 for number in range(2, 41)})
    told = member(after, 1).messages
    assert len(told) == 64
    assert max(told.count(each) for each in told) <= 4
    assert len(set(told)) == 39  # everybody's first comes before anybody's second
    assert set(receipt.rejected_action_ids.values()) <= {"too many messages to one member", "the member is dead"}


def test_more_actions_than_a_round_has_are_refused() -> None:  # L4
    wanted = [Action("offer", 2, 1_000)] * (MAX_ACTIONS + 3)
    _, receipt = played(island((90_000, 90_000), (90_000, 0)), {1: wanted})
    assert len(receipt.accepted_action_ids) == MAX_ACTIONS
    assert set(receipt.rejected_action_ids.values()) == {f"more than {MAX_ACTIONS} actions"}


def test_who_acts_first_is_drawn_and_nobody_acts_twice_before_all_have_once() -> None:
    state = found_world(9, 9, 9, 1)
    firsts = set()
    for seed in range(30):
        _, receipt = played(state, {number: [EXPAND, EXPAND] for number in range(1, 10)}, seed)
        numbers = [int(each.rpartition("-")[2]) for each in receipt.accepted_action_ids]
        assert numbers == sorted(numbers)
        firsts.add(receipt.accepted_action_ids[0])
    assert len(firsts) > 4


# ── births, and a world that is left alone ───────────────────────────────────────────────────────────────────────────


def parents(first: tuple[int, int] = (80_000, 60_000), second: tuple[int, int] = (80_000, 20_000)) -> WorldState:
    return island(first, second, land={1: [0, 1, 2, 6], 2: [10, 11, 16, 17]})


def test_two_that_are_rich_enough_have_a_child_and_pay_for_it_in_proportion() -> None:
    state, receipt = played(parents(), {})
    child = member(state, 3)
    assert (child.age, child.vitality, receipt.round_metrics["births"]) == (
        0,
        100_000 if child.cargo else child.vitality,
        1,
    )
    assert child.vitality + child.cargo > 50_000  # and each parent offered it something
    assert (land(state, 1), land(state, 2), land(state, 3)) == (2, 2, 4)
    assert state.relations[3, 1].benefit > state.relations[3, 2].benefit > 0
    assert state.next_id == 4
    total = sum(each.vitality + each.cargo for each in state.members)
    assert total == 240_000 + 2 * 16_000 - 2 * consumption(31)  # nothing is made of nothing


@pytest.mark.parametrize("lack", ["age", "land", "wealth"])
def test_without_age_land_or_wealth_there_is_no_child(lack: str) -> None:
    state = parents()
    if lack == "age":
        state = replace(state, members=(replace(state.members[0], age=15), state.members[1]))
    if lack == "land":
        state = replace(state, owners=tuple(0 if cell in (0, 1) else owner for cell, owner in enumerate(state.owners)))
    if lack == "wealth":
        state = parents((99_000, 0), (99_000, 0))
    assert played(state, {})[1].round_metrics["births"] == 0


def test_an_id_is_never_used_again() -> None:
    state, seen = found_world(30, 15, 15, 5), set()
    for number in range(80):
        before = {each.id for each in state.members}
        state, _ = settle(state, {}, number)
        born = {each.id for each in state.members} - before
        assert not born & seen
        seen |= before | born
    assert len(seen) > 60


def test_a_member_without_a_player_expands_and_one_with_an_idle_player_does_not() -> None:
    state = island((50_000, 0), (50_000, 0))
    after, receipt = settle(state, {1: []}, 1)
    assert (land(after, 1), land(after, 2)) == (1, 2)
    assert (receipt.accepted_action_ids, dict(receipt.rejected_action_ids)) == ((), {})


@pytest.mark.parametrize("seed", [1, 42])
def test_a_world_that_is_left_alone_is_still_there_and_does_not_explode(seed: int) -> None:  # L2
    state, population = found_world(50, 20, 20, seed), []
    for number in range(300):
        state, receipt = settle(state, {}, number)
        population.append(receipt.round_metrics["population"])
    assert min(population) > 30
    assert max(population) < 200


def test_whoever_expands_outlives_whoever_does_nothing() -> None:
    def lived(seed: int, actions: list[Action]) -> int:
        state, rounds = found_world(10, 20, 20, seed), 0
        while any(each.id == 1 for each in state.members):
            state, _ = settle(state, {1: actions}, seed + rounds)
            rounds += 1
        return rounds

    pairs = [(lived(seed, []), lived(seed, [EXPAND])) for seed in range(20)]
    assert [pair for pair in pairs if pair[1] < pair[0]] == []
    assert len([pair for pair in pairs if pair[1] > pair[0]]) > 10


@pytest.mark.parametrize(
    ("vitality", "gini"),
    [([], 0), ([5], 0), ([0, 0], 0), ([7, 7, 7], 0), ([0, 100], 500), ([0, 0, 0, 100], 750), ([1, 3], 250)],
)
def test_gini_tells_how_unequal_vitality_is(vitality: list[int], gini: int) -> None:
    state = WorldState(
        1, 3, 3, (0,) * 9, tuple(Member(number, each, 0, 1, 1) for number, each in enumerate(vitality, 1)), 9
    )
    assert metrics_of(state)["gini"] == gini


def test_a_draw_depends_on_each_of_its_words() -> None:
    assert draw(1, 2, "x", 3) == draw(1, 2, "x", 3)
    assert (
        len(
            {draw(*words) for words in ((1, 2, "x", 3), (2, 2, "x", 3), (1, 3, "x", 3), (1, 2, "y", 3), (1, 2, "x", 4))}
        )
        == 5
    )
