"""The pages of the workspace: what a person sees of organizations, projects, tasks, notes and events, and how they change it.

Every rule is the workspace's own: a page asks and changes as the command line does, in the name of who is signed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from starlette.datastructures import FormData

from council.desk.desk import Desk
from council.desk.workspace_desk import allowed, change, look, project_of
from council.errors import CouncilError, UsageError
from council.redaction import Secret
from council.users.people import all_users
from council.web.forms import (
    Form,
    FormField,
    as_text,
    fields_of,
    is_of_a_row,
    stands_otherwise,
    texts_of,
    values_of,
    worded,
)
from council.web.pagination import Slice, slice_of
from council.web.region_map import MapPlace, known_places, places_with
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage, with_filters
from council.workspace import functions
from council.workspace.arguments import OfNote
from council.workspace.functions import CAPABILITIES, PERMISSIONS, RULES

Values = Mapping[str, Any]
STATUSES = ("todo", "in_progress", "blocked", "done")
_SECRET = FormField(
    "secret", "Secret", "secret", "Four characters or more. Nobody can tell it to you again.", needed=True
)
_LOCKS = {
    "lockNote": ("Lock the note", "The note opens with this secret only, for you too.", (_SECRET,)),
    "unlockNote": ("Unlock the note", "", (replace(_SECRET, hint="The secret that the note was locked with."),)),
    "removeLock": ("Remove the lock", "Everybody who sees the note reads it then.", ()),
}
_CHANGED_ROW = {  # by the function that changes it: the one that reads it, and the id that both take
    "updateTask": ("getTaskDetail", "taskId"),
    "updateTaskStatus": ("getTaskDetail", "taskId"),
    "updateNote": ("getNoteContentIfUnlocked", "noteId"),
    "updateProject": ("getProjectDetail", "projectId"),
    "updateOrganization": ("getOrganization", "orgId"),
}


@dataclass(frozen=True)
class WorkspacePage:
    """A person's places. `organizations`, `projects` and `notes` are the rows that they see; each project has its tasks
    counted by status. `invitations` wait for an answer. `unread`: notifications that they have not read. `may`: the functions
    open to them."""

    organizations: Slice[Values]
    projects: Slice[Values]
    notes: Slice[Values]
    invitations: Sequence[Values]
    unread: int
    may: frozenset[str]


def workspace_page(desk: Desk, who: Person, filters: Filters) -> WorkspacePage:
    projects = slice_of(look(desk, "listProjects", who.id), filters, "projects")
    detailed = [
        {**one, "tasks": look(desk, "getProjectDetail", who.id, {"projectId": one["projectId"]})["tasks"]}
        for one in projects.rows
    ]
    return WorkspacePage(
        organizations=slice_of(look(desk, "listOrganizations", who.id), filters, "organizations"),
        projects=projects.showing(detailed),
        notes=slice_of(look(desk, "listNotesMetadata", who.id), filters, "notes"),
        invitations=look(desk, "getSessionContext", who.id)["invitations"],
        unread=sum(one["unread"] for one in look(desk, "listNotifications", who.id)),
        may=allowed(desk, who.id, {}),
    )


@dataclass(frozen=True)
class OrganizationPage:
    """An organization: `organization` has its members and open invitations. `projects` and `events` stand in it; `past` are the
    events that are over."""

    organization: Values
    members: Slice[Values]
    projects: Slice[Values]
    events: Slice[Values]
    past: Slice[Values]
    may: frozenset[str]


def organization_page(desk: Desk, who: Person, filters: Filters) -> OrganizationPage:
    of_org = {"orgId": filters["orgId"]}
    organization = look(desk, "getOrganization", who.id, of_org)
    ahead, past = _by_day(look(desk, "listEvents", who.id, of_org))
    return OrganizationPage(
        organization=organization,
        members=slice_of(organization["members"], filters, "members"),
        projects=slice_of(look(desk, "listProjects", who.id, of_org), filters, "projects"),
        events=slice_of(ahead, filters, "events"),
        past=slice_of(past, filters, "past"),
        may=allowed(desk, who.id, of_org),
    )


@dataclass(frozen=True)
class ProjectPage:
    """A project. `columns`: its tasks by status, in the order of the work. `priority` is the filter."""

    project: Values
    columns: Mapping[str, Slice[Values]]
    notes: Slice[Values]
    people: Slice[Values]
    priority: str
    may: frozenset[str]


def project_page(desk: Desk, who: Person, filters: Filters) -> ProjectPage:
    of_project = {"projectId": filters["projectId"]}
    project = look(desk, "getProjectDetail", who.id, of_project)
    priority = filters.get("priority", "")
    tasks = look(desk, "listTasks", who.id, {**of_project, **({"priority": priority} if priority else {})})
    return ProjectPage(
        project=project,
        columns={
            status: slice_of([task for task in tasks if task["status"] == status], filters, status)
            for status in STATUSES
        },
        notes=slice_of(look(desk, "listNotesMetadata", who.id, of_project), filters, "notes"),
        people=slice_of(project["collaborators"], filters, "people"),
        priority=priority,
        may=allowed(desk, who.id, of_project),
    )


@dataclass(frozen=True)
class TaskPage:
    """A task and its comments. `statuses`: those that it can move to."""

    task: Values
    comments: Slice[Values]
    statuses: Sequence[str]
    may: frozenset[str]


def task_page(desk: Desk, who: Person, filters: Filters) -> TaskPage:
    task = look(desk, "getTaskDetail", who.id, {"taskId": filters["taskId"]})
    statuses = [status for status in STATUSES if status != task["status"]]
    comments = slice_of(task["comments"], filters, "comments")
    return TaskPage(task, comments, statuses, allowed(desk, who.id, {"taskId": filters["taskId"]}))


@dataclass(frozen=True)
class NotePage:
    """A note. `content` is None while it is locked for this person; `unlock` is then the form that opens it."""

    note: Values
    content: str | None
    unlock: Form | None
    may: frozenset[str]


def note_page(desk: Desk, who: Person, filters: Filters) -> NotePage:
    of_note = {"noteId": filters["noteId"]}
    seen = look(desk, "listNotesMetadata", who.id)
    note = next((one for one in seen if one["noteId"] == filters["noteId"]), None)
    content = None
    try:
        content = look(desk, "getNoteContentIfUnlocked", who.id, of_note)["content"]
    except CouncilError as error:
        if error.code != "locked":
            raise
    assert note is not None, "who reads it sees it in the list"
    may = allowed(desk, who.id, of_note)
    unlock = change_form(desk, who, {"action": "unlockNote", **of_note}) if content is None else None
    return NotePage(note, content, unlock, may)


@dataclass(frozen=True)
class EventsPage:
    """The events that a person sees, of the chosen `region` if one is: those of today and ahead, the next one first, and the
    `past` ones, the last first. `places`: the map, each with its number of events. `elsewhere`: regions with events that the map
    does not know. `organizations`: those in which they may add one."""

    events: Slice[Values]
    past: Slice[Values]
    region: str
    places: Sequence[MapPlace]
    elsewhere: Mapping[str, int]
    organizations: Sequence[Values]
    comment: frozenset[str]


def events_page(desk: Desk, who: Person, filters: Filters) -> EventsPage:
    own = look(desk, "listEvents", who.id)
    known = {one["eventId"] for one in own}
    public = [{**one, "comments": []} for one in look(desk, "listEventsPublic", who.id) if one["eventId"] not in known]
    events, region = [*own, *public], filters.get("region", "")
    ahead, past = _by_day([one for one in events if region.casefold() in ("", one["region"].casefold())])
    counts = Counter(one["region"] for one in events if one["region"])
    on_map = {place.name.casefold() for place in known_places()}
    organizations = look(desk, "listOrganizations", who.id)
    rights = {org["orgId"]: allowed(desk, who.id, {"orgId": org["orgId"]}) for org in organizations}
    return EventsPage(
        events=slice_of(ahead, filters, "events"),
        past=slice_of(past, filters, "past"),
        region=region,
        places=places_with(counts),
        elsewhere={name: count for name, count in counts.items() if name.casefold() not in on_map},
        organizations=[org for org in organizations if "createEvent" in rights[org["orgId"]]],
        comment=frozenset(org_id for org_id, may in rights.items() if "addComment" in may),
    )


def _by_day(events: Sequence[Values]) -> tuple[list[Values], list[Values]]:
    """The events whose day is not over where they take place, the next one first; and the others, the last first."""
    now, in_order = datetime.now(UTC), sorted(events, key=lambda one: one["date"])
    days = {zone: now.astimezone(ZoneInfo(zone)).date().isoformat() for zone in {one["zone"] for one in events}}
    ahead = [one for one in in_order if one["date"] >= days[one["zone"]]]
    return ahead, [one for one in reversed(in_order) if one["date"] < days[one["zone"]]]


@dataclass(frozen=True)
class NotificationsPage:
    """The newest notifications, the newest first."""

    notifications: Slice[Values]
    unread: int


def notifications_page(desk: Desk, who: Person, filters: Filters) -> NotificationsPage:
    told = look(desk, "listNotifications", who.id)
    return NotificationsPage(slice_of(told, filters, "notifications"), sum(one["unread"] for one in told))


def change_form(desk: Desk, who: Person, filters: Filters) -> Form:
    """The form of one function that changes something, `action` among the filters; they also name the row. Raises UsageError
    for a function that there is not, and as `look` for a row that the person does not see."""
    action, verb = _change_of(filters)
    given = {name: text for name, text in filters.items() if name != "action"}
    address, back = with_filters(given, f"/workspace/change/{action}"), _page_of(given)
    if verb is None:
        title, note, secrets = _LOCKS[action]
        fields = (*fields_of(OfNote, given, leave_out=("projectId",)), *secrets)
        return Form(title, address, title, fields, back, (note,) if note else ())
    row = _as_it_is(desk, who, action, given)
    was = {name: as_text(value) for name, value in row.items()}
    held = row.get("capabilities", ())
    fitting = {"revokeCapability": held, "grantCapability": [one for one in CAPABILITIES if one not in held]}
    places = known_places()
    fields = fields_of(
        verb.arguments,
        given,
        was,
        leave_out=[name for name in verb.arguments.model_fields if is_of_a_row(name) and name not in given],
        options={**_people_of(desk, who, action, given), "capability": fitting.get(action, ())},
        suggestions={"region": [place.name for place in places], "zone": [place.zone for place in places]},
    )
    meanings = {"capability": CAPABILITIES, "permission": PERMISSIONS}
    notes = tuple(f"{word}: {told}" for one in fields for word, told in meanings.get(one.name, {}).items())
    told = f"{verb.description[:1].upper()}{verb.description[1:]}."
    return Form(worded(action), address, worded(action), fields, back, (told, *notes), verb.effect == "danger")


def make_change(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Changes the workspace as the form says; the page that shows it. Raises as `change`."""
    (action, verb), texts = _change_of(filters), texts_of(sent)
    values = values_of(OfNote if verb is None else verb.arguments, texts)
    secret = Secret(texts["secret"]) if "secret" in texts else None
    made = change(desk, action, who.id, values, secret, unlike=lambda before: stands_otherwise(before, texts))
    new = {"createOrganization": "orgId", "createProject": "projectId", "createTask": "taskId", "createNote": "noteId"}
    if action in new:
        return _page_of({new[action]: made.row_id})
    gone = {"deleteTask": "taskId", "deleteNote": "noteId", "leaveOrganization": "orgId"}.get(action)
    return _page_of({name: text for name, text in {**texts, **filters}.items() if name != gone})


