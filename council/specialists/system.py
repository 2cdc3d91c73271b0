"""Specialists as a system: the agents that they are, what changes them, what time does to them, and their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.specialists.keeper import SpecialistKeeper
from council.specialists.lifecycle import LIFECYCLE, lifecycle_tools
from council.specialists.outside_plans import OUTSIDE_REQUEST, OutsideSender
from council.specialists.registry import specialist_of
from council.specialists.specialist_spec import SpecialistSpec
from council.systems import Core, System
from council.tools.tool import Tool
from council.turns.bench import Bench

if TYPE_CHECKING:
    from council.specialists.specialist_directory import SpecialistDirectory


def _directory(core: Core, bench: Bench) -> SpecialistDirectory:
    from council.specialists.specialist_directory import SpecialistDirectory  # not at the top: few commands ask one

    return SpecialistDirectory(core, bench)


def _tools(core: Core) -> list[Tool]:
    def spec_for(role: str, user: str) -> SpecialistSpec | None:
        found = specialist_of(core.store, role, user)
        return None if found is None else found.spec

    return [*lifecycle_tools(core), OutsideSender(spec_for, core.vault).tool()]


SPECIALISTS = System(
    "specialists",
    tools=_tools,
    plan_kinds=(LIFECYCLE, OUTSIDE_REQUEST),
    companions=lambda core: [SpecialistKeeper(core.store, core.clock, core.audit, core.settings.scan_interval_s)],
    directory=_directory,
    tables="council.specialists.tables",
)
