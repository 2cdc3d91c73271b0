"""The replies of the workspace's agents, one schema for each agent, with the limits of the source (KAIROS).

Unknown keys are dropped, and defaults are filled in. An operation has the fields of the function that it proposes, so it
has its limits, too. `reply_checks` judges what no schema can say, and `operations` makes a plan of a reply.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from council.agents.handoff import MAX_FORWARDS, ForwardKind
from council.workspace import arguments as a

MAX_READS = 4  # at once
MIN_STEPS = 3
_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
_Answer = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000)]
_Id = Annotated[str, StringConstraints(max_length=64)]
_LENIENT = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class _Part(BaseModel):
    model_config = _LENIENT


class WantedReading(_Part):
    """A further reading that the agent needs before it can answer."""

    tool: Annotated[str, StringConstraints(max_length=64)]
    arguments: dict[str, Any] = {}


class SourceRef(_Part):
    """A citation: words of what was read, and the id of the row where they stand."""

    label: _Line
    ref: _Id


class AgentReply(_Part):
    """The part that all replies share. `outcome` decides which of the fields count.

    `read` asks for `reads`. `clarify` asks the one `question`. `decline` is for what the agent is not for. `answer` changes
    nothing. `citations` name what the answer rests on.
    """

    outcome: str
    answer: _Answer = ""
    question: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""
    reads: Annotated[list[WantedReading], Field(max_length=MAX_READS)] = []
    citations: Annotated[list[SourceRef], Field(max_length=50)] = []


class TaskRisk(_Part):
    """A task that endangers the project, and why."""

    kind: Literal["overdue", "unassigned", "unclear", "blocked"]
    taskId: _Id
    why: _Line


class ForwardedWish(_Part):
    """The source's `handoff`: a change that the person wants, for the agent that can draft it."""

    kind: ForwardKind
    userIntent: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
    projectId: _Id | None = None


def _three_or_none(steps: list[str]) -> list[str]:
    if 0 < len(steps) < MIN_STEPS:
        raise ValueError(f"name {MIN_STEPS} to 7 next steps in the order of their weight, or none")
    return steps


class ConciergeReply(AgentReply):
    """The reply of the agent that only reads. `handoff` is for a request that should change something."""

    outcome: Literal["answer", "handoff", "clarify", "decline", "read"]
    details: Annotated[list[_Line], Field(max_length=50)] = []
    risks: Annotated[list[TaskRisk], Field(max_length=20)] = []
    nextSteps: Annotated[list[_Line], Field(max_length=7), AfterValidator(_three_or_none)] = []
    handoff: Annotated[list[ForwardedWish], Field(max_length=MAX_FORWARDS)] = []


class ReplyOperation(BaseModel):
    """An operation that a reply proposes: a call of `tool`. `about` are its fields that the tool does not take. It stands last
    among the bases: its configuration counts."""

    model_config = _LENIENT
    tool: ClassVar[str] = ""
    about: ClassVar[set[str]] = {"reason", "exception", "dangerous", "asked", "op"}

    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""

    @property
    def called(self) -> str:
        return self.tool


class _Danger(ReplyOperation):
    """An operation that nobody can undo. `asked` are the words of the request that ask for it."""

    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
    dangerous: Literal[True]
    asked: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class DraftReply(AgentReply):
    """The reply of an agent that proposes changes. `revises` is the open draft that these changes replace. `confirm` is for a
    person who agrees to that draft as it is. `blocked` names what was wanted and cannot be done."""

    outcome: Literal["draft", "confirm", "answer", "clarify", "decline", "read"]
    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=120)] = ""
    summary: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)] = ""
    revises: _Id = ""
    risks: Annotated[list[_Line], Field(max_length=20)] = []
    questionsForUser: Annotated[list[_Line], Field(max_length=10)] = []


class TaskCreate(a.NewTask, ReplyOperation):
    """A new task. The scope fills in the project. `exception` says why a task of the same title is wanted twice."""

    tool = "createTask"

    projectId: _Id = ""
    exception: Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)] = ""


