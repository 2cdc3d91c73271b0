"""The rules of the workspace: who may do what, as one table, judged by the rows of this very transaction."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BindParameter, String, bindparam, select, union_all

from council.workspace.tables import capabilities, members, permissions
from council.workspace.visit import Visit, WorkspaceRefused

ADMINISTRATOR, MEMBER, GUEST = "administrator", "member", "guest"  # of an organization
OWNER = "owner"  # the author, as long as they may see the place where it stands
INVITED = "invited"
ANYONE = "anyone"  # every person of this home

CAPABILITIES = {
    "invite_members": "invite people as member or guest",
    "change_roles": "make members guests, and guests members",
    "remove_members": "remove members and guests",
    "create_projects": "create projects",
    "manage_events": "create, change and delete events",
    "moderate_comments": "remove comments of others",
}
PERMISSIONS = {
    "view": "see the project, its tasks and its notes",
    "comment": "comment on tasks",
    "edit_tasks": "create and change tasks",
    "delete_tasks": "delete tasks",
    "edit_notes": "write, change and delete notes of the project",
    "manage_permissions": "set permissions of other collaborators",
}

_INSIDE = frozenset({ADMINISTRATOR, MEMBER, GUEST})
_SEE = frozenset({ADMINISTRATOR, MEMBER, *PERMISSIONS})  # each permission shows the project, too

RULES: dict[str, frozenset[str]] = {
    "getSessionContext": frozenset({ANYONE}),
    "listNotifications": frozenset({ANYONE}),
    "readNotifications": frozenset({ANYONE}),
    "listEventsPublic": frozenset({ANYONE}),
    "listOrganizations": frozenset({ANYONE}),
    "createOrganization": frozenset({ANYONE}),
    "acceptInvitation": frozenset({INVITED}),
    "getOrganization": _INSIDE,
    "inviteMember": frozenset({ADMINISTRATOR, "invite_members"}),
    "changeRole": frozenset({ADMINISTRATOR, "change_roles"}),
    "removeMember": frozenset({ADMINISTRATOR, "remove_members"}),
    "grantCapability": frozenset({ADMINISTRATOR}),
    "revokeCapability": frozenset({ADMINISTRATOR}),
    "createProject": frozenset({ADMINISTRATOR, "create_projects"}),
    "listProjects": _SEE,
    "getProjectDetail": _SEE,
    "setProjectPermission": frozenset({ADMINISTRATOR, "manage_permissions"}),
    "listTasks": _SEE,
    "getTaskDetail": _SEE,
    "createTask": frozenset({ADMINISTRATOR, "edit_tasks"}),
    "updateTask": frozenset({ADMINISTRATOR, "edit_tasks"}),
    "updateTaskStatus": frozenset({ADMINISTRATOR, "edit_tasks"}),
    "deleteTask": frozenset({ADMINISTRATOR, "delete_tasks"}),
    "listNotesMetadata": _SEE | {OWNER},
    "getNoteContentIfUnlocked": _SEE | {OWNER},
    "unlockNote": _SEE | {OWNER},
    "createNote": frozenset({OWNER, ADMINISTRATOR, "edit_notes"}),
    "updateNote": frozenset({OWNER, ADMINISTRATOR, "edit_notes"}),
    "deleteNote": frozenset({OWNER, ADMINISTRATOR, "edit_notes"}),
    "lockNote": frozenset({OWNER}),
    "removeLock": frozenset({OWNER}),
    "listEvents": _INSIDE,
    "createEvent": frozenset({ADMINISTRATOR, "manage_events"}),
    "updateEvent": frozenset({ADMINISTRATOR, "manage_events"}),
    "deleteEvent": frozenset({ADMINISTRATOR, "manage_events"}),
    "addComment": frozenset({ADMINISTRATOR, MEMBER, "comment"}),
    "removeComment": frozenset({OWNER, ADMINISTRATOR, "moderate_comments"}),
}


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


def standing(visit: Visit, spot: Spot) -> frozenset[str]:
    """The words of RULES that hold for the principal there and now."""
    who = visit.principal
    if who.kind in ("player", "service"):
        return frozenset()
    words = {ANYONE}
    if spot.org_id:
        if who.kind in ("steward", "administrator"):
            words.add(ADMINISTRATOR)
        here = {"org": spot.org_id, "project": spot.project_id, "who": who.id}
        words |= set(visit.connection.scalars(_WORDS_OF, here))
    if spot.owner == who.id and (not spot.org_id or words & _SEE):
        words.add(OWNER)
    return frozenset(words)


def may(visit: Visit, action: str, spot: Spot) -> bool:
    return bool(RULES[action] & standing(visit, spot))


def require(visit: Visit, action: str, spot: Spot, what: str) -> frozenset[str]:
    """The principal's standing where the rules allow the action. Raises WorkspaceRefused. To somebody who has no business there
    it says no more than that there is nothing."""
    words = standing(visit, spot)
    if RULES[action] & words:
        return words
    if words <= {ANYONE} or (spot.project_id and not words & _SEE):
        raise absent(what)
    opens = sorted(RULES[action] & {*CAPABILITIES, *PERMISSIONS})
    grant = f", or needs the grant `{'` or `'.join(opens)}`" if opens and not RULES[action] >= _SEE else ""
    message = f"{visit.principal.id} may not use {action} here."
    raise WorkspaceRefused("forbidden", message, fix=f"it is for {_people(action)}{grant}; see docs/workspace.md")


def absent(what: str) -> WorkspaceRefused:
    return WorkspaceRefused("not_found", f"There is no {what}, or you may not see it.", fix="look at the list again")


def _people(action: str) -> str:
    plain = {
        ADMINISTRATOR: "administrators",
        MEMBER: "members",
        GUEST: "guests",
        OWNER: "its owner",
        INVITED: "invited people",
    }
    return " and ".join(told for word, told in plain.items() if word in RULES[action])
