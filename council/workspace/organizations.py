"""Organizations and their members: invitations, roles, capabilities, and the permissions of projects.

Nobody changes their own standing. Only an administrator touches an administrator or makes one, and the last one stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Executable, Row, Table, bindparam, delete, func, insert, select, update

from council.ids import STEWARD
from council.tools.preview import Difference, Inverse
from council.users.tables import users
from council.workspace import arguments as a
from council.workspace.functions import ADMINISTRATOR, PERMISSIONS
from council.workspace.rights import Spot, absent, require, standing
from council.workspace.tables import capabilities, invitations, members, organizations, permissions, projects, tasks
from council.workspace.transaction import Change, Visit, WorkspaceRefused, edited

_A = {"administrator": "an administrator", "member": "a member", "guest": "a guest"}
INVITATION_MS = 7 * 86_400_000
_ORGANIZATION = select(organizations).where(organizations.c.org_id == bindparam("org_id"))
_PROJECT = select(projects).where(projects.c.project_id == bindparam("project_id"))


def create_organization(visit: Visit, arguments: a.NewOrganization) -> Change:
    """A new organization. Its first administrator is the one who creates it, or whom the steward names."""
    who = arguments.administrator or visit.principal.id
    if who != visit.principal.id and not visit.principal.is_administrator:
        raise WorkspaceRefused("forbidden", "Only the steward can name somebody else.", fix="leave `administrator` out")
    if who == STEWARD.id:
        fix = "name a user as its administrator; `council users list` shows them"
        raise WorkspaceRefused("no_administrator", "The steward cannot be a member of an organization.", fix=fix)
    require(visit, "createOrganization", Spot(), "organization")
    name, key = person(visit, who), {"org_id": visit.new_id()}
    whose = {"name": arguments.name, "author": visit.principal.id, "created_ms": visit.now_ms}
    made = insert(organizations).values(**key, **whose)
    joined = insert(members).values(**key, user_id=who, role=ADMINISTRATOR, created_ms=visit.now_ms)
    told = f"The organization “{arguments.name}” is created, with {name} as its administrator."
    return Change(told, (made, joined), key["org_id"])


def update_organization(visit: Visit, arguments: a.OrganizationPatch) -> Change:
    org = organization_row(visit, arguments.orgId)
    require(visit, "updateOrganization", Spot(org.org_id), "organization")
    return edited(organizations, org, f"The organization “{org.name}”", {"name": arguments.name})


def invite_member(visit: Visit, arguments: a.NewInvitation) -> Change:
    org = organization_row(visit, arguments.orgId)
    words = require(visit, "inviteMember", Spot(org.org_id), "organization")
    _require_to_appoint(arguments.role, words)
    name = person(visit, arguments.userId)
    if _role(visit, org.org_id, arguments.userId):
        raise WorkspaceRefused("already_member", f"{name} is a member already.", fix="change the role instead")
    asked = _invitation(visit, org.org_id, arguments.userId)
    before = asked.role if asked else ""
    _require_to_touch(before, words, f"{name} is invited to {org.name} as an administrator.")
    if before == arguments.role:
        withdraw = f"`council workspace members remove {org.org_id} {arguments.userId}` withdraws it"
        fix = f"name another role to correct the invitation; {withdraw}"
        raise WorkspaceRefused("already_invited", f"{name} is invited as {_A[before]} already.", fix=fix)
    values = {"org_id": org.org_id, "user_id": arguments.userId, "role": arguments.role, "author": visit.principal.id}
    accept = f"`council workspace orgs accept {org.org_id} --user {arguments.userId}`"
    told = f"invited to {org.name} as {_A[arguments.role]}, for seven days."
    invited = insert(invitations).values(**values, expires_ms=visit.now_ms + INVITATION_MS)
    notice = visit.notice(arguments.userId, f"You are {told} {accept} accepts.")
    statements = (_uninvited(org.org_id, arguments.userId), invited, *notice)
    shown = (Difference("role", before, arguments.role),) if before else ()
    return Change(f"{name} is {told}", statements, arguments.userId, shown, (name,), state=before)


def accept_invitation(visit: Visit, arguments: a.OfOrganization) -> Change:
    """The invited person joins. Nobody else accepts for them."""
    asked = _invitation(visit, arguments.orgId, visit.principal.id)
    if asked is None:
        message = f"{visit.principal.id} has no invitation to this organization, or it is older than seven days."
        raise WorkspaceRefused("not_invited", message, fix="ask an administrator for a new invitation")
    org = organization_row(visit, arguments.orgId)
    values = {"org_id": asked.org_id, "user_id": asked.user_id, "role": asked.role, "created_ms": visit.now_ms}
    told = f"{person(visit, visit.principal.id)} is now {_A[asked.role]} of {org.name}."
    joined = insert(members).values(values)
    return Change(
        told, (_uninvited(asked.org_id, asked.user_id), joined, *visit.notice(asked.author, told)), org.org_id
    )


def change_role(visit: Visit, arguments: a.NewRole) -> Change:
    org, name, before = _member(visit, "changeRole", arguments)
    words = standing(visit, Spot(org.org_id))
    _require_to_appoint(arguments.role, words)
    if arguments.role == before:
        raise WorkspaceRefused("unchanged", f"{name} is {_A[before]} already.", fix="name another role")
    _require_administrator_left(visit, org.org_id, name, before)
    key = (members.c.org_id == org.org_id, members.c.user_id == arguments.userId)
    changed = update(members).where(*key).values(role=arguments.role)
    notice = visit.notice(arguments.userId, f"Your role in {org.name} is now {arguments.role}.")
    told = f"{name} is now {_A[arguments.role]} of {org.name}, and no longer {_A[before]}."
    shown = Difference("role", before, arguments.role)
    inverse = Inverse("changeRole", {**arguments.model_dump(), "role": before})
    return Change(told, (changed, *notice), arguments.userId, (shown,), (name,), inverse, before)


def remove_member(visit: Visit, arguments: a.OfMember) -> Change:
    """The member goes, and with them their capabilities and permissions. Their tasks have no assignee any more. Of somebody who
    has not accepted yet, the invitation is withdrawn."""
    if asked := _invitation(visit, arguments.orgId, arguments.userId):
        org, name = organization_row(visit, arguments.orgId), person(visit, arguments.userId)
        words = require(visit, "removeMember", Spot(org.org_id), "organization")
        _require_to_touch(asked.role, words, f"{name} is invited to {org.name} as an administrator.")
        told = f"invitation to {org.name} is withdrawn."
        gone = (_uninvited(org.org_id, arguments.userId), *visit.notice(arguments.userId, f"Your {told}"))
        shown = (Difference("role", asked.role, ""),)
        return Change(f"{name}: the {told}", gone, arguments.userId, shown, (name,), state=asked.role)
    org, name, role = _member(visit, "removeMember", arguments)
    notice = visit.notice(arguments.userId, f"You are no longer a member of {org.name}.")
    return _gone(visit, org, arguments.userId, role, f"{name} is removed from {org.name}.", notice)


def leave_organization(visit: Visit, arguments: a.OfOrganization) -> Change:
    """The principal's own membership ends, or their invitation is declined. Who has invited them, or administers the
    organization, is told."""
    who, org_id = visit.principal.id, arguments.orgId
    if asked := _invitation(visit, org_id, who):
        org, name = organization_row(visit, org_id), person(visit, who)
        told = f"{name} declined the invitation to {org.name}."
        return Change(told, (_uninvited(org_id, who), *visit.notice(asked.author, told)), org_id)
    role = _role(visit, org_id, who)
    if not role:
        message = f"{who} is not a member of this organization."
        raise WorkspaceRefused("no_member", message, fix="`council workspace orgs list` shows yours")
    org = organization_row(visit, org_id)
    told = f"{person(visit, who)} has left {org.name}."
    administrators = select(members.c.user_id).where(members.c.org_id == org_id, members.c.role == ADMINISTRATOR)
    notices = [each for one in visit.connection.scalars(administrators) for each in visit.notice(one, told)]
    return _gone(visit, org, who, role, told, notices)


def _gone(
    visit: Visit, org: Row[tuple[str, ...]], user_id: str, role: str, told: str, notices: Sequence[Executable]
) -> Change:
    name = person(visit, user_id)
    _require_administrator_left(visit, org.org_id, name, role)
    own = select(projects.c.project_id).where(projects.c.org_id == org.org_id)
    assigned = (tasks.c.assignee == user_id, tasks.c.project_id.in_(own))
    key = (members.c.org_id == org.org_id, members.c.user_id == user_id)
    unassign = update(tasks).where(*assigned).values(assignee=None, version=tasks.c.version + 1)
    role_lost = (Difference("role", role, ""),)
    return Change(told, (unassign, delete(members).where(*key), *notices), user_id, role_lost, (name,), state=role)


def grant_capability(visit: Visit, arguments: a.OfCapability) -> Change:
    return _set_capability(visit, "grantCapability", arguments, True)


def revoke_capability(visit: Visit, arguments: a.OfCapability) -> Change:
    return _set_capability(visit, "revokeCapability", arguments, False)


def _set_capability(visit: Visit, action: str, arguments: a.OfCapability, granted: bool) -> Change:
    org, name, _ = _member(visit, action, arguments)
    key = {"org_id": org.org_id, "user_id": arguments.userId, "capability": arguments.capability}
    inverse = Inverse("revokeCapability" if granted else "grantCapability", arguments.model_dump())
    return _given(visit, capabilities, key, arguments.capability, granted, name, org.name, inverse)


def create_project(visit: Visit, arguments: a.NewProject) -> Change:
    """A new project. Its creator, when a member, has every permission in it."""
    org = organization_row(visit, arguments.orgId)
    require(visit, "createProject", Spot(org.org_id), "organization")
    project_id, who = visit.new_id(), visit.principal.id
    values = {"project_id": project_id, "org_id": org.org_id, "name": arguments.name, "author": who}
    grants = [
        insert(permissions).values(project_id=project_id, org_id=org.org_id, user_id=who, permission=permission)
        for permission in (PERMISSIONS if _role(visit, org.org_id, who) else ())
    ]
    made = insert(projects).values(**values, description=arguments.description, created_ms=visit.now_ms)
    return Change(f"The project “{arguments.name}” is created in {org.name}.", (made, *grants), project_id)


def update_project(visit: Visit, arguments: a.ProjectPatch) -> Change:
    """Changes what is given; the rest stays."""
    project = project_row(visit, arguments.projectId)
    require(visit, "updateProject", Spot(project.org_id, project.project_id), "project")
    values = arguments.model_dump(exclude_unset=True, exclude={"projectId"})
    return edited(projects, project, f"The project “{project.name}”", values)


def set_project_permission(visit: Visit, arguments: a.NewPermission) -> Change:
    project = project_row(visit, arguments.projectId)
    require(visit, "setProjectPermission", Spot(project.org_id, project.project_id), "project")
    _require_other(visit, arguments.userId)
    name = person(visit, arguments.userId)
    if not _role(visit, project.org_id, arguments.userId):
        raise no_member(visit, project.org_id, arguments.userId, f"{name} is not a member of the organization.")
    key = {"project_id": project.project_id, "user_id": arguments.userId, "permission": arguments.permission}
    inverse = Inverse("setProjectPermission", {**arguments.model_dump(), "granted": not arguments.granted})
    where, more = f"the project “{project.name}”", {"org_id": project.org_id}
    return _given(visit, permissions, key, arguments.permission, arguments.granted, name, where, inverse, **more)


def _given(
    visit: Visit,
    table: Table,
    key: dict[str, str],
    grant: str,
    granted: bool,
    name: str,
    where: str,
    inverse: Inverse,
    **more: str,
) -> Change:
    """A grant that a member gets, or loses."""
    chosen = [table.c[column] == value for column, value in key.items()]
    there = visit.connection.execute(select(table).where(*chosen)).one_or_none() is not None
    if there == granted:
        raise WorkspaceRefused("unchanged", f"{name} {'has' if there else 'lacks'} it already.", fix="nothing to do")
    told = f"{'may now' if granted else 'may no longer'} use `{grant}` in {where}."
    changed = insert(table).values(**key, **more) if granted else delete(table).where(*chosen)
    notice = visit.notice(key["user_id"], f"You {told}")
    shown = Difference(grant, "" if granted else "granted", "granted" if granted else "")
    return Change(f"{name} {told}", (changed, *notice), key["user_id"], (shown,), (name,), inverse, str(there))


def organization_row(visit: Visit, org_id: str) -> Row[tuple[str, ...]]:
    row = visit.connection.execute(_ORGANIZATION, {"org_id": org_id}).one_or_none()
    if row is None:
        raise absent("organization")
    return row


def project_row(visit: Visit, project_id: str) -> Row[tuple[str, ...]]:
    row = visit.connection.execute(_PROJECT, {"project_id": project_id}).one_or_none()
    if row is None:
        raise absent("project")
    return row


def person(visit: Visit, user_id: str) -> str:
    """The name of a user, as people know it. Raises WorkspaceRefused."""
    row = visit.connection.execute(select(users.c.name).where(users.c.user_id == user_id)).one_or_none()
    if row is None:
        raise WorkspaceRefused("no_such_user", f"There is no user {user_id}.", fix="`council users list` shows them")
    return str(row.name or user_id)


def names_of(visit: Visit) -> dict[str, str]:
    """The names of all users who have one, by their ids."""
    rows = visit.connection.execute(select(users.c.user_id, users.c.name))
    return {row.user_id: row.name for row in rows if row.name}


def _role(visit: Visit, org_id: str, user_id: str) -> str:
    found = select(members.c.role).where(members.c.org_id == org_id, members.c.user_id == user_id)
    return visit.connection.scalar(found) or ""


def _uninvited(org_id: str, user_id: str) -> Executable:
    return delete(invitations).where(invitations.c.org_id == org_id, invitations.c.user_id == user_id)


def _invitation(visit: Visit, org_id: str, user_id: str) -> Row[tuple[str, ...]] | None:
    """The invitation that waits for its answer."""
    key = (invitations.c.org_id == org_id, invitations.c.user_id == user_id, invitations.c.expires_ms > visit.now_ms)
    return visit.connection.execute(select(invitations).where(*key)).one_or_none()


def no_member(visit: Visit, org_id: str, user_id: str, message: str) -> WorkspaceRefused:
    """The refusal of what is for members alone. Its fix says what is left to do until the person is one."""
    if _invitation(visit, org_id, user_id) is None:
        return WorkspaceRefused("no_member", message, fix="invite them first")
    fix = f"they are invited and have not accepted: `council workspace orgs accept {org_id} --user {user_id}`"
    return WorkspaceRefused("no_member", message, fix=fix)


def _member(visit: Visit, action: str, arguments: a.OfMember) -> tuple[Row[tuple[str, ...]], str, str]:
    """The organization, the name and the role of a member whom the principal may change. Raises WorkspaceRefused."""
    org = organization_row(visit, arguments.orgId)
    words = require(visit, action, Spot(org.org_id), "organization")
    _require_other(visit, arguments.userId)
    name, role = person(visit, arguments.userId), _role(visit, org.org_id, arguments.userId)
    if not role:
        fix = f"`council workspace orgs show {org.org_id}` lists members and invitations"
        raise WorkspaceRefused("no_member", f"{name} is not a member of {org.name}.", fix=fix)
    _require_to_touch(role, words, f"{name} is an administrator of {org.name}.")
    return org, name, role


def _require_other(visit: Visit, user_id: str) -> None:
    if user_id == visit.principal.id:
        fix = "ask another administrator to do it"
        raise WorkspaceRefused("own_standing", "Nobody changes their own role or rights.", fix=fix)


def _require_to_appoint(role: str, words: frozenset[str]) -> None:
    _require_to_touch(role, words, "Only an administrator can appoint administrators.", fix="name another role")


def _require_to_touch(role: str, words: frozenset[str], told: str, fix: str = "ask an administrator to do it") -> None:
    """Raises WorkspaceRefused where the role is that of an administrator and the principal is none."""
    if role == ADMINISTRATOR and ADMINISTRATOR not in words:
        raise WorkspaceRefused("forbidden", told, fix=fix)


def _require_administrator_left(visit: Visit, org_id: str, name: str, role: str) -> None:
    if role != ADMINISTRATOR:
        return
    of_org = (members.c.org_id == org_id, members.c.role == ADMINISTRATOR)
    if (visit.connection.scalar(select(func.count()).select_from(members).where(*of_org)) or 0) < 2:
        message = f"{name} is the last administrator."
        raise WorkspaceRefused("last_administrator", message, fix="make somebody else an administrator first")
