"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from council.specialists.commands import COMMANDS
from council.specialists.creation_plan import CREATION, creation_tools
from council.specialists.deprecation import SpecialistKeeper
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.specialists.outside_plans import OUTSIDE_REQUEST, OutsideSender
from council.specialists.specialist_directory import SpecialistDirectory
from council.systems import BareCore, LateHandler, System
from council.tools.tool import Tool


def tools_of(core: BareCore) -> list[Tool]:
    return [*lifecycle_tools(core), OutsideSender(core).tool(), *creation_tools(core.clock)]


SPECIALISTS = System(
    "specialists",
    commands=COMMANDS,
    handlers=lambda core: {
        "create_specialist": LateHandler("council.specialists.creation_run:CreationRun", core),
        "train_specialist": LateHandler("council.specialists.examination:ExaminationRun", core),
    },
    tools=tools_of,
    plan_kinds=(LIFECYCLE, OUTSIDE_REQUEST, CREATION),
    companions=lambda core: [SpecialistKeeper(core.store, core.clock, core.audit, core.settings.scan_interval_s)],
    directory=SpecialistDirectory,
    tables="council.specialists.tables",
)
