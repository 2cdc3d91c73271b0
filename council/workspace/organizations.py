"""Organizations and their members: invitations, roles, capabilities, and the permissions of projects.

Nobody changes their own standing. Only an administrator touches an administrator or makes one, and the last one stays.
"""

from __future__ import annotations

from sqlalchemy import Row, bindparam, delete, func, insert, select, update

from council.ids import STEWARD
from council.tools.preview import Difference, Inverse
from council.users.notifications import notice
from council.users.tables import users
from council.workspace.arguments import (
    NewInvitation,
    NewOrganization,
    NewPermission,
    NewProject,
    NewRole,
    OfCapability,
    OfMember,
    OfOrganization,
)
from council.workspace.catalogue import ADMINISTRATOR, PERMISSIONS
from council.workspace.rights import Spot, absent, require, standing
from council.workspace.tables import (
    capabilities,
    invitations,
    members,
    organizations,
    permissions,
    projects,
    tasks,
)
from council.workspace.visit import Change, Visit, WorkspaceRefused

INVITATION_MS = 7 * 86_400_000
_ORGANIZATION = select(organizations).where(organizations.c.org_id == bindparam("org_id"))
_PROJECT = select(projects).where(projects.c.project_id == bindparam("project_id"))


def create_organization(visit: Visit, arguments: NewOrganization) -> Change:
    """A new organization. Its first administrator is the one who creates it, or whom the steward names."""
    who = arguments.administrator or visit.principal.id
    if who != visit.principal.id and visit.principal.kind not in ("steward", "administrator"):
        raise WorkspaceRefused("forbidden", "Only the steward names somebody else.", fix="leave `administrator` out")
    if who == STEWARD.id:
        fix = "name a user as its administrator; `council users list` shows them"
        raise WorkspaceRefused("no_administrator", "The steward is no member of organizations.", fix=fix)
    require(visit, "createOrganization", Spot(), "organization")
    name, org_id = person(visit, who), visit.new_id()
    return Change(
        f"The organization “{arguments.name}” is created, with {name} as its administrator.",
        (
            insert(organizations).values(
                org_id=org_id, name=arguments.name, author=visit.principal.id, created_ms=visit.now_ms
            ),
            insert(members).values(org_id=org_id, user_id=who, role=ADMINISTRATOR, created_ms=visit.now_ms),
        ),
        org_id,
    )


def invite_member(visit: Visit, arguments: NewInvitation) -> Change:
    org = organization_row(visit, arguments.orgId)
    words = require(visit, "inviteMember", Spot(org.org_id), "organization")
    _require_to_make(arguments.role, words)
    name = person(visit, arguments.userId)
    if _role(visit, org.org_id, arguments.userId):
        raise WorkspaceRefused("already_member", f"{name} is a member already.", fix="change the role instead")
    key = (invitations.c.org_id == org.org_id, invitations.c.user_id == arguments.userId)
    standing_ms = visit.connection.scalar(select(invitations.c.expires_ms).where(*key)) or 0
    if standing_ms > visit.now_ms:
        raise WorkspaceRefused(
            "already_invited", f"{name} is invited already.", fix="wait until the seven days are over"
        )
    accept = f"`council workspace orgs accept {org.org_id} --user {arguments.userId}`"
    told = f"You are invited to {org.name} as {arguments.role}, for seven days. {accept} accepts."
    return Change(
        f"{name} is invited to {org.name} as {arguments.role}, for seven days.",
        (
            delete(invitations).where(*key),
            insert(invitations).values(
                org_id=org.org_id,
                user_id=arguments.userId,
                role=arguments.role,
                author=visit.principal.id,
                expires_ms=visit.now_ms + INVITATION_MS,
            ),
            *notice(visit.new_id(), arguments.userId, told, visit.now_ms),
        ),
        arguments.userId,
        affects=(name,),
    )


