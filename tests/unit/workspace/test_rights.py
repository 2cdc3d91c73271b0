"""The table of who may do what, walked whole: every function, by every kind of principal, and through every grant."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from council.errors import CouncilError
from council.plans.approval import PlanRefused
from council.workspace.arguments import Capability, Permission
from council.workspace.context_pack import read
from council.workspace.functions import ACTIONS, CAPABILITIES, KINDS, PERMISSIONS, RULES
from council.workspace.transaction import WorkspaceRefused
from tests.space import LOCKS, Space
from tests.staffroom import Staffroom

STEWARDS, ADMINS = ("steward", "hana"), ("ada", "alan")
ALL = (*STEWARDS, "ada", "alan", "mia", "nora", "gus", "otto", "inga")
ABOVE = (*STEWARDS, *ADMINS)
MEMBERS = (*ABOVE, "mia", "nora")
INSIDE = (*MEMBERS, "gus")
WHO_MAY: dict[str, tuple[str, ...]] = {  # `nora` wrote the note and the comment
    "getSessionContext": ALL,
    "listNotifications": ALL,
    "readNotifications": ALL,
    "listEventsPublic": ALL,
    "listOrganizations": ALL,
    "createOrganization": ALL,
    "acceptInvitation": ("inga",),
    "leaveOrganization": ("ada", "alan", "mia", "nora", "gus", "inga"),
    "updateOrganization": ABOVE,
    "getOrganization": INSIDE,
    "inviteMember": ABOVE,
    "changeRole": ABOVE,
    "removeMember": ABOVE,
    "grantCapability": ABOVE,
    "revokeCapability": ABOVE,
    "createProject": ABOVE,
    "updateProject": ABOVE,
    "listProjects": MEMBERS,
    "getProjectDetail": MEMBERS,
    "setProjectPermission": ABOVE,
    "listTasks": MEMBERS,
    "getTaskDetail": MEMBERS,
    "createTask": ABOVE,
    "updateTask": ABOVE,
    "updateTaskStatus": ABOVE,
    "deleteTask": ABOVE,
    "listNotesMetadata": MEMBERS,
    "getNoteContentIfUnlocked": MEMBERS,
    "unlockNote": MEMBERS,
    "createNote": ABOVE,
    "updateNote": (*ABOVE, "nora"),
    "deleteNote": (*ABOVE, "nora"),
    "lockNote": ("nora",),
    "removeLock": ("nora",),
    "listEvents": INSIDE,
    "createEvent": ABOVE,
    "updateEvent": ABOVE,
    "deleteEvent": ABOVE,
    "addComment": MEMBERS,
    "removeComment": (*ABOVE, "nora"),
}
OPENS: dict[str, tuple[str, ...]] = {
    "invite_members": ("inviteMember",),
    "change_roles": ("changeRole",),
    "remove_members": ("removeMember",),
    "create_projects": ("createProject", "updateProject"),
    "manage_events": ("createEvent", "updateEvent", "deleteEvent"),
    "moderate_comments": ("removeComment",),
    "view": ("listTasks", "getTaskDetail", "getProjectDetail", "getNoteContentIfUnlocked", "listNotesMetadata"),
    "comment": ("addComment", "getTaskDetail"),
    "edit_tasks": ("createTask", "updateTask", "updateTaskStatus", "getTaskDetail"),
    "delete_tasks": ("deleteTask", "getTaskDetail"),
    "edit_notes": ("createNote", "updateNote", "deleteNote", "getTaskDetail"),
    "manage_permissions": ("setProjectPermission", "getTaskDetail"),
}


def arguments(space: Space, name: str) -> dict[str, Any]:
    ids = space.ids
    org, project = {"orgId": ids["org"]}, {"projectId": ids["project"]}
    mia = {**org, "userId": "mia"}
    return {
        "createOrganization": {"name": "Another", "administrator": "mia"},
        "acceptInvitation": org,
        "leaveOrganization": org,
        "updateOrganization": {**org, "name": "Orchard"},
        "getOrganization": org,
        "inviteMember": {**org, "userId": "otto"},
        "changeRole": {**mia, "role": "guest"},
        "removeMember": mia,
        "grantCapability": {**mia, "capability": "create_projects"},
        "revokeCapability": {**mia, "capability": "moderate_comments"},
        "createProject": {**org, "name": "Trees"},
        "updateProject": {**project, "name": "Spices"},
        "getProjectDetail": project,
        "setProjectPermission": {**project, "userId": "mia", "permission": "view"},
        "listTasks": project,
        "getTaskDetail": {"taskId": ids["task"]},
        "createTask": {**project, "title": "Sow thyme"},
        "updateTask": {"taskId": ids["task"], "title": "Sow dill"},
        "updateTaskStatus": {"taskId": ids["task"], "status": "done"},
        "deleteTask": {"taskId": ids["task"]},
        "listNotesMetadata": project,
        "getNoteContentIfUnlocked": {"noteId": ids["note"]},
        "unlockNote": {"noteId": ids["note"]},
        "createNote": {**project, "content": "Thyme likes it dry."},
        "updateNote": {"noteId": ids["note"], "content": "Basil dies of frost."},
        "deleteNote": {"noteId": ids["note"]},
        "lockNote": {"noteId": ids["note"]},
        "removeLock": {"noteId": ids["note"]},
        "listEvents": org,
        "createEvent": {**org, "title": "Closed day", "date": "2026-12-21T10:00"},
        "updateEvent": {"eventId": ids["event"], "title": "Open night"},
        "deleteEvent": {"eventId": ids["event"]},
        "addComment": {"taskId": ids["task"], "content": "Now."},
        "removeComment": {"commentId": ids["comment"]},
    }.get(name, {})


def may(space: Space, who: str, name: str) -> bool:
    """A list shows nothing to those who may not see; every other function refuses."""
    given = arguments(space, name)
    if name == "createOrganization" and who not in STEWARDS:
        given.pop("administrator")
    if name in ("changeRole", "removeMember", "grantCapability", "revokeCapability", "setProjectPermission"):
        given["userId"] = "nora" if who == "mia" else given["userId"]
    try:
        found = space.come_to(who, name, **given)
    except WorkspaceRefused as refused:
        if refused.code not in ("forbidden", "not_found", "not_invited", "not_locked", "no_member"):
            raise
        return refused.code == "not_locked"  # the rules let it pass: the note has no lock
    return bool(found) or name in ("listNotifications", "listEventsPublic", "listOrganizations")


def test_the_table_names_every_function_and_every_grant() -> None:
    assert set(WHO_MAY) == set(RULES) == {*ACTIONS, *LOCKS}
    assert set(OPENS) == {*CAPABILITIES, *PERMISSIONS} == {*get_args(Capability), *get_args(Permission)}


@pytest.mark.parametrize("name", sorted(WHO_MAY))
def test_each_function_is_open_to_those_whom_the_table_names_and_to_nobody_else(space: Space, name: str) -> None:
    if name == "revokeCapability":
        for member in ("mia", "nora"):
            space.do("ada", "grantCapability", orgId=space.ids["org"], userId=member, capability="moderate_comments")
    before = space.everything()
    assert {who for who in ALL if may(space, who, name)} == set(WHO_MAY[name])
    assert space.everything() == before


@pytest.mark.parametrize("name", sorted(name for name, verb in ACTIONS.items() if verb.effect == "read"))
async def test_a_tool_shows_an_agent_what_its_person_may_see_and_no_more(space: Space, name: str) -> None:
    given, tools = arguments(space, name), space.planning.plans.tools
    found = {who: await read(tools, [name], name, given, who) for who in ALL}
    may_be_empty = name in ("listNotifications", "listEventsPublic", "listOrganizations")
    assert {who for who, one in found.items() if not one.error and (one.rows or may_be_empty)} == set(WHO_MAY[name])
    for who in WHO_MAY[name]:
        own = space.come_to(who, name, **given)
        assert found[who].rows == (own if isinstance(own, list) else [own])


async def test_agents_draft_for_two_members_of_one_organization_what_each_of_them_may(tmp_path: Path) -> None:
    room = Staffroom(tmp_path)
    ids, gone = room.space.ids, {"reason": "Asked for.", "dangerous": True, "asked": "remove what is old"}
    spam = room.space.do("nora", "addComment", eventId=ids["event"], content="Spam.")
    room.space.do("ada", "grantCapability", orgId=ids["org"], userId="gus", capability="manage_events")
    mia = {"orgId": ids["org"], "userId": "mia", "reason": "Asked for."}
    replies: dict[str, dict[str, Any]] = {
        "task_planner": {
            "creates": [{"title": "Sow thyme"}],
            "updates": [{"taskId": ids["task"], "title": "Sow dill"}],
            "statusChanges": [{"taskId": ids["task"], "status": "done"}],
            "deletes": [{"taskId": ids["task"], **gone}],
        },
        "notes_vault": {
            "operations": [
                {"op": "create", "content": "Thyme likes it dry."},
                {"op": "update", "noteId": ids["note"], "content": "Basil dies of frost."},
                {"op": "delete", "noteId": ids["note"], **gone},
            ]
        },
        "events_publisher": {
            "creates": [{"title": "Closed day", "date": "2026-12-21T10:00"}],
            "updates": [{"eventId": ids["event"], "title": "Open night"}],
            "deletes": [{"eventId": ids["event"], **gone}],
            "comments": [{"eventId": ids["event"], "content": "Now."}],
            "commentRemovals": [{"commentId": spam, **gone}],
        },
        "org_admin": {
            "roleChanges": [{**mia, "role": "guest"}],
            "invites": [{**mia, "userId": "otto"}],
            "removals": [{**mia, **gone}],
            "capabilityChanges": [
                {**mia, "capability": "create_projects", "granted": True},
                {**mia, "userId": "gus", "capability": "manage_events", "granted": False},
            ],
            "permissionChanges": [
                {"projectId": ids["project"], "userId": "mia", "permission": "view", "reason": "Asked for."}
            ],
        },
    }
    gone_with_their_row = {"addComment", "removeComment", "grantCapability", "setProjectPermission"}
    request = "Change all of it, let otto in, and remove what is old."
    for user in ("ada", "mia", "nora"):
        drafted: set[str] = set()
        clashing: set[str] = set()
        for agent, reply in replies.items():
            said = {"outcome": "draft", **reply}
            returned = await room.ask(user, agent, request, lambda prompt, said=said: said, project="Herbs")
            assert returned.error == ""
            reasons = {one["tool"]: one["reason"] for one in returned.output["refused"]}
            clashing |= {
                tool for tool, reason in reasons.items() if reason.startswith("An earlier change of this plan")
            }
            carried = {one.tool for one in room.plan(returned).operations} if returned.plan else set()
            assert not reasons.keys() & carried
            drafted |= carried
        proposed = {name for kind in KINDS for name in kind.tools}
        assert drafted | clashing == {name for name in proposed if user in WHO_MAY[name]}
        assert drafted & clashing == set()
        assert clashing == (gone_with_their_row if user == "ada" else set()), "the rest of each plan is drafted"
    room.store.close()


def test_nothing_is_open_to_a_player_a_service_or_somebody_without_a_role(space: Space) -> None:
    from council.ids import Principal
    from council.workspace.functions import visit_of

    def refused(kind: Any) -> str:
        def ask(tx: Any) -> None:
            visit = visit_of(tx.core, Principal("ada", kind), space.planning.clock)
            ACTIONS["listEventsPublic"](visit, None)

        with pytest.raises(WorkspaceRefused) as error:
            space.store.write_now(ask)
        return error.value.code

    assert (refused("player"), refused("service")) == ("not_found", "not_found")
    with pytest.raises(CouncilError, match="nobody has no role"):
        space.come_to("", "listEventsPublic")


def give(space: Space, grant: str, granted: bool) -> None:
    if grant in CAPABILITIES:
        name = "grantCapability" if granted else "revokeCapability"
        space.do("ada", name, orgId=space.ids["org"], userId="gus", capability=grant)
    else:
        key = {"projectId": space.ids["project"], "userId": "gus", "permission": grant}
        space.do("ada", "setProjectPermission", **key, granted=granted)


@pytest.mark.parametrize("grant", sorted(OPENS))
def test_each_grant_opens_its_own_row_to_a_guest_until_it_is_revoked(space: Space, grant: str) -> None:
    every = sorted(set(WHO_MAY) - {"listNotifications", "listEventsPublic", "listOrganizations", "listProjects"})
    before = {name for name in every if may(space, "gus", name)}
    give(space, grant, True)
    seen = {
        "listTasks",
        "getTaskDetail",
        "getProjectDetail",
        "getNoteContentIfUnlocked",
        "listNotesMetadata",
        "unlockNote",
    }
    opened = {name for name in every if may(space, "gus", name)} - before
    assert opened == set(OPENS[grant]) | (seen if grant in PERMISSIONS else set())
    give(space, grant, False)
    assert {name for name in every if may(space, "gus", name)} == before


def test_no_plan_looks_or_creates_projects() -> None:
    assert not {"createProject", *OPENS["view"]} & {name for kind in KINDS for name in kind.tools}


@pytest.mark.parametrize("grant", sorted({*OPENS} - {"view", "create_projects"}))
def test_a_grant_that_is_revoked_between_draft_and_apply_opens_nothing(space: Space, grant: str) -> None:
    name = OPENS[grant][0]
    kind = next(kind.name for kind in KINDS if name in kind.tools)
    gus = space.principal("gus")
    give(space, grant, True)
    planning = space.planning
    plan = planning.confirm(planning.draft((name, arguments(space, name)), kind=kind, by=gus), by=gus)
    give(space, grant, False)
    before = space.everything()
    ending = planning.apply(plan, by=gus)
    assert ending.plan.stored == "failed"
    assert ending.error is not None
    assert ending.error.code in ("forbidden", "not_found")
    assert space.everything() == before
    assert planning.actions()[-1] == "plan_refused"


def test_a_plan_that_its_principal_may_not_apply_cannot_be_drafted(space: Space) -> None:
    with pytest.raises(CouncilError, match="mia may not use updateTask") as refused:
        space.planning.draft(("updateTask", arguments(space, "updateTask")), kind="tasks", by=space.principal("mia"))
    assert isinstance(refused.value, PlanRefused | WorkspaceRefused)
