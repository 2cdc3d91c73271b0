"""Deliberations as a system: the commands `deliberate` and `memory`, and what does their work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from council.agents.manifest import seeds_folder
from council.agents.memory import Memory
from council.budgets.spend import seconds_to_midnight
from council.commands.types import CommandType
from council.deliberation.admission import admit_deliberation
from council.deliberation.commands import DeliberateCommand, MemoryCommand
from council.deliberation.members import CouncilSetup
from council.deliberation.memory_change import MemoryChange, admit_memory_change
from council.deliberation.task import Task
from council.engine.runs import Handler, Run
from council.systems import Core, System
from council.turns.equipment import RequestLimits
from council.turns.guarding import Guard


@dataclass(frozen=True)
class DeliberateHandler:
    """Protocol 95's task: deliberate and leave a decision."""

    setup: CouncilSetup

    def begin(self, run: Run) -> Task:
        return Task(run, self.setup)


@dataclass(frozen=True)
class MemoryHandler:
    """`reset` and `replace` of what an agent remembers (Protocol 94)."""

    memory: Memory
    home: Path

    def begin(self, run: Run) -> MemoryChange:
        return MemoryChange(run, self.memory, self.home)


def _handlers(core: Core) -> Mapping[str, Handler]:
    settings = core.settings
    setup = CouncilSetup(
        home=core.home.root,
        root=core.root,
        personas=core.home.personas,
        seeds=seeds_folder(core.home, settings),
        memory=core.memory,
        models=core.spending,
        seconds_to_midnight=partial(seconds_to_midnight, core.clock),
        tools=core.tools,
        streams=settings.streaming == "on",
        native_tools=settings.native_tools == "on",
        limits=RequestLimits(
            max_requests_per_reply=settings.max_requests_per_reply,
            max_requests=settings.max_requests_per_task,
            max_context_bytes=settings.max_context_bytes_per_task,
        ),
        clock=core.clock,
        guard=Guard(settings.guardrails, settings.scope_topics),
        redactor=core.redactor,
    )
    return {"deliberate": DeliberateHandler(setup), "memory": MemoryHandler(core.memory, core.home.root)}


DELIBERATION = System(
    "deliberation",
    commands=(
        CommandType(
            DeliberateCommand,
            admit_deliberation,
            names=frozenset({"input_artifacts", "output_artifact_path", "config"}),
        ),
        CommandType(
            MemoryCommand,
            admit_memory_change,
            names=frozenset({"role", "action", "base_sha256"}),
            given_by="administrator",
            audited_as="memory_changed",
        ),
    ),
    handlers=_handlers,
)
