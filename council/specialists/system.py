"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.engine.runs import Handler
from council.specialists.commands import COMMANDS
from council.specialists.creation_plan import CREATION, creation_tools
from council.specialists.keeper import SpecialistKeeper
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.systems import Core, System
from council.turns.bench import Bench

if TYPE_CHECKING:
    from council.specialists.specialist_directory import SpecialistDirectory


def _directory(core: Core, bench: Bench) -> SpecialistDirectory:
    from council.specialists.specialist_directory import (
        SpecialistDirectory,
    )  # not at the top: an idle daemon asks nobody

    return SpecialistDirectory(core, bench)


def _handlers(core: Core) -> dict[str, Handler]:
    from council.specialists.creation_run import CreationHandler  # not at the top, for the same reason
    from council.specialists.examination import ExaminationHandler

    return {"create_specialist": CreationHandler(core), "train_specialist": ExaminationHandler(core)}


SPECIALISTS = System(
    "specialists",
    commands=COMMANDS,
    handlers=_handlers,
    tools=lambda core: [*lifecycle_tools(core), *creation_tools(core.clock)],
    plan_kinds=(LIFECYCLE, CREATION),
    companions=lambda core: [SpecialistKeeper(core.store, core.clock, core.audit, core.settings.scan_interval_s)],
    directory=_directory,
    tables="council.specialists.tables",
)
