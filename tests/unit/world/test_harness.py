"""An agent's code in the real cage: what it sees, how it may ask, and what a lying answer becomes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from council.sandbox.cage import Sandbox
from council.sandbox.job import Result
from council.sandbox.zygotes import Zygotes
from council.world import harness
from council.world.agent_code import MAX_TEXT_CHARS, actions_of, job_of
from council.world.kernel import MAX_ACTIONS, Action, Member, Relation, WorldState, settle

FORGED = "import os, json\nos.write(3, json.dumps({{'value': {}}}).encode())\nos._exit(0)\n"


@pytest.fixture(scope="module")
def state() -> WorldState:
    """Three members; 3 is second in the list, for 2 is dead."""
    owners = [0] * 24
    owners[0], owners[1], owners[2], owners[12] = 1, 1, 3, 4
    members = (
        Member(1, 50_500, 20_000, 30, 16_000, ("From member_3: peace?",), {"expand": 1}),
        Member(3, 60_000, 0, 31, 17_250),
        Member(4, 70_000, 5, 32, 18_000, ("a secret",)),
    )
    relations = {(1, 3): Relation(1_500, 2_000, 1_000), (3, 1): Relation(9, 9, 9)}
    return WorldState(5, 6, 4, tuple(owners), members, 5, round_id=6, relations=relations)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(Zygotes(), workers=1, refuse=print) as sandbox:
        yield sandbox


async def run(sandbox: Sandbox, state: WorldState, *lines: str, me: int = 1) -> Result:
    code = "def agent_action(engine, member_id):\n" + "".join(f"    {line}\n" for line in lines)
    return await sandbox.run(job_of(state, me, code, seed=1))


async def wanted(sandbox: Sandbox, state: WorldState, *lines: str) -> tuple[Action, ...]:
    result = await run(sandbox, state, *lines)
    assert result.status == "ok", result
    return actions_of(result.value)


async def seen(sandbox: Sandbox, state: WorldState, expression: str) -> Any:
    """What an expression is in the cage: the code tells it as the text of a message."""
    [action] = await wanted(sandbox, state, f"import json; engine.send_message(3, json.dumps({expression}))")
    return json.loads(action.text)


async def test_code_sees_the_living_by_their_ids(sandbox: Sandbox, state: WorldState) -> None:
    assert await seen(sandbox, state, "[member_id, engine.me.id, engine.current_members[member_id].id]") == [1, 1, 1]
    assert await seen(sandbox, state, "[m.id for m in engine.current_members]") == [1, 3, 4]
    assert await seen(sandbox, state, "[2 in engine.current_members, len(engine.current_members)]") == [False, 3]
    assert await seen(sandbox, state, "[engine.land.shape, engine.round_id]") == [[6, 4], 7]


async def test_a_member_has_all_the_attributes_of_the_source(sandbox: Sandbox, state: WorldState) -> None:
    me = "[m.vitality, m.cargo, m.land, m.age, m.productivity, m.neighbors, m.messages, m.last_round_actions]"
    assert await seen(sandbox, state, f"[{me} for m in [engine.me]][0]") == [
        50.5, 20.0, 2, 30, 16.0, [3], ["From member_3: peace?"], {"expand": 1},
    ]  # fmt: skip
    assert await seen(sandbox, state, "engine.me.relationships") == {
        "3": {"victim": 1.5, "benefit": 2.0, "benefit_land": 1.0}
    }


async def test_what_others_remember_and_were_told_is_not_seen(sandbox: Sandbox, state: WorldState) -> None:
    others = "[[m.messages, m.relationships] for m in engine.current_members if m is not engine.me]"
    assert await seen(sandbox, state, others) == [[[], {}], [[], {}]]
    assert "a secret" not in str(job_of(state, 1, "", 1).argument)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("engine.attack(3)", Action("attack", 3)),
        ("engine.attack(engine.current_members[3])", Action("attack", 3)),
        ("engine.attack(engine.me, 3)", Action("attack", 3)),
        ("engine.attack(member_id, engine.current_members[3])", Action("attack", 3)),
        ("engine.offer(3, 2.5)", Action("offer", 3, 2_500)),
        ("engine.offer(engine.me, 3, 2.5)", Action("offer", 3, 2_500)),
        ("engine.offer(engine.current_members[member_id], 3)", Action("offer", 3)),
        ("engine.offer(3)", Action("offer", 3)),
        ("engine.offer_land(3)", Action("offer_land", 3)),
        ("engine.offer_land(engine.me, 3)", Action("offer_land", 3)),
        ("engine.expand()", Action("expand")),
        ("engine.expand(engine.me)", Action("expand")),
        ("engine.expand(member_id)", Action("expand")),
        ("engine.send_message(3, 'hi')", Action("message", 3, text="hi")),
        ("engine.send_message(member_id, 3, 'hi')", Action("message", 3, text="hi")),
        ("engine.send_message(engine.me, engine.current_members[3], 'hi')", Action("message", 3, text="hi")),
    ],
)
async def test_each_verb_records_one_action(line: str, action: Action, sandbox: Sandbox, state: WorldState) -> None:
    assert await wanted(sandbox, state, line) == (action,)


@pytest.mark.parametrize(
    "line",
    [
        "engine.attack(engine.current_members[3], 4)", "engine.attack(3, 4)", "engine.offer(3, 4, 1)", "engine.expand(3)",
        "engine.expand(engine.current_members[4])", "engine.send_message(3, 4, 'hi')", "engine.offer_land(3, 4)",
    ],
)  # fmt: skip
async def test_nobody_acts_for_another(line: str, sandbox: Sandbox, state: WorldState) -> None:  # L4
    result = await run(sandbox, state, line)
    assert result.status == "error"
    assert "you are member 1, and cannot act for " in result.error


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("engine.attack()", "TypeError: attack: takes 1 arguments, and got 0"),
        ("engine.current_members[2]", "KeyError: 2"),
        ("engine.offer(3, float('nan'))", "ValueError: cannot convert float NaN to integer"),
        ("while True: engine.expand()", "ValueError: more than 64 actions in a round"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("print('{}'); return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
async def test_an_error_is_told_in_plain_words(
    line: str, error: str, sandbox: Sandbox, state: WorldState
) -> None:  # L22
    assert (await run(sandbox, state, line)).error == error


async def test_the_order_is_kept_and_the_standard_library_is_there(sandbox: Sandbox, state: WorldState) -> None:  # L6
    lines = ("import json, math, random", "engine.expand()", "engine.attack(3)", "engine.expand()")
    assert [action.verb for action in await wanted(sandbox, state, *lines)] == ["expand", "attack", "expand"]


async def test_random_numbers_are_those_of_the_round_and_the_member(sandbox: Sandbox, state: WorldState) -> None:
    drawn = [
        (await run(sandbox, now, "import random; engine.offer(4, random.random())", me=me)).value[0]["amount"]
        for now, me in ((state, 1), (state, 1), (state, 3), (replace(state, round_id=7), 1))
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ("5", "Expected `array`"),
        ("[{'verb': 'kill'}]", "$[0].verb"),
        ("[{'verb': 'attack', 'target': '3'}]", "$[0].target"),
        ("[{'verb': 'attack', 'target': -1}]", "$[0].target"),
        ("[{'verb': 'attack', 'target': True}]", "$[0].target"),
        ("[{'verb': 'offer', 'target': 3, 'amount': 1.5}]", "$[0].amount"),
        ("[{'verb': 'offer', 'target': 3, 'amount': -5}]", "$[0].amount"),
        ("[{'verb': 'expand', 'actor': 4}]", "unknown field `actor`"),
        ("[{'verb': 'message', 'target': 3, 'text': 'x' * 3000}]", "$[0].text"),
        ("[{'verb': 'expand'}] * 65", "length <= 64"),
        ("[[{'verb': 'expand'}]]", "$[0]"),
    ],
)
async def test_a_forged_answer_is_no_action(answer: str, where: str, sandbox: Sandbox, state: WorldState) -> None:
    result = await sandbox.run(job_of(state, 1, FORGED.format(answer), 1))
    assert result.status == "ok"
    with pytest.raises(ValueError) as raised:
        actions_of(result.value)
    assert where in str(raised.value)


async def test_a_forged_answer_can_only_ask_for_what_the_code_could_have_asked_for(
    sandbox: Sandbox, state: WorldState
) -> None:
    forged = await sandbox.run(job_of(state, 1, FORGED.format("[{'verb': 'attack', 'target': 3}]"), 1))
    _, receipt = settle(state, {1: actions_of(forged.value)}, 1)
    assert receipt.accepted_action_ids == ("7-1-0",)  # the member is the one whose code ran


async def test_what_the_code_asks_for_happens(sandbox: Sandbox, state: WorldState) -> None:
    actions = await wanted(sandbox, state, "engine.expand()", "engine.offer(3, 5)", "engine.send_message(3, 'yours')")
    after, receipt = settle(state, {1: actions, 3: [], 4: []}, 1)
    assert receipt.accepted_action_ids == ("7-1-0", "7-1-1", "7-1-2")
    assert (len(after.cells[1]), after.relations[3, 1].benefit, after.members[1].messages) == (
        3, 5_009, ("From member_1: yours",),
    )  # fmt: skip


async def test_a_member_that_is_dead_has_no_job(state: WorldState) -> None:
    with pytest.raises(KeyError):
        job_of(state, 2, "", 1)


def test_the_bounds_are_told_alike_inside_and_outside() -> None:
    assert harness.MAX_ACTIONS == MAX_ACTIONS
    assert MAX_TEXT_CHARS == 2_048


async def test_a_world_of_thousands_fits_in_a_job(sandbox: Sandbox) -> None:
    members = tuple(Member(number, 50_000, 99_999, 30, 16_123) for number in range(1, 5_001))
    owners = tuple((cell % 5_000) + 1 if cell % 2 else 0 for cell in range(40_000))
    crowded = WorldState(1, 200, 200, owners, members, 5_001)
    assert await seen(sandbox, crowded, "len(engine.current_members)") == 5_000
