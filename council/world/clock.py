"""The world's clock, a companion of the daemon: it closes each round at its deadline, works on it, and opens the next.

A round is *accepting* until its deadline, *executing* while the players' code is in the cage, then settled. What was accepted
counts once, whatever dies when. Until the one transaction that settles a round its submissions lie where they were, and a new
process works on them again. After a downtime one round is settled, and none is caught up on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from council.events import Events, WorldChange, WorldRound
from council.ids import Clock
from council.sandbox.cage import Sandbox
from council.world.kernel import Action, World, draw, settle
from council.world.player_code import Surroundings, job_of, proposal_job, proposed, wishes
from council.world.world_rules import UNIT
from council.world.world_store import PROPOSE, VOTE, Book, OpenRound, Pending, Player

CANARY_ROUNDS = 5
_SHARP_DROP_PCT = -50.0
_MESSAGES = 50  # to one member, of the round before
_PLAYER_S = 2.0  # of processor time in a round, for all code of one player: nobody else waits longer for it
_TIME_IS_UP = f"it was not run: your code has had its {_PLAYER_S:g} s of this round"


class WorldClock:
    """Runs for as long as the daemon."""

    name = "world"

    def __init__(self, book: Book, clock: Clock, events: Events, open_cage: Callable[[], Sandbox]) -> None:
        self._book = book
        self._clock = clock
        self._events = events
        self._open_cage = open_cage
        self._changed = asyncio.Event()
        events.subscribe(lambda event: self._changed.set() if isinstance(event, WorldChange) else None)

    async def run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            cage: Sandbox | None = None  # a home without a world opens none
            while True:
                self._changed.clear()
                now = self._book.open_round()
                wait_s: float | None = None  # without a world, or in a pause, only the steward ends the wait
                if now is not None and now.phase != "paused":
                    left_s = now.deadline_ms / 1000 - self._clock.now().timestamp()
                    wait_s = 0.0 if now.phase == "executing" else left_s
                if now is not None and wait_s is not None and wait_s <= 0:
                    if cage is None:
                        cage = await stack.enter_async_context(self._open_cage())
                    await self._work(now, cage)
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait_s)

    async def _work(self, now: OpenRound, cage: Sandbox) -> None:
        """Closes the round, works on what was submitted, settles it and opens the next one."""
        if now.phase == "accepting" and not await self._book.close_window(now.round_id):
            return  # the steward was faster
        world, seed = await asyncio.to_thread(self._book.world)
        pending = await asyncio.to_thread(self._book.pending, now.round_id)
        actions, errors = await self._acted(now.round_id, world, seed, pending, cage)
        outcome = await asyncio.to_thread(settle, world, actions, seed)
        reports = await asyncio.to_thread(_reports, world, seed, actions)
        deadline_ms = int(1000 * (self._clock.now().timestamp() + now.pace_s))
        if await self._book.settle(outcome, actions, errors, reports, deadline_ms):
            population = int(outcome.receipt.metrics["population"])
            self._events.publish(WorldRound(round=now.round_id, actions=len(actions), population=population))

    async def _acted(
        self, round_id: int, world: World, seed: int, pending: Sequence[Pending], cage: Sandbox
    ) -> tuple[list[Action], dict[str, str]]:
        """The actions of a round, asked of its players, and the faults of their code, by submission. The code of all players
        runs at once, as far as the cage lets it, and that of one in turn, until its time is over."""
        last_verbs = await asyncio.to_thread(self._book.last_verbs, round_id - 1)
        surroundings = await asyncio.to_thread(Surroundings, world, last_verbs)
        errors = {one.submission_id: "" for one in pending}
        turns, left_s = defaultdict[int, asyncio.Lock](asyncio.Lock), defaultdict[int, float](lambda: _PLAYER_S)

        async def actions_of(one: Pending) -> list[Action]:
            if one.kind == VOTE:
                mechanism_id, _, word = one.code.partition(" ")
                return [Action(one.submission_id, one.member_id, VOTE, None, int(word == "yes"), mechanism_id)]
            async with turns[one.agent_id]:
                if left_s[one.agent_id] <= 0:
                    errors[one.submission_id] = _TIME_IS_UP
                    return []
                number = draw(seed, round_id, one.kind, one.member_id, 0, 1 << 31)
                if one.kind == PROPOSE:
                    job = proposal_job(one.code, surroundings, one.member_id, number)
                else:
                    letters = await asyncio.to_thread(self._book.letters, one.member_id, round_id - 2, _MESSAGES)
                    mine = [(letter["from_id"], letter["text"]) for letter in letters]
                    job = job_of(one.code, surroundings, one.member_id, mine, number)
                result = await cage.run(job)
                left_s[one.agent_id] -= _PLAYER_S if result.status == "timeout" else result.cpu_s
            if one.kind == PROPOSE:
                found, fault = proposed(result, one.submission_id, one.member_id, world.rules)
            else:
                found, fault = wishes(result, one.submission_id, one.member_id)
            errors[one.submission_id] = fault
            return found

        counting = []
        for one in pending:
            if one.member_id in world.members:
                counting.append(one)
            else:
                errors[one.submission_id] = "the member is dead"
        wished = await asyncio.gather(*map(actions_of, counting))
        players = self._book.players()  # now, because the steward may have banned one while the code ran
        banned = {one.agent_id for one in players if one.banned}
        actions = changes_of_players(round_id, world, players)
        for one, asked in zip(counting, wished, strict=True):
            if one.agent_id in banned:
                errors[one.submission_id] = "the player is banned"
            else:
                actions += asked
        return actions, errors


def changes_of_players(round_id: int, world: World, players: Sequence[Player]) -> list[Action]:
    """Members whose player came, or was banned, since the last round."""
    changed = [
        (player, "leave" if player.banned else "join")
        for player in players
        if player.member_id in world.members and world.members[player.member_id].played == player.banned
    ]
    return [Action(f"{round_id}-{player.agent_id}-{verb}", player.member_id, verb) for player, verb in changed]


def _reports(world: World, seed: int, actions: Sequence[Action]) -> dict[str, dict[str, Any]]:
    """The canary of each mechanism that is proposed: a copy of the world is settled with the new rules, another without, and
    both are compared. It decides nothing; voters read it. Source: Leviathan phase 3, *canary*."""
    proposals = [action for action in actions if action.verb == PROPOSE]
    if not proposals:
        return {}
    without = settle_copy(world, seed, {})
    return {one.action_id: canary_report(without, settle_copy(world, seed, json.loads(one.text))) for one in proposals}


def settle_copy(world: World, seed: int, rules: Mapping[str, int]) -> World:
    """The world some rounds on if nobody submits anything, with these rules changed."""
    copy = replace(world, rules={**world.rules, **rules})
    for _ in range(CANARY_ROUNDS):
        copy = settle(copy, [], seed).world
    return copy


def canary_report(without: World, changed: World) -> dict[str, Any]:
    """The effect of the new rules: each figure without them and with them. `members_died` live only without them."""
    vitality = [sum(one.vitality for one in world.members.values()) / UNIT for world in (without, changed)]
    drop_pct = round(100 * (vitality[1] / vitality[0] - 1), 1) if vitality[0] else 0.0
    died = sorted(without.members.keys() - changed.members.keys())
    flags = {"vitality_drop": drop_pct <= _SHARP_DROP_PCT, "members_died": bool(died)}
    return {
        "rounds": CANARY_ROUNDS,
        "population": [len(without.members), len(changed.members)],
        "total_vitality": vitality,
        "vitality_change_pct": drop_pct,
        "members_died": died,
        "divergence_flags": [flag for flag, raised in flags.items() if raised],
    }