class TaskUpdate(a.TaskPatch, ReplyOperation):
    tool = "updateTask"


class TaskStatusChange(a.NewStatus, ReplyOperation):
    tool = "updateTaskStatus"


class TaskDelete(a.OfTask, _Danger):
    tool = "deleteTask"


class PlannerReply(DraftReply):
    """The reply of the task planner: epics and stages in their order, each task with what makes it done."""

    creates: Annotated[list[TaskCreate], Field(max_length=30)] = []
    updates: Annotated[list[TaskUpdate], Field(max_length=50)] = []
    statusChanges: Annotated[list[TaskStatusChange], Field(max_length=50)] = []
    deletes: Annotated[list[TaskDelete], Field(max_length=10)] = []
    orderingRationale: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)] = ""


class NoteCreate(a.NewNote, ReplyOperation):
    tool = "createNote"

    op: Literal["create"]


class NoteUpdate(a.NotePatch, ReplyOperation):
    tool = "updateNote"

    op: Literal["update"]


class NoteDelete(a.OfNote, _Danger):
    tool = "deleteNote"

    op: Literal["delete"]


class BlockedNote(_Part):
    """A note that the person wants changed, and that is locked."""

    noteId: _Id
    reason: _Line


class NotesReply(DraftReply):
    """The reply of the notes vault, with its operations in their order."""

    operations: Annotated[
        list[Annotated[NoteCreate | NoteUpdate | NoteDelete, Field(discriminator="op")]], Field(max_length=50)
    ] = []
    blocked: Annotated[list[BlockedNote], Field(max_length=50)] = []


class EventCreate(a.NewEvent, ReplyOperation):
    tool = "createEvent"

    orgId: _Id = ""


class EventUpdate(a.EventPatch, ReplyOperation):
    tool = "updateEvent"


class EventDelete(a.OfEvent, _Danger):
    tool = "deleteEvent"


class EventComment(a.NewComment, ReplyOperation):
    tool = "addComment"


class CommentRemoval(a.OfComment, _Danger):
    tool = "removeComment"


class EventsReply(DraftReply):
    """The reply of the events publisher."""

    creates: Annotated[list[EventCreate], Field(max_length=10)] = []
    updates: Annotated[list[EventUpdate], Field(max_length=20)] = []
    deletes: Annotated[list[EventDelete], Field(max_length=5)] = []
    comments: Annotated[list[EventComment], Field(max_length=20)] = []
    commentRemovals: Annotated[list[CommentRemoval], Field(max_length=10)] = []
    risks: Annotated[list[_Line], Field(max_length=10)] = []
    questionsForUser: Annotated[list[_Line], Field(max_length=5)] = []


class _OperationWithReason(ReplyOperation):
    reason: _Reason


class RoleChange(a.NewRole, _OperationWithReason):
    tool = "changeRole"


class Invite(a.NewInvitation, _OperationWithReason):
    tool = "inviteMember"


class MemberRemoval(a.OfMember, _Danger):
    tool = "removeMember"

    reason: _Reason


class CapabilityChange(a.OfCapability, _OperationWithReason):
    """A capability that a member gets, or loses."""

    about = ReplyOperation.about | {"granted"}

    granted: bool

    @property
    def called(self) -> str:
        return "grantCapability" if self.granted else "revokeCapability"


class PermissionChange(a.NewPermission, _OperationWithReason):
    tool = "setProjectPermission"


class OrgReply(DraftReply):
    """The reply of the administrator of organizations. Each operation has its reason."""

    roleChanges: Annotated[list[RoleChange], Field(max_length=10)] = []
    invites: Annotated[list[Invite], Field(max_length=10)] = []
    removals: Annotated[list[MemberRemoval], Field(max_length=5)] = []
    capabilityChanges: Annotated[list[CapabilityChange], Field(max_length=10)] = []
    permissionChanges: Annotated[list[PermissionChange], Field(max_length=10)] = []
    risks: Annotated[list[_Line], Field(max_length=10)] = []
    questionsForUser: Annotated[list[_Line], Field(max_length=5)] = []
