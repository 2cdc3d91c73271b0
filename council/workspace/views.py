"""Readings of the workspace: what the principal may see, as plain values. No content of a note is among them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Row, select

from council.ids import timestamp
from council.users.notifications import notifications_of, read_by
from council.users.tables import users
from council.workspace.agenda import reminders_of
from council.workspace.arguments import (
    InOrganization,
    NoteFilter,
    Nothing,
    OfOrganization,
    OfProject,
    OfTask,
    TaskFilter,
)
from council.workspace.organizations import organization_row, project_row
from council.workspace.rights import Spot, may, require
from council.workspace.tables import (
    capabilities,
    comments,
    events,
    invitations,
    members,
    note_locks,
    notes,
    organizations,
    permissions,
    projects,
    tasks,
)
from council.workspace.tasks import task_row
from council.workspace.visit import Change, Visit

Values = dict[str, Any]
_NEWEST = 100  # notifications at once


def session_context(visit: Visit, arguments: Nothing) -> Values:
    """The principal, and where they belong."""
    require(visit, "getSessionContext", Spot(), "session")
    who = visit.principal
    return {"userId": who.id, "kind": who.kind, "organizations": list_organizations(visit, arguments)}


def list_organizations(visit: Visit, arguments: Nothing) -> list[Values]:
    require(visit, "listOrganizations", Spot(), "list")
    own = (members.c.org_id == organizations.c.org_id) & (members.c.user_id == visit.principal.id)
    found = select(organizations, members.c.role).outerjoin_from(organizations, members, own)
    rows = visit.connection.execute(found.order_by(organizations.c.org_id))
    return [
        {
            "orgId": row.org_id,
            "name": row.name,
            "role": row.role or "",
            "capabilities": _grants(visit, capabilities.c.capability, org_id=row.org_id, user_id=visit.principal.id),
        }
        for row in rows
        if may(visit, "getOrganization", Spot(row.org_id))
    ]


def get_organization(visit: Visit, arguments: OfOrganization) -> Values:
    """The organization with its members and open invitations."""
    org = organization_row(visit, arguments.orgId)
    require(visit, "getOrganization", Spot(org.org_id), "organization")
    inside = select(members, users.c.name).join_from(members, users).where(members.c.org_id == org.org_id)
    asked = select(invitations).where(invitations.c.org_id == org.org_id, invitations.c.expires_ms > visit.now_ms)
    return {
        "orgId": org.org_id,
        "name": org.name,
        "members": [
            {
                "userId": row.user_id,
                "name": row.name,
                "role": row.role,
                "capabilities": _grants(visit, capabilities.c.capability, org_id=org.org_id, user_id=row.user_id),
            }
            for row in visit.connection.execute(inside.order_by(members.c.user_id)).all()
        ],
        "invitations": [
            {"userId": row.user_id, "role": row.role, "until": _time(row.expires_ms)}
            for row in visit.connection.execute(asked.order_by(invitations.c.user_id))
        ],
    }


def list_projects(visit: Visit, arguments: InOrganization) -> list[Values]:
    return [
        {"projectId": row.project_id, "name": row.name, "organization": row.organization, "orgId": row.org_id}
        for row in _projects(visit, "listProjects")
        if arguments.orgId in (None, row.org_id)
    ]


def get_project_detail(visit: Visit, arguments: OfProject) -> Values:
    """The project with its collaborators, and how many of its tasks are in which status."""
    project = project_row(visit, arguments.projectId)
    require(visit, "getProjectDetail", Spot(project.org_id, project.project_id), "project")
    found = select(permissions).where(permissions.c.project_id == project.project_id)
    given = visit.connection.execute(found.order_by(permissions.c.user_id, permissions.c.permission)).all()
    statuses = list(visit.connection.scalars(select(tasks.c.status).where(tasks.c.project_id == project.project_id)))
    return {
        "projectId": project.project_id,
        "name": project.name,
        "description": project.description,
        "orgId": project.org_id,
        "tasks": {status: statuses.count(status) for status in sorted(set(statuses))},
        "collaborators": [
            {"userId": user_id, "permissions": [row.permission for row in given if row.user_id == user_id]}
            for user_id in dict.fromkeys(row.user_id for row in given)
        ],
    }


def list_tasks(visit: Visit, arguments: TaskFilter) -> list[Values]:
    """The tasks in their order; of all projects that the principal sees, unless one is named."""
    if arguments.projectId is not None:
        project = project_row(visit, arguments.projectId)
        require(visit, "listTasks", Spot(project.org_id, project.project_id), "project")
    names = {
        row.project_id: row.name
        for row in _projects(visit, "listTasks")
        if arguments.projectId in (None, row.project_id)
    }
    found = select(tasks).where(tasks.c.project_id.in_(names))
    if arguments.status is not None:
        found = found.where(tasks.c.status == arguments.status)
    if arguments.priority is not None:
        found = found.where(tasks.c.priority == arguments.priority)
    rows = visit.connection.execute(found.order_by(tasks.c.project_id, tasks.c.position, tasks.c.task_id))
    return [
        {
            "taskId": row.task_id,
            "title": row.title,
            "status": row.status,
            "priority": row.priority,
            "assignedToId": row.assignee or "",
            "dueDate": row.due or "",
            "project": names[row.project_id],
        }
        for row in rows
    ]


def get_task_detail(visit: Visit, arguments: OfTask) -> Values:
    """All of a task, with its comments."""
    task, spot = task_row(visit, arguments)
    require(visit, "getTaskDetail", spot, "task")
    return {
        "taskId": task.task_id,
        "project": task.project,
        "projectId": task.project_id,
        "title": task.title,
        "description": task.description,
        "status": task.status,
        "priority": task.priority,
        "epic": task.epic,
        "stage": task.stage,
        "orderIndex": task.position,
        "acceptanceCriteria": task.criteria.splitlines(),
        "assignedToId": task.assignee or "",
        "dueDate": task.due or "",
        "author": task.author,
        "created": _time(task.created_ms),
        "comments": _comments(visit, comments.c.task_id, task.task_id),
    }


def list_notes_metadata(visit: Visit, arguments: NoteFilter) -> list[Values]:
    """The notes that the principal may see, without what they say."""
    found = (
        select(notes, projects.c.org_id, projects.c.name.label("project"), note_locks.c.note_id.label("lock"))
        .outerjoin_from(notes, projects)
        .outerjoin(note_locks, note_locks.c.note_id == notes.c.note_id)
    )
    if arguments.projectId is not None:
        found = found.where(notes.c.project_id == arguments.projectId)
    return [
        {
            "noteId": row.note_id,
            "title": row.title,
            "locked": row.lock is not None,
            "author": row.author,
            "project": row.project or "",
            "created": _time(row.created_ms),
        }
        for row in visit.connection.execute(found.order_by(notes.c.note_id)).all()
        if may(visit, "listNotesMetadata", Spot(row.org_id or "", row.project_id or "", row.author))
    ]


def list_events(visit: Visit, arguments: InOrganization) -> list[Values]:
    """The events of the principal's organizations, with their comments."""
    return [
        {**_event(row), "comments": _comments(visit, comments.c.event_id, row.event_id)}
        for row in _events(visit)
        if arguments.orgId in (None, row.org_id) and may(visit, "listEvents", Spot(row.org_id))
    ]


