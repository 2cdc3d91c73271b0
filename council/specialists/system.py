"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.engine.runs import Handler
from council.specialists.commands import COMMANDS
from council.specialists.creation_plan import CREATION, creation_tools
from council.specialists.keeper import SpecialistKeeper
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.specialists.outside_plans import OUTSIDE_REQUEST, OutsideSender
from council.systems import Core, System
from council.tools.tool import Tool
from council.turns.bench import Bench

if TYPE_CHECKING:
    from council.specialists.specialist_directory import SpecialistDirectory


def open_directory(core: Core, bench: Bench) -> SpecialistDirectory:
    from council.specialists.specialist_directory import SpecialistDirectory  # not at the top: few commands ask one

    return SpecialistDirectory(core, bench)


def tools_of(core: Core) -> list[Tool]:
    return [*lifecycle_tools(core), OutsideSender(core).tool(), *creation_tools(core.clock)]


def handlers_of(core: Core) -> dict[str, Handler]:
    from council.specialists.creation_run import CreationRun  # not at the top, for the same reason
    from council.specialists.examination import ExaminationRun
    from council.specialists.specialist_work import SpecialistHandler

    return {
        "create_specialist": SpecialistHandler(core, CreationRun),
        "train_specialist": SpecialistHandler(core, ExaminationRun),
    }


SPECIALISTS = System(
    "specialists",
    commands=COMMANDS,
    handlers=handlers_of,
    tools=tools_of,
    plan_kinds=(LIFECYCLE, OUTSIDE_REQUEST, CREATION),
    companions=lambda core: [SpecialistKeeper(core.store, core.clock, core.audit, core.settings.scan_interval_s)],
    directory=open_directory,
    tables="council.specialists.tables",
)