def _change_of(filters: Filters) -> tuple[str, functions.Verb | None]:
    """The name of a function that changes something, and its entry; None for a lock, which no tool opens."""
    action = filters["action"]
    verb = functions.ACTIONS.get(action)
    if action not in RULES or (verb is not None and verb.effect == "read"):
        raise UsageError(f"the workspace has no change {action[:60]!r}.", fix="go back to the workspace")
    return action, verb


def _as_it_is(desk: Desk, who: Person, action: str, given: Filters) -> Values:
    """The row that a change would change, by the names of the arguments; empty for a new one."""
    function, name = _CHANGED_ROW.get(action, ("", ""))
    if name in given:
        row: Values = look(desk, function, who.id, {name: given[name]})
        return row
    if action == "updateEvent":
        events = look(desk, "listEvents", who.id)
        return next((one for one in events if one["eventId"] == given.get("eventId")), {})
    if action in ("changeRole", "grantCapability", "revokeCapability") and {"orgId", "userId"} <= given.keys():
        members = look(desk, "getOrganization", who.id, {"orgId": given["orgId"]})["members"]
        return next((one for one in members if one["userId"] == given["userId"]), {})
    return {}


def _people_of(desk: Desk, who: Person, action: str, given: Filters) -> dict[str, Sequence[str]]:
    """The people whom a form offers, by its field: those who work in the project, the members of the organization, and to invite
    or to make an administrator those of this home."""
    org_id, project_id = given.get("orgId", ""), given.get("projectId") or project_of(desk, who.id, given)
    if project_id:
        project = look(desk, "getProjectDetail", who.id, {"projectId": project_id})
        if action != "setProjectPermission":
            return {"assignedToId": ["", *(one["userId"] for one in project["collaborators"])]}
        org_id = project["orgId"]
    found = look(desk, "getOrganization", who.id, {"orgId": org_id})["members"] if org_id else ()
    members = [one["userId"] for one in found]
    if action not in ("inviteMember", "createOrganization") or action not in allowed(desk, who.id, given):
        return {"userId": members}
    others = [user.user_id for user in all_users(desk.store) if user.roles and user.user_id not in members]
    return {"userId": others, **({"administrator": ["", *others]} if who.is_administrator else {})}


