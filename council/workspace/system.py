"""The workspace as a system: its tools, its kinds of plans, its agents, its reminders and its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.systems import Core, System
from council.turns.bench import Bench
from council.workspace.functions import KINDS, tools
from council.workspace.reminders import Reminders

if TYPE_CHECKING:
    from council.workspace.workspace_directory import WorkspaceDirectory


def _directory(core: Core, bench: Bench) -> WorkspaceDirectory:
    from council.workspace.workspace_directory import WorkspaceDirectory  # not at the top: most commands ask no agent

    return WorkspaceDirectory(core, bench)


WORKSPACE = System(
    "workspace",
    tools=lambda core: tools(core.store, core.clock),
    plan_kinds=KINDS,
    companions=lambda core: [Reminders(core.store, core.clock, core.settings.scan_interval_s)],
    directory=_directory,
    tables="council.workspace.tables",
)
