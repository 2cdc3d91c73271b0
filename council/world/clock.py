"""The world's clock, a companion of the daemon: it closes each round at its deadline, works on it, and opens the next.

A round is *accepting* until its deadline, *executing* while the players' code is in the cage, then settled. What was accepted
counts once, whatever dies when. Until the one transaction that settles a round its submissions lie where they were, and a new
process works on them again. After a downtime one round is settled, and none is caught up on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from council.events import Event, Events, WorldChange, WorldRound
from council.ids import Clock
from council.sandbox.cage import Sandbox
from council.world.book import JOIN, Book, OpenRound
from council.world.kernel import Action, World, draw, settle
from council.world.moves import Surroundings, job_of, wishes

_MESSAGES = 100  # to one member, of the round before


class WorldClock:
    """Runs for as long as the daemon."""

    name = "world"

    def __init__(self, book: Book, clock: Clock, events: Events, open_cage: Callable[[], Sandbox]) -> None:
        self._book = book
        self._clock = clock
        self._events = events
        self._open_cage = open_cage
        self._changed = asyncio.Event()
        events.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, WorldChange):
            self._changed.set()

    async def run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            cage: Sandbox | None = None  # a home without a world opens none
            while True:
                self._changed.clear()
                now = self._book.open_round()
                wait_s = self._wait_s(now)
                if now is not None and wait_s is not None and wait_s <= 0:
                    if cage is None:
                        cage = await stack.enter_async_context(self._open_cage())
                    await self._work(now, cage)
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait_s)

    def _wait_s(self, now: OpenRound | None) -> float | None:
        """The seconds until there is something to do. None: nothing is, before the steward does something."""
        if now is None or now.phase == "paused":
            return None
        return 0.0 if now.phase == "executing" else now.deadline_ms / 1000 - self._clock.now().timestamp()

    async def _work(self, now: OpenRound, cage: Sandbox) -> None:
        """Closes the round, works on what was submitted, settles it and opens the next one."""
        if now.phase == "accepting":
            await self._book.set_phase("executing", now.deadline_ms)
        world, seed = await asyncio.to_thread(self._book.world)
        actions, errors = await self._acted(now.round_id, world, seed, cage)
        settled = await asyncio.to_thread(settle, world, actions, seed)
        deadline_ms = int(1000 * (self._clock.now().timestamp() + now.pace_s))
        if await self._book.settle(settled, actions, errors, deadline_ms):
            population = int(settled.receipt.metrics["population"])
            self._events.publish(WorldRound(round=now.round_id, actions=len(actions), population=population))

    async def _acted(
        self, round_id: int, world: World, seed: int, cage: Sandbox
    ) -> tuple[list[Action], dict[str, str]]:
        """The wishes of the players, and the faults of their code, by submission. The code of all runs at once, as far as
        the cage lets it."""
        pending = await asyncio.to_thread(self._book.pending, round_id)
        last_verbs = await asyncio.to_thread(self._book.last_verbs, round_id - 1)
        surroundings = Surroundings(world, last_verbs)
        joins = [Action(one.submission_id, one.member_id, JOIN) for one in pending if one.kind == JOIN]
        errors = {one.submission_id: "" for one in pending if one.kind == JOIN}

        async def one_of(submission_id: str, member_id: int, code: str) -> list[Action]:
            letters = await asyncio.to_thread(self._book.letters, member_id, round_id - 2, _MESSAGES)
            mine = [(letter["from_id"], letter["text"]) for letter in letters]
            number = draw(seed, round_id, "code", member_id, 0, 1 << 31)
            result = await cage.run(job_of(code, surroundings, member_id, mine, number))
            found, errors[submission_id] = wishes(result, submission_id, member_id)
            return found

        acting = [one for one in pending if one.kind != JOIN]
        for one in acting:
            if one.banned or one.member_id not in world.members:
                errors[one.submission_id] = "the player is banned" if one.banned else "the member is dead"
        found = await asyncio.gather(
            *(one_of(one.submission_id, one.member_id, one.code) for one in acting if one.submission_id not in errors)
        )
        return [*joins, *(action for actions in found for action in actions)], errors
