"""Deliberations as a system: the commands `deliberate` and `memory`."""

from __future__ import annotations

from council.agents.memory import Memory
from council.commands.types import CommandType
from council.deliberation.commands import DeliberateCommand, MemoryCommand
from council.deliberation.deliberate_admission import admit_deliberation, foresee_members, models_to_ask
from council.deliberation.memory_change import MemoryChange, admit_memory_change, require_unchanged
from council.systems import LateHandler, System

DELIBERATION = System(
    "deliberation",
    commands=(
        CommandType(
            DeliberateCommand,
            admit_deliberation,
            names=frozenset({"input_artifacts", "output_artifact_path", "config"}),
            inputs="input_artifacts",
            output="output_artifact_path",
            readers=models_to_ask,
            foresee=foresee_members,
        ),
        CommandType(
            MemoryCommand,
            admit_memory_change,
            names=frozenset({"role", "action", "base_sha256"}),
            given_by="administrator",
            audited_as="memory_changed",
            foresee=lambda command, premises: require_unchanged(
                command, Memory(premises.home.session_states, premises.store)
            ),
        ),
    ),
    handlers=lambda core: {
        "deliberate": LateHandler("council.deliberation.task:Task", core),
        "memory": lambda run: MemoryChange(run, core.memory),
    },
)
