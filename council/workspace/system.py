"""The workspace as a system: its tools, its kinds of plans and its tables."""

from __future__ import annotations

from council.systems import System
from council.workspace.catalogue import KINDS, tools

WORKSPACE = System(
    "workspace",
    tools=lambda core: tools(core.store, core.clock),
    plan_kinds=KINDS,
    tables="council.workspace.tables",
)
