"""The functions of the workspace by their names, and who may use them: as tools for agents and plans, and by people.

The rooms behind them load SQLAlchemy, and are imported when one of them is first called.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from council.errors import CouncilError
from council.ids import Clock, Principal, epoch_ms, readable_json
from council.plans.plan import PlanKind
from council.storage.store import Store, Tx
from council.tools.preview import Preview
from council.tools.tool import Arguments, Effect, Tool, ToolContext, ToolResult
from council.users.people import principal_in
from council.workspace import arguments as a

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.workspace.transaction import Change, Visit


ADMINISTRATOR, MEMBER, GUEST = "administrator", "member", "guest"  # of an organization
OWNER = "owner"  # the author, as long as they may see the place where it stands
HEIR = "heir"  # an administrator, where the author may not see the place any more
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
SEE = frozenset({ADMINISTRATOR, MEMBER, *PERMISSIONS})  # each permission shows the project, too


@dataclass(frozen=True)
class Verb:
    """One function of the workspace.

    It stands in this room, under its name with underscores. `spelled`: its group and its name on the command line. `who`: the
    words of a standing that open it, with spaces between them. `for_tools`: agents may read with it, and plans may hold it;
    else it is for people alone.
    """

    name: str
    description: str
    arguments: type[Arguments]
    effect: Effect
    spelled: str
    who: str
    for_tools: bool = True

    @property
    def group(self) -> str:
        return self.spelled.partition(" ")[0]

    def __call__(self, visit: Visit, arguments: Any) -> Any:
        """Returns what it reads, or the Change that it comes to. Raises WorkspaceRefused."""
        function = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)
        module = "views" if self.effect == "read" else _MODULES[self.group]
        return getattr(import_module(f"council.workspace.{module}"), function)(visit, arguments)


_MODULES = {  # of what changes something, by its group
    **dict.fromkeys(("orgs", "members", "projects"), "organizations"),
    **dict.fromkeys(("events", "comments"), "agenda"),
    "tasks": "tasks",
    "notes": "notes",
    "notifications": "views",
}
# fmt: off
_SEE = " ".join(SEE)
_INSIDE = "administrator member guest"
_ALL = (
    Verb("getSessionContext", "tells for whom you work, and where they belong", a.Nothing, "read", "orgs whoami", "anyone"),
    Verb("listOrganizations", "lists the person's organizations, roles and capabilities",
         a.Nothing, "read", "orgs list", "anyone"),
    Verb("getOrganization", "shows an organization, its members and open invitations",
         a.OfOrganization, "read", "orgs show", _INSIDE),
    Verb("createOrganization", "creates an organization", a.NewOrganization, "write", "orgs add", "anyone", for_tools=False),
    Verb("updateOrganization", "renames an organization",
         a.OrganizationPatch, "write", "orgs edit", "administrator", for_tools=False),
    Verb("leaveOrganization", "leaves an organization, or declines its invitation",
         a.OfOrganization, "write", "orgs leave", "administrator member guest invited", for_tools=False),
    Verb("acceptInvitation", "accepts an invitation", a.OfOrganization, "write", "orgs accept", "invited", for_tools=False),
    Verb("inviteMember", "invites a user to an organization",
         a.NewInvitation, "write", "members invite", "administrator invite_members"),
    Verb("changeRole", "gives a member another role", a.NewRole, "write", "members role", "administrator change_roles"),
    Verb("removeMember", "removes a member and their rights",
         a.OfMember, "danger", "members remove", "administrator remove_members"),
    Verb("grantCapability", "grants a member a capability", a.OfCapability, "write", "members grant", "administrator"),
    Verb("revokeCapability", "revokes a member's capability", a.OfCapability, "write", "members revoke", "administrator"),
    Verb("listProjects", "lists the projects that the person sees", a.InOrganization, "read", "projects list", _SEE),
    Verb("getProjectDetail", "shows a project and its collaborators", a.OfProject, "read", "projects show", _SEE),
    Verb("createProject", "creates a project",
         a.NewProject, "write", "projects add", "administrator create_projects", for_tools=False),
    Verb("updateProject", "changes name and purpose of a project",
         a.ProjectPatch, "write", "projects edit", "administrator create_projects", for_tools=False),
    Verb("setProjectPermission", "gives or takes a permission in a project",
         a.NewPermission, "write", "projects permit", "administrator manage_permissions"),
    Verb("listTasks", "lists tasks, by project, status, priority or person", a.TaskFilter, "read", "tasks list", _SEE),
    Verb("getTaskDetail", "shows all of one task, with its comments", a.OfTask, "read", "tasks show", _SEE),
    Verb("createTask", "adds a task to a project", a.NewTask, "write", "tasks add", "administrator edit_tasks"),
    Verb("updateTask", "changes fields of a task", a.TaskPatch, "write", "tasks edit", "administrator edit_tasks"),
    Verb("updateTaskStatus", "moves a task to another status",
         a.NewStatus, "write", "tasks status", "administrator edit_tasks"),
    Verb("deleteTask", "deletes a task and its comments", a.OfTask, "danger", "tasks delete", "administrator delete_tasks"),
    Verb("listNotesMetadata", "lists the person's notes without their content",
         a.NoteFilter, "read", "notes list", f"{_SEE} owner"),
    Verb("getNoteContentIfUnlocked", "shows a note; a locked one only when it is unlocked",
         a.OfNote, "read", "notes show", f"{_SEE} owner"),
    Verb("createNote", "writes a note", a.NewNote, "write", "notes add", "owner administrator edit_notes"),
    Verb("updateNote", "changes a note; a locked one only when it is unlocked",
         a.NotePatch, "write", "notes edit", "owner administrator edit_notes"),
    Verb("deleteNote", "deletes a note; a locked one only when it is unlocked",
         a.OfNote, "danger", "notes delete", "owner administrator edit_notes"),
    Verb("listEvents", "lists the events of the person's organizations, with comments",
         a.EventFilter, "read", "events list", _INSIDE),
    Verb("listEventsPublic", "lists the public events", a.Nothing, "read", "events public", "anyone"),
    Verb("createEvent", "adds an event to an organization", a.NewEvent, "write", "events add", "administrator manage_events"),
    Verb("updateEvent", "changes fields of an event", a.EventPatch, "write", "events edit", "administrator manage_events"),
    Verb("deleteEvent", "deletes an event and its comments",
         a.OfEvent, "danger", "events delete", "administrator manage_events"),
    Verb("addComment", "comments on a task or an event", a.NewComment, "write", "comments add", "administrator member comment"),
    Verb("removeComment", "removes a comment",
         a.OfComment, "danger", "comments remove", "owner administrator moderate_comments"),
    Verb("listNotifications", "lists the person's notifications and reminders",
         a.Nothing, "read", "notifications list", "anyone"),
    Verb("readNotifications", "marks all notifications as read",
         a.Nothing, "write", "notifications read", "anyone", for_tools=False),
)
# fmt: on
ACTIONS: Mapping[str, Verb] = {action.name: action for action in _ALL}
RULES: Mapping[str, frozenset[str]] = {
    **{action.name: frozenset(action.who.split()) for action in _ALL},
    "unlockNote": SEE | {OWNER},
    "lockNote": frozenset({OWNER}),
    "removeLock": frozenset({OWNER, HEIR}),
}

KINDS = tuple(
    PlanKind(
        kind,
        tuple(one.name for one in _ALL if one.group in groups and one.for_tools and one.effect != "read"),
        partial=kind == "members",
    )
    for kind, groups in (
        ("tasks", ("tasks", "comments")),
        ("notes", ("notes",)),
        ("events", ("events", "comments")),
        ("members", ("members", "projects")),
    )
)


def visit_of(connection: Connection, principal: Principal, clock: Clock, zone: str = "") -> Visit:
    from council.workspace.transaction import Visit  # not at the top: see above

    return Visit(connection, principal, epoch_ms(clock), zone or "UTC")


def tools(store: Store, clock: Clock, zone: str) -> list[Tool]:
    """A tool for each function that agents may read with, or propose. `zone` is the one of this home, empty for none."""
    return [_tool(action, store, clock, zone) for action in _ALL if action.for_tools]


def _tool(action: Verb, store: Store, clock: Clock, zone: str) -> Tool:
    def come_to(connection: Connection, principal: Principal, arguments: Any, /) -> Change:
        change: Change = action(visit_of(connection, principal, clock, zone), arguments)
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
        def look(tx: Tx) -> Any:
            return action(visit_of(tx.core, principal_in(tx, context.asker), clock), arguments)

        try:
            found = await asyncio.to_thread(store.read, look)
        except CouncilError as error:
            return ToolResult.refused(error.code, error.message, action.name)
        return ToolResult(True, action.name, readable_json(found, indent=1))

    needed = [name for name, field in action.arguments.model_fields.items() if field.is_required()]
    asked = "" if not needed else "id" if len(action.arguments.model_fields) == 1 else f'{{"{needed[0]}": "id"}}'
    spelling = f"[ORCHESTRATOR_REQUEST: {action.name}({asked})]"
    if action.effect == "read":
        return Tool(action.name, action.description, action.arguments, "read", (spelling,), run)
    return Tool(action.name, action.description, action.arguments, action.effect, (), None, apply, preview)
