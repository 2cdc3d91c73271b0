"""The rights of a principal: what opens a function stands in `functions`, and the rows of this transaction decide."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BindParameter, String, bindparam, select, union_all

from council.ids import STEWARD
from council.users.tables import roles
from council.workspace.functions import (
    ADMINISTRATOR,
    ANYONE,
    CAPABILITIES,
    GUEST,
    HEIR,
    INVITED,
    MEMBER,
    OWNER,
    PERMISSIONS,
    RULES,
    SEE,
)
from council.workspace.tables import capabilities, members, permissions
from council.workspace.transaction import Visit, WorkspaceRefused


class Spot(NamedTuple):
    """The spot where something stands: its organization and project, and whose it is. Without an organization it is its
    owner's alone."""

    org_id: str = ""
    project_id: str = ""
    owner: str = ""


_ORG: BindParameter[str] = bindparam("org", type_=String)
_PROJECT: BindParameter[str] = bindparam("project", type_=String)
_WHO: BindParameter[str] = bindparam("who", type_=String)
_WORDS_OF = union_all(  # of a principal: the role, the capabilities and the permissions
    select(members.c.role).where(members.c.org_id == _ORG, members.c.user_id == _WHO),
    select(capabilities.c.capability).where(capabilities.c.org_id == _ORG, capabilities.c.user_id == _WHO),
    select(permissions.c.permission).where(permissions.c.project_id == _PROJECT, permissions.c.user_id == _WHO),
)

_PEOPLE = {
    ADMINISTRATOR: "administrators",
    MEMBER: "members",
    GUEST: "guests",
    OWNER: "its owner",
    HEIR: "administrators once the owner has left",
    INVITED: "invited people",
}


def standing(visit: Visit, spot: Spot, opening: frozenset[str] = frozenset({HEIR})) -> frozenset[str]:
    """The words of RULES that hold for the principal there and now; HEIR, which costs two more queries, only if it opens."""
    who = visit.principal
    if who.kind in ("player", "service"):
        return frozenset()
    words = {ANYONE}
    if spot.org_id:
        if who.is_administrator:
            words.add(ADMINISTRATOR)
        here = {"org": spot.org_id, "project": spot.project_id, "who": who.id}
        words |= set(visit.connection.scalars(_WORDS_OF, here))
        if HEIR in opening and ADMINISTRATOR in words and spot.owner not in ("", STEWARD.id):
            at_home = set(visit.connection.scalars(select(roles.c.role).where(roles.c.user_id == spot.owner)))
            theirs = at_home | set(visit.connection.scalars(_WORDS_OF, {**here, "who": spot.owner}))
            if not (at_home and theirs & SEE):
                words.add(HEIR)
    if spot.owner == who.id and (not spot.org_id or words & SEE):
        words.add(OWNER)
    return frozenset(words)


def may(visit: Visit, action: str, spot: Spot) -> bool:
    return bool(RULES[action] & standing(visit, spot, RULES[action]))


def require(visit: Visit, action: str, spot: Spot, what: str) -> frozenset[str]:
    """The principal's standing where the rules allow the action. Raises WorkspaceRefused. To somebody who has no business there
    it says no more than that there is nothing."""
    words = standing(visit, spot, RULES[action])
    if RULES[action] & words:
        return words
    if words <= {ANYONE} or (spot.project_id and not words & SEE):
        raise absent(what)
    opens = sorted(RULES[action] & {*CAPABILITIES, *PERMISSIONS})
    grant = f", or needs the grant `{'` or `'.join(opens)}`" if opens and not RULES[action] >= SEE else ""
    message = f"{visit.principal.id} may not use {action} here."
    people = " and ".join(told for word, told in _PEOPLE.items() if word in RULES[action])
    raise WorkspaceRefused("forbidden", message, fix=f"it is for {people}{grant}; see docs/workspace.md")


def absent(what: str) -> WorkspaceRefused:
    return WorkspaceRefused("not_found", f"There is no {what}, or you may not see it.", fix="look at the list again")
