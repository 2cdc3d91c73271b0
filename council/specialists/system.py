"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.engine.runs import Handler
from council.specialists.commands import COMMANDS
from council.specialists.creation_plan import CREATION, creation_tools
from council.specialists.keeper import SpecialistKeeper
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.specialists.outside_plans import OUTSIDE_REQUEST, OutsideSender
from council.specialists.specialist_registry import specialist_of
from council.specialists.specialist_spec import SpecialistSpec
from council.systems import Core, System
from council.tools.tool import Tool
from council.turns.bench import Bench

if TYPE_CHECKING:
    from council.specialists.specialist_directory import SpecialistDirectory


def open_directory(core: Core, bench: Bench) -> SpecialistDirectory:
    from council.specialists.specialist_directory import SpecialistDirectory  # not at the top: few commands ask one

    return SpecialistDirectory(core, bench)


def tools_of(core: Core) -> list[Tool]:
    def spec_for(role: str, user: str) -> SpecialistSpec | None:
        found = specialist_of(core.store, role, user)
        return None if found is None else found.spec

    return [*lifecycle_tools(core), OutsideSender(spec_for, core.vault).tool(), *creation_tools(core.clock)]


def handlers_of(core: Core) -> dict[str, Handler]:
    from council.specialists.creation_run import CreationHandler  # not at the top, for the same reason
    from council.specialists.examination import ExaminationHandler

    return {"create_specialist": CreationHandler(core), "train_specialist": ExaminationHandler(core)}


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
