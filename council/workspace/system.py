"""The workspace as a system: its tools, its kinds of plans, its reminders and its tables."""

from __future__ import annotations

from council.systems import System
from council.workspace.catalogue import KINDS, tools
from council.workspace.reminders import Reminders

WORKSPACE = System(
    "workspace",
    tools=lambda core: tools(core.store, core.clock),
    plan_kinds=KINDS,
    companions=lambda core: [Reminders(core.store, core.clock, core.settings.scan_interval_s)],
    tables="council.workspace.tables",
)
