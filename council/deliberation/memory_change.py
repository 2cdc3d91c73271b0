"""A `memory` command: a run in its lane's turn that changes one agent's memory and leaves a receipt only. Needs no
model."""

from __future__ import annotations

import msgspec

from council.agents.manifest import load_personas, seeds_folder
from council.agents.memory import Memory
from council.agents.session_file import RememberedTask, Session, session_bytes
from council.commands.types import Admission
from council.deliberation.commands import MemoryCommand
from council.engine.runs import Finish, Outcome, Premises, Run
from council.errors import CommandInvalid, CouncilError, PersonaError
from council.ids import sha256_hex


class MemoryChanged(CouncilError):
    code = "memory_changed"
    http_status = 409


def admit_memory_change(command: MemoryCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a role that has neither persona nor memory."""
    home = premises.home
    memory = Memory(home.session_states, premises.store)
    try:
        known = load_personas(home.personas, seeds_folder(home, premises.settings))
    except PersonaError as error:
        raise CommandInvalid(error.message, fix=error.fix, field="role") from error
    if command.role not in known and not memory.path(command.role, command.session).exists():
        message = f"`role` is {command.role}: it has no persona here and no memory in lane {command.session}."
        raise CommandInvalid(message, fix=f"use one of {', '.join(sorted(known))}", field="role")
    return Admission(f"Memory of {command.role}, lane {command.session}: {command.action}")


def require_unchanged(command: MemoryCommand, memory: Memory) -> None:
    path = memory.path(command.role, command.session)
    current = sha256_hex(session_bytes(path)) if path.is_file() else ""
    if command.base_sha256 not in (None, current):
        fix = f"edit it again: `council memory edit {command.role} --lane {command.session}`"
        raise MemoryChanged(f"the memory of {command.role} changed after it was opened for editing.", fix=fix)


class _Before(msgspec.Struct, frozen=True):
    """Recorded, so that a resumed run says the same. `damage` as in `LoadedSession`."""

    damage: str


class MemoryChange:
    def __init__(self, run: Run, memory: Memory) -> None:
        self._run = run
        self._memory = memory
        self._command = MemoryCommand.model_validate(run.header.command)
        self._before = _Before("")

    async def work(self) -> None:
        command = self._command

        async def look() -> _Before:
            require_unchanged(command, self._memory)
            return _Before(self._memory.load(command.role, command.session).damage)

        self._before = await self._run.step("before", look, type=_Before)

    def conclude(self, finish: Finish) -> Outcome:
        notes = (f"Memory: {self._before.damage}.",) if self._before.damage else ()
        if finish.error is not None or finish.cancelled:
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error, notes=notes)
        before = self._memory.load(self._command.role, self._command.session).session
        known = {task.run_id: task for task in before.tasks}
        tasks = []
        for answer in self._command.answers or ():
            task = known.get(answer.run_id) or RememberedTask(
                answer.run_id, "Note", "noted", finish.at, "", rehearsed=False
            )
            title = answer.title or task.title
            tasks.append(msgspec.structs.replace(task, title=title, answer=answer.answer))
        after = Session(before.role, before.lane, tuple(tasks))
        outputs = self._memory.replaced(before, after, self._run.id)
        return Outcome("succeeded", None, tuple(outputs), self._memory.copies(outputs), notes=notes)
