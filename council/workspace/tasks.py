"""Tasks: created, changed, done and deleted by those who may, in the project where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, select

from council.tools.preview import Inverse
from council.users.tables import roles
from council.workspace.arguments import NewStatus, NewTask, OfTask, TaskPatch
from council.workspace.functions import RULES
from council.workspace.organizations import no_member, person, project_row
from council.workspace.rights import Spot, absent, require
from council.workspace.tables import comments, members, projects, tasks
from council.workspace.transaction import Change, Visit, WorkspaceRefused, deleted, differences, edited

_TASK = (
    select(tasks, projects.c.name.label("project"), projects.c.org_id)
    .join_from(tasks, projects)
    .where(tasks.c.task_id == bindparam("task_id"))
)
_NEWEST_COMMENT = select(func.max(comments.c.comment_id)).where(comments.c.task_id == bindparam("task_id"))
_COLUMNS = {  # of each argument
    "title": "title",
    "description": "description",
    "status": "status",
    "priority": "priority",
    "epic": "epic",
    "stage": "stage",
    "orderIndex": "position",
    "acceptanceCriteria": "criteria",
    "assignedToId": "assignee",
    "dueDate": "due",
}


def create_task(visit: Visit, arguments: NewTask) -> Change:
    project = project_row(visit, arguments.projectId)
    spot = Spot(project.org_id, project.project_id)
    words = require(visit, "createTask", spot, "project")
    values, task_id = _values(arguments.model_dump()), visit.new_id()
    _require_member(visit, project.org_id, values["assignee"])
    whose = {"task_id": task_id, "project_id": project.project_id, "author": visit.principal.id}
    made = insert(tasks).values(**whose, **values, created_ms=visit.now_ms)
    notice = visit.notice(values["assignee"], f"The task “{arguments.title}” is yours now.")
    told, shown = f"A task is added to {project.name}: “{arguments.title}”.", differences({}, _shown(visit, values))
    inverse = Inverse("deleteTask", {"taskId": task_id}) if RULES["deleteTask"] & words else None
    return Change(told, (made, *notice), task_id, shown, _affected(visit, values["assignee"]), inverse)


def update_task(visit: Visit, arguments: TaskPatch) -> Change:
    return _change(visit, "updateTask", arguments)


def update_task_status(visit: Visit, arguments: NewStatus) -> Change:
    return _change(visit, "updateTaskStatus", arguments)


def _change(visit: Visit, action: str, arguments: TaskPatch | NewStatus) -> Change:
    """Changes what is given; the rest stays."""
    task, spot = task_row(visit, arguments)
    require(visit, action, spot, "task")
    values = _values(arguments.model_dump(exclude_unset=True))
    title = values.get("title", task.title)
    moved = values.get("assignee", task.assignee) != task.assignee
    if moved:
        _require_member(visit, spot.org_id, values["assignee"])
    back = {name: value for name, value in arguments_of(task).items() if _COLUMNS[name] in values}
    inverse, shown = Inverse(action, {"taskId": task.task_id, **back}), partial(_shown, visit)
    affects = _affected(visit, task.assignee, values.get("assignee"))
    also = visit.notice(values["assignee"], f"The task “{title}” is yours now.") if moved else ()
    return edited(tasks, task, _called(task), values, inverse, shown=shown, affects=affects, also=also)


def delete_task(visit: Visit, arguments: OfTask) -> Change:
    """A comment that came since the draft is a change."""
    task, spot = task_row(visit, arguments)
    require(visit, "deleteTask", spot, "task")
    newest = visit.connection.scalar(_NEWEST_COMMENT, {"task_id": task.task_id})
    return deleted(tasks, task, _called(task), f"{task.version}/{newest or ''}", _affected(visit, task.assignee))


def task_row(visit: Visit, arguments: OfTask) -> tuple[Row[Any], Spot]:
    """The task, with the name of its project, and where it stands. Raises WorkspaceRefused for one outside the scope."""
    task = visit.connection.execute(_TASK, {"task_id": arguments.taskId}).one_or_none()
    if task is None or arguments.projectId not in (None, task.project_id):
        raise absent("task")
    return task, Spot(task.org_id, task.project_id)


def _called(task: Row[Any]) -> str:
    return f"The task “{task.title}” in {task.project}"


def arguments_of(task: Row[Any]) -> dict[str, Any]:
    """The fields of a task by the names of their arguments."""
    values = {name: getattr(task, column) for name, column in _COLUMNS.items()}
    return {**values, "acceptanceCriteria": task.criteria.splitlines()}


def _values(given: dict[str, Any]) -> dict[str, Any]:
    values = {column: given[name] for name, column in _COLUMNS.items() if name in given}
    if "criteria" in values:
        values["criteria"] = "\n".join(values["criteria"])
    return values


def _shown(visit: Visit, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a person reads them: a name in place of an id."""
    told = {"position": "order", "criteria": "acceptance criteria"}
    shown = {told.get(name, name): value for name, value in values.items()}
    if shown.get("assignee"):
        shown["assignee"] = person(visit, shown["assignee"])
    return shown


def _require_member(visit: Visit, org_id: str, user_id: str | None) -> None:
    """Raises WorkspaceRefused for an assignee who could not see the task."""
    if user_id is None:
        return
    there = select(members.c.role).where(members.c.org_id == org_id, members.c.user_id == user_id)
    if visit.connection.scalar(there) is None:
        message = f"{user_id} is not a member of the organization, so no task can be assigned to them."
        raise no_member(visit, org_id, user_id, message)
    if visit.connection.scalar(select(roles.c.role).where(roles.c.user_id == user_id).limit(1)) is None:
        message = f"{user_id} has no role in this home any more, so no task can be assigned to them."
        fix = f"name somebody else; `council users roles {user_id} --grant user` lets them in again"
        raise WorkspaceRefused("no_member", message, fix=fix)


def _affected(visit: Visit, *user_ids: str | None) -> tuple[str, ...]:
    return tuple(person(visit, user_id) for user_id in dict.fromkeys(user_ids) if user_id is not None)
