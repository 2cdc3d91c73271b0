"""Readings of the workspace: what the principal may see, as plain values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Column, Row, exists, select

from council.ids import timestamp_of
from council.users.notifications import notifications_of, read_by
from council.users.tables import roles, users
from council.workspace import arguments as a
from council.workspace.agenda import reminders_of
from council.workspace.functions import GUEST
from council.workspace.notes import NOTES, readable_note
from council.workspace.organizations import names_of, organization_row, project_row
from council.workspace.rights import Spot, may, require
from council.workspace.tables import (
    capabilities,
    comments,
    events,
    invitations,
    members,
    notes,
    organizations,
    permissions,
    projects,
    tasks,
)
from council.workspace.tasks import arguments_of, task_row
from council.workspace.transaction import Change, Visit, WorkspaceRefused

Values = dict[str, Any]
_NEWEST = 100  # notifications at once
_DAY_MS = 86_400_000
_NAMED = 5  # projects in place of an unknown one, the nearest first


def get_session_context(visit: Visit, arguments: a.Nothing) -> Values:
    """The principal, where they belong, and where they are invited."""
    require(visit, "getSessionContext", Spot(), "session")
    who = visit.principal
    open_ones = (invitations.c.user_id == who.id, invitations.c.expires_ms > visit.now_ms)
    asked = select(invitations, organizations.c.name).join_from(invitations, organizations).where(*open_ones)
    return {
        "userId": who.id,
        "kind": who.kind,
        "organizations": list_organizations(visit, arguments),
        "invitations": [
            {**_told(row, "org_id name role"), "until": timestamp_of(row.expires_ms)}
            for row in visit.connection.execute(asked.order_by(invitations.c.org_id))
        ],
    }


def list_organizations(visit: Visit, arguments: a.Nothing) -> list[Values]:
    require(visit, "listOrganizations", Spot(), "list")
    own = (members.c.org_id == organizations.c.org_id) & (members.c.user_id == visit.principal.id)
    found = select(organizations, members.c.role).outerjoin_from(organizations, members, own)
    return [
        {**_told(row, "org_id name role"), "capabilities": _capabilities(visit, row.org_id, visit.principal.id)}
        for row in visit.connection.execute(found.order_by(organizations.c.org_id)).all()
        if may(visit, "getOrganization", Spot(row.org_id))
    ]


def get_organization(visit: Visit, arguments: a.OfOrganization) -> Values:
    """The organization with its members and open invitations. Who `hasLeft` has no role in this home any more."""
    org = organization_row(visit, arguments.orgId)
    require(visit, "getOrganization", Spot(org.org_id), "organization")
    asked = select(invitations).where(invitations.c.org_id == org.org_id, invitations.c.expires_ms > visit.now_ms)
    return {
        **_told(org, "org_id name"),
        "members": [
            {
                **_told(row, "user_id name role"),
                "hasLeft": bool(row.has_left),
                "capabilities": _capabilities(visit, org.org_id, row.user_id),
            }
            for row in _members(visit, org.org_id)
        ],
        "invitations": [
            {**_told(row, "user_id role"), "until": timestamp_of(row.expires_ms)}
            for row in visit.connection.execute(asked.order_by(invitations.c.user_id))
        ],
    }


def list_projects(visit: Visit, arguments: a.InOrganization) -> list[Values]:
    return [
        _told(row, "project_id name organization org_id")
        for row in _projects(visit, "listProjects")
        if arguments.orgId in (None, row.org_id)
    ]


def project_named(listed: Sequence[Values], named: str) -> Values:
    """The one of these projects that has this id or name. Raises WorkspaceRefused."""
    found = [row for row in listed if named in (row["projectId"], row["name"])]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(row["projectId"] for row in found)
        message = f"There are {len(found)} projects {named!r}."
        raise WorkspaceRefused("ambiguous", message, fix=f"name the one that you mean by its id: {ids}")
    known = list(dict.fromkeys(row["name"] for row in listed))
    near = ", ".join(get_close_matches(named, known, n=_NAMED, cutoff=0.0))
    fix = f"name one such as {near}" if near else "leave it out: `council workspace projects list` shows none"
    raise WorkspaceRefused("not_found", f"There is no project {named!r}, or you may not see it.", fix=fix)


def get_project_detail(visit: Visit, arguments: a.OfProject) -> Values:
    """The project with those who see it, by name, and how many of its tasks are in which status."""
    project = project_row(visit, arguments.projectId)
    require(visit, "getProjectDetail", Spot(project.org_id, project.project_id), "project")
    found = select(permissions).where(permissions.c.project_id == project.project_id)
    granted: defaultdict[str, list[str]] = defaultdict(list)
    for one in visit.connection.execute(found.order_by(permissions.c.permission)):
        granted[one.user_id].append(one.permission)
    statuses = list(visit.connection.scalars(select(tasks.c.status).where(tasks.c.project_id == project.project_id)))
    return {
        **_told(project, "project_id name description org_id"),
        "tasks": {status: statuses.count(status) for status in sorted(set(statuses))},
        "collaborators": [
            {**_told(row, "user_id name role"), "hasLeft": bool(row.has_left), "permissions": granted[row.user_id]}
            for row in _members(visit, project.org_id)
            if row.role != GUEST or granted[row.user_id]
        ],
    }


def list_tasks(visit: Visit, arguments: a.TaskFilter) -> list[Values]:
    """The tasks in their order, those that are done last; of all projects that the principal sees, unless one is named."""
    if arguments.projectId is not None:
        project = project_row(visit, arguments.projectId)
        require(visit, "listTasks", Spot(project.org_id, project.project_id), "project")
    names = {
        row.project_id: row.name
        for row in _projects(visit, "listTasks")
        if arguments.projectId in (None, row.project_id)
    }
    found = select(tasks).where(tasks.c.project_id.in_(names))
    wanted = {"status": arguments.status, "priority": arguments.priority, "assignee": arguments.assignedToId}
    found = found.filter_by(**{column: value for column, value in wanted.items() if value is not None})
    order = (tasks.c.status == "done", tasks.c.project_id, tasks.c.position, tasks.c.task_id)
    rows = visit.connection.execute(found.order_by(*order))
    return [
        {
            **_told(row, "task_id title status priority"),
            "assignedToId": row.assignee or "",
            "dueDate": row.due or "",
            "project": names[row.project_id],
        }
        for row in rows
    ]


def get_task_detail(visit: Visit, arguments: a.OfTask) -> Values:
    """All of a task, with its comments."""
    task, spot = task_row(visit, arguments)
    require(visit, "getTaskDetail", spot, "task")
    return {
        **_told(task, "task_id project project_id"),
        **{name: "" if value is None else value for name, value in arguments_of(task).items()},
        **_author(task, names_of(visit)),
        **_told(task, "created_ms"),
        "comments": _comments(visit, comments.c.task_id, task.task_id),
    }


def list_notes_metadata(visit: Visit, arguments: a.NoteFilter) -> list[Values]:
    """The notes that the principal may see, without what they say, the newest first."""
    found = NOTES
    if arguments.projectId is not None:
        found = found.where(notes.c.project_id == arguments.projectId)
    names = names_of(visit)
    return [
        {
            **_told(row, "note_id title"),
            "locked": bool(row.locked),
            **_author(row, names),
            **_told(row, "project created_ms"),
        }
        for row in visit.connection.execute(found.order_by(notes.c.note_id.desc())).all()
        if may(visit, "listNotesMetadata", Spot(row.org_id or "", row.project_id or "", row.author))
    ]


def get_note_content_if_unlocked(visit: Visit, arguments: a.OfNote) -> Values:
    """The note with its content, unless it is locked for this principal."""
    return _told(readable_note(visit, "getNoteContentIfUnlocked", arguments), "note_id title content")


def list_events(visit: Visit, arguments: a.EventFilter) -> list[Values]:
    """The events of the principal's organizations, with their comments, in the order of `_events`."""
    since, until = arguments.since or "", arguments.until or "9999-12-31"
    return [
        {**_event(row), "comments": _comments(visit, comments.c.event_id, row.event_id)}
        for row in _events(visit)
        if arguments.orgId in (None, row.org_id)
        and since <= row.date[: len(until)] <= until
        and may(visit, "listEvents", Spot(row.org_id))
    ]


