"""Events of an organization, and the comments on events and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Row, delete, func, insert, select

from council.tools.preview import Difference, Inverse
from council.workspace.arguments import EventPatch, NewComment, NewEvent, OfComment, OfEvent, OfTask
from council.workspace.organizations import names_of, organization_row
from council.workspace.rights import Spot, absent, require
from council.workspace.tables import comments, events, organizations, projects, tasks
from council.workspace.tasks import task_row
from council.workspace.transaction import Change, Visit, WorkspaceRefused, deleted, differences, edited

_FIELDS = ("title", "description", "date", "zone", "region", "public", "reminders")


def create_event(visit: Visit, arguments: NewEvent) -> Change:
    org = organization_row(visit, arguments.orgId)
    require(visit, "createEvent", Spot(org.org_id), "organization")
    zone, event_id = arguments.zone or visit.zone, visit.new_id()
    values = _values({**arguments.model_dump(), "zone": zone})
    whose = {"event_id": event_id, "org_id": org.org_id, "author": visit.principal.id, "created_ms": visit.now_ms}
    made = insert(events).values(**whose, **values, starts_ms=_starts_ms(arguments.date, zone))
    audience = ("everybody in this home",) if arguments.public else (f"the members of {org.name}",)
    told = f"An event is added to {org.name}: “{arguments.title}”, {arguments.date} ({zone})."
    inverse = Inverse("deleteEvent", {"eventId": event_id})
    return Change(told, (made,), event_id, differences({}, _shown(values)), audience, inverse)


def update_event(visit: Visit, arguments: EventPatch) -> Change:
    """Changes what is given; the rest stays."""
    event, spot = event_row(visit, arguments)
    require(visit, "updateEvent", spot, "event")
    values = _values(arguments.model_dump(exclude_unset=True))
    back = {name: reminders_of(event) if name == "reminders" else getattr(event, name) for name in values}
    if values:
        values["starts_ms"] = _starts_ms(values.get("date", event.date), values.get("zone", event.zone))
    inverse = Inverse("updateEvent", {"eventId": event.event_id, **back})
    return edited(events, event, _called(event), values, inverse, shown=_shown, affects=_audience(event))


def delete_event(visit: Visit, arguments: OfEvent) -> Change:
    """A comment that came since the draft is a change."""
    event, spot = event_row(visit, arguments)
    require(visit, "deleteEvent", spot, "event")
    about = select(func.max(comments.c.comment_id)).where(comments.c.event_id == event.event_id)
    newest = visit.connection.scalar(about)
    return deleted(events, event, _called(event), f"{event.version}/{newest or ''}", _audience(event))


def add_comment(visit: Visit, arguments: NewComment) -> Change:
    """A comment on a task or on an event. Its assignee, or its author, is told."""
    if (arguments.taskId is None) == (arguments.eventId is None):
        raise WorkspaceRefused("one_subject", "A comment is about a task or an event.", fix="name one of them")
    told: str | None
    if arguments.taskId is not None:
        subject, spot = task_row(visit, OfTask(taskId=arguments.taskId, projectId=arguments.projectId))
        told = subject.assignee
    else:
        subject, spot = event_row(visit, OfEvent(eventId=str(arguments.eventId), orgId=arguments.orgId))
        told = subject.author
    if arguments.orgId not in (None, spot.org_id) or arguments.projectId not in (None, spot.project_id):
        raise absent("task")
    require(visit, "addComment", spot, "task" if arguments.taskId else "event")
    comment_id, who = visit.new_id(), visit.principal.id
    values = {"comment_id": comment_id, "task_id": arguments.taskId, "event_id": arguments.eventId, "author": who}
    news = f"{names_of(visit).get(who, who)} commented on “{subject.title}”."
    made = insert(comments).values(**values, content=arguments.content, created_ms=visit.now_ms)
    shown, affects = differences({}, {"comment": arguments.content}), (told,) if told not in (None, who) else ()
    inverse = Inverse("removeComment", {"commentId": comment_id})
    statements = (made, *visit.notice(told, news))
    return Change(f"A comment is added to “{subject.title}”.", statements, comment_id, shown, affects, inverse)


def remove_comment(visit: Visit, arguments: OfComment) -> Change:
    """The comment of the principal, or of anybody where the principal moderates."""
    org_id = func.coalesce(projects.c.org_id, events.c.org_id).label("org_id")
    subject = func.coalesce(tasks.c.title, events.c.title).label("subject")
    found = (
        select(comments, tasks.c.project_id, org_id, subject)
        .outerjoin_from(comments, tasks)
        .outerjoin(projects, projects.c.project_id == tasks.c.project_id)
        .outerjoin(events, events.c.event_id == comments.c.event_id)
    )
    row = visit.connection.execute(found.where(comments.c.comment_id == arguments.commentId)).one_or_none()
    if row is None or arguments.orgId not in (None, row.org_id) or arguments.projectId not in (None, row.project_id):
        raise absent("comment")
    require(visit, "removeComment", Spot(row.org_id, row.project_id or "", row.author), "comment")
    told = f"A comment by {names_of(visit).get(row.author, row.author)} on “{row.subject}” is removed."
    gone = delete(comments).where(comments.c.comment_id == row.comment_id)
    affects = (row.author,) if row.author != visit.principal.id else ()
    return Change(told, (gone,), row.comment_id, (Difference("comment", row.content),), affects, state="there")


def event_row(visit: Visit, arguments: OfEvent) -> tuple[Row[Any], Spot]:
    """The event, with the name of its organization, and where it stands. Raises WorkspaceRefused for one outside the scope."""
    found = select(events, organizations.c.name.label("organization")).join_from(events, organizations)
    event = visit.connection.execute(found.where(events.c.event_id == arguments.eventId)).one_or_none()
    if event is None or arguments.orgId not in (None, event.org_id):
        raise absent("event")
    return event, Spot(event.org_id)


def _called(event: Row[Any]) -> str:
    return f"The event “{event.title}” of {event.organization}"


def reminders_of(event: Row[Any]) -> list[int]:
    """The minutes before the event at which its members are reminded."""
    return [int(minutes) for minutes in event.reminders.split(",") if minutes]


def _values(given: dict[str, Any]) -> dict[str, Any]:
    values = {name: given[name] for name in _FIELDS if name in given}
    if "reminders" in values:
        values["reminders"] = ",".join(map(str, sorted(set(values["reminders"]), reverse=True)))
    return values


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a person reads them."""
    shown = {name: values[name] for name in _FIELDS if name in values}
    if shown.get("reminders"):
        shown["reminders"] = f"{shown['reminders'].replace(',', ', ')} minutes before"
    return shown


def _starts_ms(date: str, zone: str) -> int:
    """Of an hour that comes twice, since clocks go back, the first. Raises WorkspaceRefused for one that clocks skip."""
    local = datetime.fromisoformat(date)
    moment = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    on_the_clock = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if on_the_clock != local:
        message = f"{date} does not exist in {zone}: clocks go forward there."
        fix = f"name another time, such as {on_the_clock.isoformat(timespec='minutes')}"
        raise WorkspaceRefused("no_such_time", message, fix=fix, field="date")
    return int(moment.timestamp() * 1000)


def _audience(event: Row[Any]) -> tuple[str, ...]:
    return ("everybody in this home",) if event.public else (f"the members of {event.organization}",)
