"""The arguments of the workspace's functions, with the source's names and limits. In a plan, its scope fills in `orgId` or
`projectId`: a row that stands elsewhere is refused."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from council.commands.models import LINE_PATTERN, ROW_PATTERN, TEXT_PATTERN, USER_PATTERN
from council.tools.tool import Arguments

Role = Literal["administrator", "member", "guest"]
Priority = Literal["low", "medium", "high", "urgent"]
Status = Literal["todo", "in_progress", "done", "blocked"]
Capability = Literal[
    "invite_members", "change_roles", "remove_members", "create_projects", "manage_events", "moderate_comments"
]
Permission = Literal["view", "comment", "edit_tasks", "delete_tasks", "edit_notes", "manage_permissions"]

_FIRST_YEAR, _LAST_YEAR = 1900, 2999  # of an event
_Id = Annotated[str, StringConstraints(pattern=ROW_PATTERN)]
_User = Annotated[str, StringConstraints(pattern=USER_PATTERN)]
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=LINE_PATTERN)]
_Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=256, pattern=LINE_PATTERN)]
_Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200, pattern=LINE_PATTERN)]
_Text = Annotated[str, StringConstraints(max_length=5_000, pattern=TEXT_PATTERN)]
_Content = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=TEXT_PATTERN)]
_Comment = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=TEXT_PATTERN)]


def _is_due(value: str) -> str:
    try:
        if len(value) == len("2026-12-31"):
            return date.fromisoformat(value).isoformat()
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("write a date as 2026-12-31, or a time as 2026-12-31T18:00:00+02:00") from None
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone: 2026-12-31T18:00:00+02:00")
    return moment.isoformat(timespec="seconds")


def _is_day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("write a day as 2026-12-31") from None


def _is_local(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("write date and time as 2026-12-31T18:00") from None
    if moment.tzinfo is not None:
        raise ValueError("the date is local to `zone`, without an offset: 2026-12-31T18:00")
    if len(value) < len("2026-12-31T18"):
        raise ValueError("an event needs a time, too: 2026-12-31T18:00")
    if moment.second or moment.microsecond:
        raise ValueError("an event starts at a full minute: 2026-12-31T18:00")
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"the year must be from {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment.isoformat(timespec="minutes")


def _is_zone(value: str) -> str:
    if value not in available_timezones():
        raise ValueError("a zone looks like Europe/Sofia")
    return ZoneInfo(value).key


_Due = Annotated[str, StringConstraints(max_length=32), AfterValidator(_is_due)]
_Day = Annotated[str, StringConstraints(max_length=32), AfterValidator(_is_day)]
_Local = Annotated[str, StringConstraints(max_length=32), AfterValidator(_is_local)]
_Zone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_is_zone)]
_Minutes = Annotated[int, Field(ge=0, le=40_320)]  # four weeks


def _field(description: str, default: Any = ...) -> Any:
    return Field(default=default, description=description)


class _WorkspaceArguments(Arguments):
    """Built when it is first used: every command loads this module, and few use it."""

    model_config = ConfigDict(defer_build=True)


class Nothing(_WorkspaceArguments):
    """No arguments."""


class OfOrganization(_WorkspaceArguments):
    orgId: _Id = _field("The organization's id.")


class InOrganization(_WorkspaceArguments):
    orgId: _Id | None = _field("The organization's id. Unset: any.", None)


class InProject(_WorkspaceArguments):
    projectId: _Id | None = _field("The project's id. Unset: any.", None)


class OfProject(_WorkspaceArguments):
    projectId: _Id = _field("The project's id.")


class NewOrganization(_WorkspaceArguments):
    name: _Name = _field("Its name.")
    administrator: _User | None = _field("The user who administers it. Unset: you.", None)


class OrganizationPatch(OfOrganization):
    name: _Name = _field("The new name.")


class OfMember(OfOrganization):
    userId: _User = _field("The user's id.")


class NewInvitation(OfMember):
    role: Role = _field("The role that the invited person will have.", "member")


class NewRole(OfMember):
    role: Role = _field("The new role.")


class OfCapability(OfMember):
    capability: Capability = _field("The capability.")


class NewPermission(OfProject):
    userId: _User = _field("The user's id, a member of the organization.")
    permission: Permission = _field("The permission.")
    granted: bool = _field("True gives it, false takes it away.", True)


class NewProject(OfOrganization):
    name: _Name = _field("Its name.")
    description: _Text = _field("Its purpose.", "")


class ProjectPatch(OfProject):
    """A value that is not given stays as it is."""

    name: _Name = _field("The new name.", "")
    description: _Text = _field("The new purpose.", "")


class TaskFilter(InProject):
    status: Status | None = _field("Only tasks with this status.", None)
    priority: Priority | None = _field("Only tasks with this priority.", None)
    assignedToId: _User | None = _field("Only tasks of this user.", None)


class OfTask(InProject):
    taskId: _Id = _field("The task's id.")


class _TaskFields(_WorkspaceArguments):
    title: _Title = _field("The title, one line.", "")
    description: _Text = _field("A description.", "")
    priority: Priority = _field("The priority.", "medium")
    epic: _Line = _field("The epic that it belongs to.", "")
    stage: _Line = _field("The stage that it belongs to.", "")
    orderIndex: int = Field(default=0, ge=0, le=1_000_000, description="Its place among the tasks; 0 is first.")
    acceptanceCriteria: Annotated[list[_Name], Field(max_length=20)] = _field(
        "A condition for the task to be done.", []
    )
    assignedToId: _User | None = _field("The user it is assigned to.", None)
    dueDate: _Due | None = _field("When it is due: a date such as 2026-12-31, or a time with its zone.", None)


class NewTask(_TaskFields, OfProject):
    title: _Title = _field("The title, one line.")
    status: Status = _field("The status.", "todo")


class TaskPatch(_TaskFields, OfTask):
    """A value that is not given stays as it is."""

    assignedToId: _User | None = _field("The user it is assigned to; null for nobody.", None)
    dueDate: _Due | None = _field(
        "When it is due: a date such as 2026-12-31, or a time with its zone; null for none.", None
    )


class NewStatus(OfTask):
    status: Status = _field("The new status.")


class OfNote(InProject):
    noteId: _Id = _field("The note's id.")


class NoteFilter(InProject):
    """Only the notes of a project, when one is named."""


class NewNote(_WorkspaceArguments):
    content: _Content = _field("The text of the note.")
    title: _Line = _field("A title. Lists show it even if the note is locked.", "")
    projectId: _Id | None = _field("The project that it belongs to. Unset: it is your own.", None)


class NotePatch(OfNote):
    content: _Content = _field("The new text.", "")
    title: _Line = _field("The new title.", "")


class EventFilter(InOrganization):
    since: _Day | None = _field("Only events of this day or later, at their place: 2026-12-31.", None)
    until: _Day | None = _field("Only events of this day or earlier, at their place: 2026-12-31.", None)


class OfEvent(InOrganization):
    eventId: _Id = _field("The event's id.")


class _EventFields(_WorkspaceArguments):
    title: _Title = _field("The title, one line.", "")
    date: _Local = _field("When it starts, in local time of the zone: 2026-12-31T18:00.", "")
    zone: _Zone = _field("The time zone, such as Europe/Sofia.", "UTC")
    description: _Text = _field("A description.", "")
    region: Annotated[str, StringConstraints(max_length=64, pattern=LINE_PATTERN)] = _field("Where it takes place.", "")
    public: bool = _field("True if everybody in this home can see it.", False)
    reminders: Annotated[list[_Minutes], Field(max_length=5)] = _field(
        "Minutes before the event at which members are reminded.", []
    )


class NewEvent(_EventFields, OfOrganization):
    title: _Title = _field("The title, one line.")
    date: _Local = _field("When it starts, in local time of the zone: 2026-12-31T18:00.")
    zone: _Zone | None = _field("The time zone, such as Europe/Sofia. Unset: the home's `timezone`, else UTC.", None)  # type: ignore[assignment]


class EventPatch(_EventFields, OfEvent):
    """A value that is not given stays as it is."""


class NewComment(InOrganization):
    content: _Comment = _field("The comment.")
    taskId: _Id | None = _field("The task that it is about.", None)
    eventId: _Id | None = _field("The event that it is about.", None)
    projectId: _Id | None = _field("The project of the task. Unset: any.", None)


class OfComment(InOrganization):
    commentId: _Id = _field("The comment's id.")
    projectId: _Id | None = _field("The project of its task. Unset: any.", None)
