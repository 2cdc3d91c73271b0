"""The workspace's five agents: what each of them replies, reads first, and may draft. Their words stand in `personas/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from council.agents.handoff import ForwardKind
from council.workspace.agent_replies import AgentReply, ConciergeReply, EventsReply, NotesReply, OrgReply, PlannerReply

CONCIERGE, PLANNER, VAULT = "workspace_concierge", "task_planner", "notes_vault"
PUBLISHER, ADMIN = "events_publisher", "org_admin"
_LISTS = ("getSessionContext", "listProjects", "listTasks")
_PROJECT = ("getSessionContext", "getProjectDetail", "listTasks")


@dataclass(frozen=True)
class Post:
    """The place of one agent. `kind` is that of its plans, empty for one that only reads. `reads` are made before it is
    asked, `in_project` in their place where a project is in scope. `scope` are the ids that its plans are held to."""

    reply: type[AgentReply]
    reads: tuple[str, ...]
    in_project: tuple[str, ...]
    kind: str = ""
    scope: tuple[str, ...] = ()
    needs_project: bool = False


STAFF: Mapping[str, Post] = {
    CONCIERGE: Post(
        ConciergeReply,
        (*_LISTS, "listOrganizations", "listNotifications", "listEventsPublic"),
        _PROJECT,
    ),
    PLANNER: Post(PlannerReply, ("getSessionContext",), _PROJECT, "tasks", ("projectId",), needs_project=True),
    VAULT: Post(NotesReply, ("listNotesMetadata",), ("listNotesMetadata",), "notes", ("projectId",)),
    PUBLISHER: Post(
        EventsReply,
        ("getSessionContext", "listEvents", "listEventsPublic"),
        ("getSessionContext", "listEvents"),
        "events",
        ("orgId",),
    ),
    ADMIN: Post(
        OrgReply,
        ("getSessionContext", "listOrganizations", "getOrganization"),
        ("getSessionContext", "getOrganization", "getProjectDetail"),
        "members",
        ("orgId", "projectId"),
    ),
}
FORWARDS: Mapping[ForwardKind, str] = {
    "modify_tasks": PLANNER,
    "notes_ops": VAULT,
    "events_ops": PUBLISHER,
    "membership_ops": ADMIN,
}
