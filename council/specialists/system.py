"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


SPECIALISTS = System(
    "specialists",
    tools=lifecycle_tools,
    plan_kinds=(LIFECYCLE,),
    companions=lambda core: [SpecialistKeeper(core.store, core.clock, core.audit, core.settings.scan_interval_s)],
    directory=_directory,
    tables="council.specialists.tables",
)