def accept_invitation(visit: Visit, arguments: OfOrganization) -> Change:
    """The invited person joins. Nobody else accepts for them."""
    key = (invitations.c.org_id == arguments.orgId, invitations.c.user_id == visit.principal.id)
    asked = visit.connection.execute(select(invitations).where(*key)).one_or_none()
    if asked is None or asked.expires_ms <= visit.now_ms:
        message = f"{visit.principal.id} has no invitation to this organization, or it is older than seven days."
        raise WorkspaceRefused("not_invited", message, fix="an administrator invites again")
    org = organization_row(visit, arguments.orgId)
    values = {"org_id": asked.org_id, "user_id": asked.user_id, "role": asked.role, "created_ms": visit.now_ms}
    told = f"{person(visit, visit.principal.id)} is now {asked.role} of {org.name}."
    return Change(
        told,
        (
            delete(invitations).where(*key),
            insert(members).values(values),
            *notice(visit.new_id(), asked.author, told, visit.now_ms),
        ),
        org.org_id,
    )


def change_role(visit: Visit, arguments: NewRole) -> Change:
    org, name, before = _member(visit, "changeRole", arguments)
    words = standing(visit, Spot(org.org_id))
    _require_to_make(arguments.role, words)
    if arguments.role == before:
        raise WorkspaceRefused("unchanged", f"{name} is {before} already.", fix="name another role")
    _require_administrator_left(visit, org.org_id, name, before)
    told = f"{name} is no longer {before} of {org.name}, but {arguments.role}."
    key = (members.c.org_id == org.org_id, members.c.user_id == arguments.userId)
    return Change(
        told,
        (
            update(members).where(*key).values(role=arguments.role),
            *notice(
                visit.new_id(), arguments.userId, f"Your role in {org.name} is now {arguments.role}.", visit.now_ms
            ),
        ),
        arguments.userId,
        (Difference("role", before, arguments.role),),
        (name,),
        Inverse("changeRole", {"orgId": org.org_id, "userId": arguments.userId, "role": before}),
        before,
    )


def remove_member(visit: Visit, arguments: OfMember) -> Change:
    """The member goes, and with them their capabilities and permissions. Their tasks have no assignee any more."""
    org, name, role = _member(visit, "removeMember", arguments)
    _require_administrator_left(visit, org.org_id, name, role)
    own = select(projects.c.project_id).where(projects.c.org_id == org.org_id)
    assigned = (tasks.c.assignee == arguments.userId, tasks.c.project_id.in_(own))
    key = (members.c.org_id == org.org_id, members.c.user_id == arguments.userId)
    return Change(
        f"{name} is removed from {org.name}.",
        (
            update(tasks).where(*assigned).values(assignee=None, version=tasks.c.version + 1),
            delete(members).where(*key),
            *notice(visit.new_id(), arguments.userId, f"You are no longer a member of {org.name}.", visit.now_ms),
        ),
        arguments.userId,
        (Difference("role", role, ""),),
        (name,),
        state=role,
    )


def grant_capability(visit: Visit, arguments: OfCapability) -> Change:
    return _set_capability(visit, "grantCapability", arguments, True)


def revoke_capability(visit: Visit, arguments: OfCapability) -> Change:
    return _set_capability(visit, "revokeCapability", arguments, False)


def _set_capability(visit: Visit, action: str, arguments: OfCapability, granted: bool) -> Change:
    org, name, _ = _member(visit, action, arguments)
    key = {"org_id": org.org_id, "user_id": arguments.userId, "capability": arguments.capability}
    chosen = [capabilities.c[column] == value for column, value in key.items()]
    _require_change(bool(visit.connection.execute(select(capabilities).where(*chosen)).one_or_none()), granted, name)
    may = "may now" if granted else "may no longer"
    other = "revokeCapability" if granted else "grantCapability"
    return Change(
        f"{name} {may} use `{arguments.capability}` in {org.name}.",
        (
            insert(capabilities).values(key) if granted else delete(capabilities).where(*chosen),
            *notice(
                visit.new_id(), arguments.userId, f"You {may} use `{arguments.capability}` in {org.name}.", visit.now_ms
            ),
        ),
        arguments.userId,
        (_granted(arguments.capability, granted),),
        (name,),
        Inverse(other, {"orgId": org.org_id, "userId": arguments.userId, "capability": arguments.capability}),
        str(not granted),
    )


