"""A player's code, before it goes into the cage and after it came back: what it is shown, and what its wishes mean.

Nothing that comes back is believed: the actor is always the member of the key that sent the code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from council.sandbox.job import Harness, Job, Result
from council.world.kernel import VERBS, Action, World
from council.world.land import beside
from council.world.world_rules import MAX_ACTIONS, UNIT

ENTRY = "agent_action"
WORLD = Harness("world", resources.files(__package__).joinpath("proxies.py").read_text(encoding="utf-8"))


class Surroundings:
    """The world as all players of one round are shown it; `of` adds what one of them alone sees."""

    def __init__(self, world: World, last_actions: Mapping[int, Sequence[str]]) -> None:
        """`last_actions` are the verbs that each member did in the round before."""
        owners = {cell: one.id for one in world.members.values() for cell in one.cells}
        remembered: dict[int, list[list[Any]]] = {}
        for (who, whom), one in sorted(world.relations.items()):
            memory = {
                "victim": one.victim / UNIT,
                "benefit": one.benefit / UNIT,
                "benefit_land": one.benefit_land,
            }
            remembered.setdefault(who, []).append([whom, memory])
        self._members = {
            one.id: {
                "id": one.id,
                "vitality": one.vitality / UNIT,
                "cargo": one.cargo / UNIT,
                "land": len(one.cells),
                "age": one.age,
                "productivity": one.productivity / UNIT,
                "neighbors": sorted(
                    {owners[cell] for own in one.cells for cell in beside(own, world.shape) if cell in owners}
                    - {one.id}
                ),
                "relationships": remembered.get(one.id, []),
                "last_round_actions": list(last_actions.get(one.id, ())),
            }
            for one in world.members.values()
        }
        self._told = {"round_id": world.round_id + 1, "rules": dict(world.rules), "shape": list(world.shape)}

    def of(self, member_id: int, letters: Sequence[tuple[int, str]]) -> dict[str, Any]:
        """The argument of one player's job."""
        mine = {**self._members[member_id], "messages": [list(letter) for letter in letters]}
        return {**self._told, "me": member_id, "members": list({**self._members, member_id: mine}.values())}


def job_of(code: str, surroundings: Surroundings, member_id: int, letters: Sequence[tuple[int, str]], seed: int) -> Job:
    """A player's code as a job for the cage."""
    return Job(code, ENTRY, surroundings.of(member_id, letters), WORLD, seed=seed)


def wishes(result: Result, submission_id: str, member_id: int) -> tuple[list[Action], str]:
    """The actions of a finished job, their ids made of the submission's; and the error, where there is one."""
    if result.status != "ok":
        return [], result.error or result.status
    if not isinstance(result.value, list):
        return [], "the answer is no list of actions"
    told = [_action(one, f"{submission_id}.{number}", member_id) for number, one in enumerate(result.value, 1)]
    return told[: MAX_ACTIONS + 1], ""


def _action(told: Any, action_id: str, member_id: int) -> Action:
    """One wish; what makes no sense becomes a verb that nobody knows, and is rejected with that word."""
    if not isinstance(told, dict) or told.get("action") not in VERBS:
        word = str(told.get("action") if isinstance(told, dict) else told)[:40]
        return Action(action_id, member_id, f"unknown: {word}")  # never one of the house's own
    if told.get("member_id") != member_id:
        return Action(action_id, member_id, "another member's action")
    target, amount = told.get("target_id"), told.get("amount")
    if target is not None and (not isinstance(target, int) or isinstance(target, bool)):
        return Action(action_id, member_id, "a target that is no id")
    if amount is not None and (
        isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount) or amount > 1e12
    ):
        return Action(action_id, member_id, "an amount that is no number")
    thousandths = None if amount is None else max(0, int(amount * UNIT))
    return Action(action_id, member_id, told["action"], target, thousandths, str(told.get("text", "")))