def list_events_public(visit: Visit, arguments: a.Nothing) -> list[Values]:
    require(visit, "listEventsPublic", Spot(), "list")
    return [_event(row) for row in _events(visit) if row.public]


def list_notifications(visit: Visit, arguments: a.Nothing) -> list[Values]:
    """The newest first. The daemon turns reminders into notifications when they are due."""
    require(visit, "listNotifications", Spot(), "list")
    stored = notifications_of(visit.connection, visit.principal.id, _NEWEST)
    return [
        {"at": timestamp_of(row["created_ms"]), "unread": row["read_ms"] is None, "text": row["text"]} for row in stored
    ]


def read_notifications(visit: Visit, arguments: a.Nothing) -> Change:
    require(visit, "readNotifications", Spot(), "list")
    who = visit.principal.id
    return Change(f"{who} has read all notifications.", (read_by(who, visit.now_ms),), who)


def _members(visit: Visit, org_id: str) -> Iterable[Row[Any]]:
    """The members of an organization; `has_left`: they have no role in this home any more."""
    has_left = ~exists().where(roles.c.user_id == members.c.user_id)
    found = select(members, users.c.name, has_left.label("has_left")).join_from(members, users)
    found = found.where(members.c.org_id == org_id)
    return visit.connection.execute(found.order_by(members.c.user_id)).all()


