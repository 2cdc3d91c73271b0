"""Deliberations as a system: the commands `deliberate` and `memory`, and what does their work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from council.agents.memory import Memory
from council.commands.types import CommandType
from council.deliberation.commands import DeliberateCommand, MemoryCommand
from council.deliberation.membership import admit_deliberation, foresee_members
from council.deliberation.memory_change import MemoryChange, admit_memory_change
from council.engine.runs import Run
from council.systems import Core, System

if TYPE_CHECKING:
    from council.deliberation.task import Task


@dataclass(frozen=True)
class DeliberateHandler:
    """Protocol 95's task: deliberate and leave a decision."""

    core: Core

    def begin(self, run: Run) -> Task:
        from council.deliberation.task import Task  # not at the top: an idle daemon deliberates nothing

        return Task(run, self.core)


@dataclass(frozen=True)
class MemoryHandler:
    """`reset` and `replace` of what an agent remembers (Protocol 94)."""

    memory: Memory
    home: Path

    def begin(self, run: Run) -> MemoryChange:
        return MemoryChange(run, self.memory, self.home)


DELIBERATION = System(
    "deliberation",
    commands=(
        CommandType(
            DeliberateCommand,
            admit_deliberation,
            names=frozenset({"input_artifacts", "output_artifact_path", "config"}),
            inputs="input_artifacts",
            output="output_artifact_path",
            foresee=foresee_members,
        ),
        CommandType(
            MemoryCommand,
            admit_memory_change,
            names=frozenset({"role", "action", "base_sha256"}),
            given_by="administrator",
            audited_as="memory_changed",
        ),
    ),
    handlers=lambda core: {
        "deliberate": DeliberateHandler(core),
        "memory": MemoryHandler(core.memory, core.home.root),
    },
)
