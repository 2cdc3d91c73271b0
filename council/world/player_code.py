"""A player's code, before it goes into the cage and after it came back: what it is shown, and what its wishes mean.

Nothing that comes back is believed: the actor is always the member of the key that sent the code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from council.ids import canonical_json
from council.sandbox.job import Job, Result
from council.world.kernel import VERBS, Action, World
from council.world.rule_changes import flaw_in
from council.world.torus import beside
from council.world.world_rules import MAX_ACTIONS, MAX_MESSAGE_CHARS, UNIT

ENTRY, PROPOSAL_ENTRY = "agent_action", "propose_modification"
WORLD = resources.files(__package__).joinpath("player_view.py").read_text(encoding="utf-8")  # the harness of its jobs


class Surroundings:
    """The world as all players of one round are shown it; `of` adds what one of them alone sees. `proxies` reads it.

    Members are rows of whole thousandths, because those of thousands must fit into the cage's largest argument.
    """

    def __init__(self, world: World, last_actions: Mapping[int, Sequence[str]]) -> None:
        """`last_actions` are the verbs that each member did in the round before."""
        owners = {cell: one.id for one in world.members.values() for cell in one.cells}
        self._remembered: dict[int, list[list[int]]] = defaultdict(list)
        for (who, whom), one in world.relations.items():
            for concerned in (who, whom):
                self._remembered[concerned].append([who, whom, one.victim, one.benefit, one.benefit_land])
        rows = []
        for member in world.members.values():
            near = {owners[cell] for own in member.cells for cell in beside(own, world.shape) if cell in owners}
            figures = [member.vitality, member.cargo, len(member.cells), member.age, member.productivity]
            rows.append([member.id, *figures, sorted(near - {member.id})])
        counts = [[who, [verbs.count(verb) for verb in VERBS]] for who, verbs in last_actions.items()]
        told = {"round_id": world.round_id + 1, "rules": dict(world.rules), "shape": list(world.shape)}
        told |= {"members": rows, "verbs": VERBS, "last_actions": counts}
        self._told = canonical_json(told).decode()  # once for all players

    def of(self, member_id: int, letters: Sequence[tuple[int, str]]) -> dict[str, Any]:
        """The argument of one player's job: all members, and of what they remember the part that concerns the player."""
        mine = {"me": member_id, "messages": [list(one) for one in letters]}
        return {"world": self._told, **mine, "remembered": self._remembered.get(member_id, [])}


def job_of(code: str, surroundings: Surroundings, member_id: int, letters: Sequence[tuple[int, str]], seed: int) -> Job:
    """A player's code as a job for the cage."""
    return Job(code, ENTRY, surroundings.of(member_id, letters), WORLD, seed=seed)


def proposal_job(code: str, surroundings: Surroundings, member_id: int, seed: int) -> Job:
    """The code of a mechanism as a job for the cage, the only one in which it runs."""
    return Job(code, PROPOSAL_ENTRY, {**surroundings.of(member_id, ()), "proposes": True}, WORLD, seed=seed)


def wishes(result: Result, submission_id: str, member_id: int) -> tuple[list[Action], str]:
    """The actions of a finished job, their ids made of the submission's; and the error, where there is one."""
    if result.status != "ok":
        return [], result.error or result.status
    if not isinstance(result.value, list):
        return [], "the answer is not a list of actions"
    told = [_action(one, f"{submission_id}.{number}", member_id) for number, one in enumerate(result.value, 1)]
    return told[: MAX_ACTIONS + 1], ""


def proposed(result: Result, submission_id: str, member_id: int, rules: Mapping[str, int]) -> tuple[list[Action], str]:
    """The proposal of a finished job: the rules to which it gave another value; and the error, where there is one."""
    if result.status != "ok":
        return [], result.error or result.status
    if not isinstance(result.value, dict):
        return [], "the answer is no table of rules"
    changed = {name: value for name, value in result.value.items() if rules.get(name) != value}
    if flaw := flaw_in(changed):
        return [], flaw
    return [Action(submission_id, member_id, "propose", text=canonical_json(changed).decode())], ""


def _action(told: Any, action_id: str, member_id: int) -> Action:
    """One wish; what makes no sense becomes a verb that nobody knows, and is rejected with that word.

    NOTE: Words of a player stand in messages alone. `forget` may change those, and no outcome and no hash hangs on them.
    """
    if not isinstance(told, dict) or told.get("action") not in VERBS:
        return Action(action_id, member_id, "a verb that nobody knows")
    if told.get("member_id") != member_id:
        return Action(action_id, member_id, "another member's action")
    target, amount = told.get("target_id"), told.get("amount")
    if target is not None and (not isinstance(target, int) or isinstance(target, bool)):
        return Action(action_id, member_id, "a target that is not an id")
    if amount is not None and (
        isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount) or amount > 1e12
    ):
        return Action(action_id, member_id, "an amount that is not a number")
    text = str(told.get("text", "")) if told["action"] == "message" else ""
    if len(text) > MAX_MESSAGE_CHARS:
        return Action(action_id, member_id, f"a message of more than {MAX_MESSAGE_CHARS} characters")
    thousandths = None if amount is None else max(0, int(amount * UNIT))
    return Action(action_id, member_id, told["action"], target, thousandths, text)
