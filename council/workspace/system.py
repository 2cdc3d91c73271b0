"""The workspace as a system: its tools, its kinds of plans, its agents, its reminders and its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council.engine.runs import Premises
from council.errors import CommandInvalid
from council.ids import STEWARD, SystemClock
from council.storage.store import Tx
from council.systems import Core, System
from council.turns.bench import Bench
from council.users.people import principal_in
from council.workspace.arguments import InOrganization
from council.workspace.functions import KINDS, tools, visit_of
from council.workspace.reminders import Reminders

if TYPE_CHECKING:
    from council.workspace.workspace_directory import WorkspaceDirectory


def open_directory(core: Core, bench: Bench) -> WorkspaceDirectory:
    from council.workspace.workspace_directory import WorkspaceDirectory  # not at the top: most commands ask no agent

    return WorkspaceDirectory(core, bench)


def _require_project(command: Any, premises: Premises) -> None:
    """Raises CommandInvalid where an `ask` names a project that there is not, or that its person may not see."""
    if command.project is None:
        return
    from council.workspace.transaction import WorkspaceRefused  # not at the top: SQLAlchemy
    from council.workspace.views import list_projects, project_named

    def listed(tx: Tx) -> list[dict[str, Any]]:
        person = principal_in(tx, command.user or STEWARD.id)
        return list_projects(visit_of(tx.core, person, SystemClock()), InOrganization())

    try:
        project_named(premises.store.read(listed), command.project)
    except WorkspaceRefused as refused:
        raise CommandInvalid(refused.message, fix=refused.fix, field="project") from refused


WORKSPACE = System(
    "workspace",
    admits={"ask": _require_project},
    tools=lambda core: tools(core.store, core.clock, core.settings.timezone),
    plan_kinds=KINDS,
    companions=lambda core: [Reminders(core.store, core.clock, core.settings.scan_interval_s)],
    directory=open_directory,
    tables="council.workspace.tables",
)