def _projects(visit: Visit, action: str) -> Iterable[Row[Any]]:
    found = select(projects, organizations.c.name.label("organization")).join_from(projects, organizations)
    rows = visit.connection.execute(found.order_by(projects.c.project_id)).all()
    return (row for row in rows if may(visit, action, Spot(row.org_id, row.project_id)))


def _events(visit: Visit) -> Iterable[Row[Any]]:
    """Events ahead come first, the next one at the top, then those that are past, the latest first. An event says no end,
    so for a day it counts as ahead."""
    rows = visit.connection.execute(select(events).order_by(events.c.starts_ms, events.c.event_id)).all()
    past = [row for row in rows if row.starts_ms < visit.now_ms - _DAY_MS]
    return [*rows[len(past) :], *reversed(past)]


def _event(row: Row[Any]) -> Values:
    told = _told(row, "event_id title date zone region public reminders description org_id")
    return {**told, "reminders": reminders_of(row)}


def _comments(visit: Visit, subject: Column[str], row_id: str) -> list[Values]:
    rows = visit.connection.execute(select(comments).where(subject == row_id).order_by(comments.c.comment_id)).all()
    names = names_of(visit) if rows else {}
    return [
        {**_told(row, "comment_id"), **_author(row, names), "at": timestamp_of(row.created_ms), "content": row.content}
        for row in rows
    ]


def _author(row: Row[Any], names: Mapping[str, str]) -> Values:
    return {"author": names.get(row.author, row.author), "authorId": row.author}


def _capabilities(visit: Visit, org_id: str, user_id: str) -> list[str]:
    granted = (capabilities.c.org_id == org_id, capabilities.c.user_id == user_id)
    found = select(capabilities.c.capability).where(*granted).order_by(capabilities.c.capability)
    return list(visit.connection.scalars(found))


def _told(row: Row[Any], columns: str) -> Values:
    """Columns of a row as tools name them: `org_id` is `orgId`, and `created_ms` a time under the name `created`."""
    told = {}
    for column in columns.split():
        name, value = column.removesuffix("_ms").replace("_id", "Id"), getattr(row, column)
        told[name] = timestamp_of(value) if column.endswith("_ms") else "" if value is None else value
    return told