def create_project(visit: Visit, arguments: NewProject) -> Change:
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


def set_project_permission(visit: Visit, arguments: NewPermission) -> Change:
    project = project_row(visit, arguments.projectId)
    require(visit, "setProjectPermission", Spot(project.org_id, project.project_id), "project")
    _require_other(visit, arguments.userId)
    name = person(visit, arguments.userId)
    if not _role(visit, project.org_id, arguments.userId):
        raise WorkspaceRefused("no_member", f"{name} is no member of the organization.", fix="invite them first")
    key = {"project_id": project.project_id, "user_id": arguments.userId, "permission": arguments.permission}
    chosen = [permissions.c[column] == value for column, value in key.items()]
    there = visit.connection.execute(select(permissions).where(*chosen)).one_or_none() is not None
    _require_change(there, arguments.granted, name)
    may = "may now" if arguments.granted else "may no longer"
    told = f"{may} use `{arguments.permission}` in the project “{project.name}”."
    changed = (
        insert(permissions).values(**key, org_id=project.org_id)
        if arguments.granted
        else delete(permissions).where(*chosen)
    )
    back = {"projectId": project.project_id, "userId": arguments.userId, "permission": arguments.permission}
    return Change(
        f"{name} {told}",
        (changed, *notice(visit.new_id(), arguments.userId, f"You {told}", visit.now_ms)),
        arguments.userId,
        (_granted(arguments.permission, arguments.granted),),
        (name,),
        Inverse("setProjectPermission", {**back, "granted": not arguments.granted}),
        str(there),
    )


# ── looking up ───────────────────────────────────────────────────────────────────────────────────────────────────────


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


def _role(visit: Visit, org_id: str, user_id: str) -> str:
    found = select(members.c.role).where(members.c.org_id == org_id, members.c.user_id == user_id)
    return visit.connection.scalar(found) or ""


# ── protection ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _member(visit: Visit, action: str, arguments: OfMember) -> tuple[Row[tuple[str, ...]], str, str]:
    """The organization, the name and the role of a member whom the principal may change. Raises WorkspaceRefused."""
    org = organization_row(visit, arguments.orgId)
    words = require(visit, action, Spot(org.org_id), "organization")
    _require_other(visit, arguments.userId)
    name, role = person(visit, arguments.userId), _role(visit, org.org_id, arguments.userId)
    if not role:
        raise WorkspaceRefused("no_member", f"{name} is no member of {org.name}.", fix="invite them first")
    if role == ADMINISTRATOR and ADMINISTRATOR not in words:
        raise WorkspaceRefused(
            "forbidden", f"{name} is an administrator of {org.name}.", fix="an administrator does it"
        )
    return org, name, role


def _require_other(visit: Visit, user_id: str) -> None:
    if user_id == visit.principal.id:
        fix = "another administrator does it"
        raise WorkspaceRefused("own_standing", "Nobody changes their own role or rights.", fix=fix)


def _require_to_make(role: str, words: frozenset[str]) -> None:
    if role == ADMINISTRATOR and ADMINISTRATOR not in words:
        raise WorkspaceRefused("forbidden", "Only an administrator makes administrators.", fix="name another role")


def _require_administrator_left(visit: Visit, org_id: str, name: str, role: str) -> None:
    """An organization always has an administrator."""
    if role != ADMINISTRATOR:
        return
    of_org = (members.c.org_id == org_id, members.c.role == ADMINISTRATOR)
    if (visit.connection.scalar(select(func.count()).select_from(members).where(*of_org)) or 0) < 2:
        message = f"{name} is the last administrator."
        raise WorkspaceRefused("last_administrator", message, fix="make somebody else an administrator first")


def _require_change(there: bool, wanted: bool, name: str) -> None:
    if there == wanted:
        raise WorkspaceRefused("unchanged", f"{name} {'has' if there else 'lacks'} it already.", fix="nothing to do")


def _granted(what: str, granted: bool) -> Difference:
    return Difference(what, "" if granted else "granted", "granted" if granted else "")
