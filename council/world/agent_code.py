"""One round of an agent's code: the job that the cage runs, and its answer, which may lie, as actions of one member."""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Any

import msgspec

from council.sandbox.job import Harness, Job
from council.world.kernel import MAX_ACTIONS, Action, Verb, WorldState, draw, neighbours

ENTRY = "agent_action"
WORLD = Harness("world", resources.files(__package__).joinpath("harness.py").read_text(encoding="utf-8"))
MAX_TEXT_CHARS = 2_048


class AskedAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action as it comes out of the cage. It does not name who acts."""

    verb: Verb
    target: Annotated[int, msgspec.Meta(ge=0)] = 0
    amount: Annotated[int, msgspec.Meta(ge=0)] | None = None
    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARS)] = ""


_ANSWER = Annotated[list[AskedAction], msgspec.Meta(max_length=MAX_ACTIONS)]


def job_of(state: WorldState, member_id: int, code: str, seed: int) -> Job:
    """The next round of a living member's code. Raises KeyError for a member that does not live."""
    return Job(code, ENTRY, view_of(state, member_id), WORLD, seed=draw(seed, state.round_id + 1, "code", member_id))


def actions_of(answer: Any) -> tuple[Action, ...]:
    """The actions of an answer. Raises ValueError, which says where it is wrong."""
    asked = msgspec.convert(answer, _ANSWER)
    return tuple(Action(each.verb, each.target, each.amount, each.text) for each in asked)


def view_of(state: WorldState, member_id: int) -> dict[str, Any]:
    """What a member sees: all that live, and of itself what it remembers and was told. Raises KeyError."""
    members = {member.id: member for member in state.members}
    return {
        "me": member_id,
        "round_id": state.round_id + 1,
        "shape": [state.width, state.height],
        "members": [
            [
                each.id, each.vitality, each.cargo, len(state.cells.get(each.id, ())), each.age, each.productivity,
                neighbours(state, each.id), dict(each.last_round_actions),
            ]
            for each in state.members
        ],
        "messages": list(members[member_id].messages),
        "relationships": [
            [other, *relation] for (keeper, other), relation in state.relations.items() if keeper == member_id
        ],
    }  # fmt: skip
