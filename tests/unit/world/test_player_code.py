"""A player's code in the real cage: what it sees, what its verbs become, what is not believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from council.sandbox.cage import Sandbox, open_sandbox
from council.sandbox.job import Level, Result
from council.settings import Settings
from council.world.kernel import VERBS, Action, Relation, World, new_world, settle
from council.world.player_code import Surroundings, job_of, wishes
from council.world.world_rules import MAX_ACTIONS, MAX_MESSAGE_CHARS

ME = 1


@pytest.fixture(scope="module")
def world() -> World:
    grown = new_world("w", 6, (6, 5), 11)
    for _ in range(2):
        grown = settle(grown, [Action("o", 2, "offer", ME, 5_000)], 11).world
    return grown


@pytest.fixture
async def cage() -> AsyncIterator[Sandbox]:
    async with open_sandbox("zygote", Settings(model="offline"), lambda detail: None) as opened:
        yield opened


async def played(cage: Sandbox, world: World, body: str, letters: tuple[tuple[int, str], ...] = ()) -> Result:
    code = "def agent_action(engine, member_id):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return await cage.run(job_of(code, Surroundings(world, {2: ["offer"]}), ME, letters, 5))


async def wanted(cage: Sandbox, world: World, body: str) -> list[tuple[Any, ...]]:
    actions, error = wishes(await played(cage, world, body), "s", ME)
    assert error == ""
    return [(one.member_id, one.verb, one.target_id, one.amount, one.text) for one in actions]


async def test_subprocess_simple_action(cage: Sandbox, world: World) -> None:
    assert await wanted(cage, world, "engine.expand(engine.me)") == [(ME, "expand", None, None, "")]


async def test_subprocess_timeout(cage: Sandbox, world: World) -> None:
    result = await played(cage, world, "while True: pass")
    actions, error = wishes(result, "s", ME)
    assert (actions, result.status) == ([], "timeout")
    assert error.startswith("Timed out after")


async def test_subprocess_syntax_error(cage: Sandbox, world: World) -> None:
    result = await cage.run(job_of("def agent_action(:", Surroundings(world, {}), ME, (), 5))
    assert wishes(result, "s", ME)[1].startswith("SyntaxError: ")


async def test_subprocess_no_entry_point(cage: Sandbox, world: World) -> None:
    result = await cage.run(job_of("x = 1", Surroundings(world, {}), ME, (), 5))
    assert "agent_action" in wishes(result, "s", ME)[1]


async def test_subprocess_memory_limit(cage: Sandbox, world: World) -> None:
    assert (await played(cage, world, "x = [0] * 10**9")).status in ("memory", "error")


async def test_a_result_names_its_level(cage: Sandbox, world: World) -> None:
    assert (await played(cage, world, "pass")).level >= Level.L2


@pytest.mark.parametrize(
    ("spelt", "becomes"),
    [
        ("engine.attack(2)", (ME, "attack", 2, None, "")),
        ("engine.attack(engine.me, 2)", (ME, "attack", 2, None, "")),
        ("engine.attack(member_id, engine.current_members[2])", (ME, "attack", 2, None, "")),
        ("engine.offer(2)", (ME, "offer", 2, None, "")),
        ("engine.offer(2, 1.5)", (ME, "offer", 2, 1_500, "")),
        ("engine.offer(engine.me, 2)", (ME, "offer", 2, None, "")),
        ("engine.offer(engine.current_members[member_id], 2, 3)", (ME, "offer", 2, 3_000, "")),
        ("engine.offer_land(2)", (ME, "offer_land", 2, None, "")),
        ("engine.offer_land(engine.me, 2)", (ME, "offer_land", 2, None, "")),
        ("engine.expand()", (ME, "expand", None, None, "")),
        ("engine.expand(member_id)", (ME, "expand", None, None, "")),
        ("engine.send_message(2, 'hi')", (ME, "message", 2, None, "hi")),
        ("engine.send_message(member_id, 2, 'hi')", (ME, "message", 2, None, "hi")),
    ],
)
async def test_each_verb_in_each_of_its_spellings(
    cage: Sandbox, world: World, spelt: str, becomes: tuple[Any, ...]
) -> None:
    assert await wanted(cage, world, spelt) == [becomes]


async def test_another_members_action_is_refused(cage: Sandbox, world: World) -> None:
    result = await played(cage, world, "engine.attack(engine.current_members[2], 3)")
    assert wishes(result, "s", ME) == ([], "PermissionError: attack: member 2 is not yours")


async def test_what_a_player_sees(cage: Sandbox, world: World) -> None:
    body = """\