def _page_of(given: Filters) -> str:
    """The page that shows what a change is about."""
    for name, folder in (("taskId", "tasks"), ("noteId", "notes"), ("eventId", "events"), ("projectId", "projects")):
        if name in given:
            return f"/workspace/{folder}" if name == "eventId" else f"/workspace/{folder}/{given[name]}"
    return f"/workspace/organizations/{given['orgId']}" if "orgId" in given else "/workspace"


_WORKSPACE = WindowPage("/workspace", "Workspace", "workspace/home.html", workspace_page)
_CHANGE = WindowPage("/workspace/change/{action}", "", "form.html", change_form)
PAGES: tuple[WindowPage[Any], ...] = (
    _WORKSPACE,
    WindowPage("/workspace/organizations/{orgId}", "", "workspace/organization.html", organization_page),
    WindowPage("/workspace/projects/{projectId}", "", "workspace/project.html", project_page),
    WindowPage("/workspace/tasks/{taskId}", "", "workspace/task.html", task_page),
    WindowPage("/workspace/notes/{noteId}", "", "workspace/note.html", note_page),
    WindowPage("/workspace/events", "", "workspace/events.html", events_page),
    WindowPage("/workspace/notifications", "", "workspace/notifications.html", notifications_page),
    _CHANGE,
)
ACTIONS = (PageAction("/workspace/change/{action}", _CHANGE, make_change),)
