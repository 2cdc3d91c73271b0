"""The functions of the workspace by their names: as tools for agents and plans, and for the command line.

The rooms behind them load SQLAlchemy, and are imported when one of them is first called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from council.errors import CouncilError
from council.ids import Clock, Principal, readable_json
from council.plans.plan import PlanKind
from council.storage.store import Store
from council.tools.preview import Preview
from council.tools.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from council.users.people import principal_in
from council.workspace import arguments as a

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.workspace.visit import Change, Visit


@dataclass(frozen=True)
class Verb:
    """One function of the workspace: its name and meaning, its arguments, and `module:function` in this room.

    `for_tools`: agents may read with it, and plans may hold it; else it is for the command line alone.
    """

    name: str
    description: str
    arguments: type[Arguments]
    effect: Effect
    where: str
    for_tools: bool = True

    def __call__(self, visit: Visit, arguments: Any) -> Any:
        """Returns what it reads, or the Change that it comes to. Raises WorkspaceRefused."""
        module, _, function = self.where.partition(":")
        return getattr(import_module(f"council.workspace.{module}"), function)(visit, arguments)


# fmt: off
_ALL = (
    Verb("getSessionContext", "tells for whom you work, and where they belong", a.Nothing, "read", "views:session_context"),
    Verb("listOrganizations", "lists the person's organizations, roles and capabilities", a.Nothing, "read",
         "views:list_organizations"),
    Verb("getOrganization", "shows an organization, its members and open invitations", a.OfOrganization, "read",
         "views:get_organization"),
    Verb("listProjects", "lists the projects that the person sees", a.InOrganization, "read", "views:list_projects"),
    Verb("getProjectDetail", "shows a project and its collaborators", a.OfProject, "read", "views:get_project_detail"),
    Verb("listTasks", "lists tasks, by project, status or priority", a.TaskFilter, "read", "views:list_tasks"),
    Verb("getTaskDetail", "shows all of one task, with its comments", a.OfTask, "read", "views:get_task_detail"),
    Verb("listNotifications", "lists the person's notifications and reminders", a.Nothing, "read",
         "views:list_notifications"),
    Verb("listEventsPublic", "lists the public events", a.Nothing, "read", "views:list_events_public"),
    Verb("listEvents", "lists the events of the person's organizations, with comments", a.InOrganization, "read",
         "views:list_events"),
    Verb("listNotesMetadata", "lists the person's notes without their content", a.NoteFilter, "read",
         "views:list_notes_metadata"),
    Verb("getNoteContentIfUnlocked", "shows a note; a locked one only when it is unlocked", a.OfNote, "read",
         "notes:note_content"),
    Verb("createTask", "adds a task to a project", a.NewTask, "write", "tasks:create_task"),
    Verb("updateTask", "changes fields of a task", a.TaskPatch, "write", "tasks:update_task"),
    Verb("updateTaskStatus", "moves a task to another status", a.NewStatus, "write", "tasks:update_task_status"),
    Verb("deleteTask", "deletes a task and its comments", a.OfTask, "danger", "tasks:delete_task"),
    Verb("createNote", "writes a note", a.NewNote, "write", "notes:create_note"),
    Verb("updateNote", "changes a note; a locked one only when it is unlocked", a.NotePatch, "write", "notes:update_note"),
    Verb("deleteNote", "deletes a note; a locked one only when it is unlocked", a.OfNote, "danger", "notes:delete_note"),
    Verb("createEvent", "adds an event to an organization", a.NewEvent, "write", "agenda:create_event"),
    Verb("updateEvent", "changes fields of an event", a.EventPatch, "write", "agenda:update_event"),
    Verb("deleteEvent", "deletes an event and its comments", a.OfEvent, "danger", "agenda:delete_event"),
    Verb("addComment", "comments on a task or an event", a.NewComment, "write", "agenda:add_comment"),
    Verb("removeComment", "removes a comment", a.OfComment, "danger", "agenda:remove_comment"),
    Verb("inviteMember", "invites a user to an organization", a.NewInvitation, "write", "organizations:invite_member"),
    Verb("changeRole", "gives a member another role", a.NewRole, "write", "organizations:change_role"),
    Verb("removeMember", "removes a member and their rights", a.OfMember, "danger", "organizations:remove_member"),
    Verb("grantCapability", "grants a member a capability", a.OfCapability, "write", "organizations:grant_capability"),
    Verb("revokeCapability", "revokes a member's capability", a.OfCapability, "write", "organizations:revoke_capability"),
    Verb("setProjectPermission", "gives or takes a permission in a project", a.NewPermission, "write",
         "organizations:set_project_permission"),
    Verb("createOrganization", "creates an organization", a.NewOrganization, "write", "organizations:create_organization",
         for_tools=False),
    Verb("acceptInvitation", "accepts an invitation", a.OfOrganization, "write", "organizations:accept_invitation",
         for_tools=False),
    Verb("createProject", "creates a project", a.NewProject, "write", "organizations:create_project", for_tools=False),
    Verb("readNotifications", "marks all notifications as read", a.Nothing, "write", "views:read_notifications",
         for_tools=False),
)
# fmt: on
ACTIONS: Mapping[str, Verb] = {action.name: action for action in _ALL}

KINDS = (
    PlanKind("tasks", ("createTask", "updateTask", "updateTaskStatus", "deleteTask", "addComment", "removeComment")),
    PlanKind("notes", ("createNote", "updateNote", "deleteNote")),
    PlanKind("events", ("createEvent", "updateEvent", "deleteEvent", "addComment", "removeComment")),
    PlanKind(
        "members",
        ("inviteMember", "changeRole", "removeMember", "grantCapability", "revokeCapability", "setProjectPermission"),
        partial=True,
    ),
)


def visit_of(connection: Connection, principal: Principal, clock: Clock) -> Visit:
    from council.workspace.visit import Visit  # not at the top: see above

    return Visit(connection, principal, int(clock.now().timestamp() * 1000))


def tools(store: Store, clock: Clock) -> list[Tool]:
    """A tool for each function that agents may read with, or propose."""
    return [_tool(action, store, clock) for action in _ALL if action.for_tools]


def _tool(action: Verb, store: Store, clock: Clock) -> Tool:
    def come_to(connection: Connection, principal: Principal, arguments: Any, /) -> Change:
        change: Change = action(visit_of(connection, principal, clock), arguments)
        return change

    def preview(connection: Connection, principal: Principal, arguments: Any, /) -> Preview:
        return come_to(connection, principal, arguments).preview

    def apply(connection: Connection, principal: Principal, arguments: Any, /) -> ToolResult:
        change = come_to(connection, principal, arguments)
        change.write(connection)
        text = f"{change.summary} Its id: {change.row_id}"
        concealed = change.row_id if change.is_guarded else ""
        return ToolResult(True, action.name, text, inverse=change.inverse, row_to_conceal=concealed)

    async def run(arguments: Any, /, *, context: ToolContext) -> ToolResult:
        try:
            found = await asyncio.to_thread(store.read, partial(_read, action, clock, context.asker, arguments))
        except CouncilError as error:
            return ToolResult.refused(error.code, error.message, action.name)
        return ToolResult(True, action.name, readable_json(found, indent=1))

    needed = [name for name, field in action.arguments.model_fields.items() if field.is_required()]
    asked = "" if not needed else "id" if len(action.arguments.model_fields) == 1 else f'{{"{needed[0]}": "id"}}'
    spelling = f"[ORCHESTRATOR_REQUEST: {action.name}({asked})]"
    if action.effect == "read":
        return Tool(action.name, action.description, action.arguments, "read", (spelling,), run)
    return Tool(action.name, action.description, action.arguments, action.effect, (), None, apply, preview)


def _read(action: Verb, clock: Clock, asker: str, arguments: Any, tx: Any) -> Any:
    return action(visit_of(tx.core, principal_in(tx, asker), clock), arguments)