me = engine.me
assert me is engine.current_members[member_id] and me in engine.current_members
assert sorted(m.id for m in engine.current_members) == [m.id for m in engine.current_members]
assert me.land >= 1 and 0 < me.vitality <= 100 and me.cargo >= 0 and me.age > 0 and 15 <= me.productivity <= 20
assert me.relationships[2]["benefit"] == 5.0, me.relationships
assert me.messages == [(3, "hello")]
assert all(not m.messages for m in engine.current_members if m is not me)
assert engine.current_members[2].last_round_actions == ["offer"]
assert engine.land.shape == (6, 5) and engine.round_id == 3
assert engine.rules["base_consumption"] == 15000
assert engine.current_members.get(99) is None
import math, json, random
engine.send_message(2, str(len(me.neighbors)))"""
    result = await played(cage, world, body, ((3, "hello"),))
    assert result.error == ""
    assert len(wishes(result, "s", ME)[0]) == 1


async def test_what_a_player_sees_of_the_largest_world_fits_into_the_cage(cage: Sandbox) -> None:
    large = new_world("w", 8_000, (160, 156), 1)
    large = replace(large, relations={(who, ME): Relation(99_999, 99_999, 9) for who in range(2, 5_000)})
    letters = [(8_000, "\N{GRINNING FACE}" * MAX_MESSAGE_CHARS)] * 50
    surroundings = Surroundings(large, dict.fromkeys(range(1, 5_000), ["attack"] * MAX_ACTIONS))
    code = "def agent_action(engine, member_id):\n    engine.attack(len(engine.current_members))\n"
    result = await cage.run(job_of(code, surroundings, ME, letters, 5))
    assert [one.target_id for one in wishes(result, "s", ME)[0]] == [8_000], result.error


async def test_of_another_member_one_sees_what_it_remembers_of_oneself(cage: Sandbox, world: World) -> None:
    known = {(2, ME): Relation(benefit=1_000), (2, 3): Relation(victim=5_000), (ME, 3): Relation(benefit_land=1)}
    body = """\
assert engine.current_members[2].relationships == {1: {"victim": 0, "benefit": 1, "benefit_land": 0}}
assert engine.me.relationships == {3: {"victim": 0, "benefit": 0, "benefit_land": 1}}"""
    assert (await played(cage, replace(world, relations=known), body)).error == ""


def forged(value: Any) -> list[Action]:
    return wishes(Result("ok", Level.L2, value), "s", ME)[0]


@pytest.mark.parametrize(
    ("told", "verb"),
    [
        ("attack", "a verb that nobody knows"),
        ({"action": "pray", "member_id": ME}, "a verb that nobody knows"),
        ({"action": "attack", "member_id": 2, "target_id": 3}, "another member's action"),
        ({"action": "attack", "member_id": ME, "target_id": "2"}, "a target that is not an id"),
        ({"action": "attack", "member_id": ME, "target_id": True}, "a target that is not an id"),
        ({"action": "offer", "member_id": ME, "target_id": 2, "amount": "all"}, "an amount that is not a number"),
        (
            {"action": "message", "member_id": ME, "target_id": 2, "text": "x" * 1_001},
            "a message of more than 1000 characters",
        ),
        ({"action": "join", "member_id": ME}, "a verb that nobody knows"),
        ({"action": "propose", "member_id": ME, "text": '{"expands": 8}'}, "a verb that nobody knows"),
        ({"action": "vote", "member_id": ME, "text": "1-1-x", "amount": 1}, "a verb that nobody knows"),
    ],
)
def test_a_forged_answer_is_rejected_in_words_and_never_the_houses_own_action(
    world: World, told: Any, verb: str
) -> None:
    [action] = forged([told])
    assert action.member_id == ME
    assert action.verb == verb
    assert action.verb not in VERBS
    receipt = settle(world, [action], 11).receipt
    assert receipt.accepted_action_ids == ()
    assert list(receipt.rejected) == ["s.1"]


def test_words_stand_in_messages_alone() -> None:
    told = [{"action": verb, "member_id": ME, "target_id": 2, "text": "Anna"} for verb in VERBS]
    assert [(one.verb, one.text) for one in forged(told)] == [(verb, "Anna" * (verb == "message")) for verb in VERBS]


def test_an_answer_that_is_no_list_and_one_that_is_endless() -> None:
    assert wishes(Result("ok", Level.L2, {"actions": []}), "s", ME) == ([], "the answer is not a list of actions")
    many = forged([{"action": "expand", "member_id": ME}] * 5_000)
    assert len(many) == MAX_ACTIONS + 1