def list_events_public(visit: Visit, arguments: Nothing) -> list[Values]:
    require(visit, "listEventsPublic", Spot(), "list")
    return [_event(row) for row in _events(visit) if row.public]


def list_notifications(visit: Visit, arguments: Nothing) -> list[Values]:
    """The newest first. The daemon turns reminders into notifications when they are due."""
    require(visit, "listNotifications", Spot(), "list")
    stored = notifications_of(visit.connection, visit.principal.id, _NEWEST)
    return [{"at": _time(row["created_ms"]), "unread": row["read_ms"] is None, "text": row["text"]} for row in stored]


def read_notifications(visit: Visit, arguments: Nothing) -> Change:
    require(visit, "readNotifications", Spot(), "list")
    who = visit.principal.id
    return Change(f"{who} has read all notifications.", (read_by(who, visit.now_ms),), who)


def _projects(visit: Visit, action: str) -> Iterable[Row[Any]]:
    found = select(projects, organizations.c.name.label("organization")).join_from(projects, organizations)
    rows = visit.connection.execute(found.order_by(projects.c.project_id)).all()
    return (row for row in rows if may(visit, action, Spot(row.org_id, row.project_id)))


def _events(visit: Visit) -> Iterable[Row[Any]]:
    return visit.connection.execute(select(events).order_by(events.c.starts_ms, events.c.event_id)).all()


def _event(row: Row[Any]) -> Values:
    return {
        "eventId": row.event_id,
        "title": row.title,
        "date": row.date,
        "zone": row.zone,
        "region": row.region,
        "public": row.public,
        "reminders": reminders_of(row),
        "description": row.description,
        "orgId": row.org_id,
    }


def _comments(visit: Visit, subject: Column[str], row_id: str) -> list[Values]:
    rows = visit.connection.execute(select(comments).where(subject == row_id).order_by(comments.c.comment_id))
    return [
        {"commentId": row.comment_id, "author": row.author, "at": _time(row.created_ms), "content": row.content}
        for row in rows
    ]


def _grants(visit: Visit, column: Column[str], *, org_id: str, user_id: str) -> list[str]:
    table = column.table
    found = select(column).where(table.c.org_id == org_id, table.c.user_id == user_id)
    return list(visit.connection.scalars(found.order_by(column)))


def _time(ms: int) -> str:
    return timestamp(datetime.fromtimestamp(ms / 1000, UTC))
