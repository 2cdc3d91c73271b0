"""A system as a newcomer would write one: two commands, a tool, a table, a companion. One value, `SAMPLE`.

The agent that it asks is to stand in `Noting.work` once a room offers one agent's turn to every system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from council.commands.models import CommandModel, ControlBase, RunBase
from council.commands.types import Admission, CommandType
from council.engine.records import FileIdentity
from council.engine.runs import Finish, Outcome, Premises, Run
from council.errors import CommandInvalid, CouncilError
from council.ids import Principal
from council.storage.store import Store, Tx
from council.systems import Core, System
from council.tools.tool import Arguments, Tool, ToolContext, ToolResult

_TABLE = (
    "CREATE TABLE IF NOT EXISTS sample_notes (run_id TEXT PRIMARY KEY, about TEXT NOT NULL, chars INTEGER NOT NULL)"
)
_KEEP = "INSERT INTO sample_notes (run_id, about, chars) VALUES (?, ?, ?)"
_COUNT = "SELECT count(*) FROM sample_notes WHERE about = ?"


class Remark(CommandModel):
    """Words within words."""

    said: StrictStr
    by: tuple[StrictStr, ...] = ()


class NoteCommand(RunBase):
    """Notes something about a subject."""

    type: Annotated[Literal["note"], Field(description="What kind of command this is.")]
    about: Annotated[StrictStr, Field(pattern=r"^[a-z]+$")]
    words: StrictStr
    remarks: tuple[Remark, ...] = ()


class RingCommand(ControlBase):
    """Rings a bell so many times."""

    type: Annotated[Literal["ring"], Field(description="What kind of command this is.")]
    times: Annotated[int, Field(ge=1, le=3)]
    for_whom: StrictStr = "nobody"


def admit_note(command: NoteCommand, premises: Premises) -> Admission:
    if (premises.home.root / f"no-{command.about}").exists():
        raise CommandInvalid(f"`about` is {command.about!r}, of which nothing is noted.", fix="choose", field="about")
    return Admission(f"A note: {command.words}", f"artifacts/{command.about}.md")


def admit_ring(command: RingCommand, premises: Premises) -> Admission:
    return Admission(f"ring {command.times} times for {command.for_whom}")


@dataclass(frozen=True)
class Noting:
    run: Run

    async def work(self) -> None:
        command = NoteCommand.model_validate(self.run.header.command)

        def keep(tx: Tx) -> int:
            tx.execute(_TABLE)
            tx.execute(_KEEP, (self.run.id, command.about, len(command.words)))
            return len(command.words)

        await self.run.effect("noted", keep, type=int)

    def conclude(self, finish: Finish) -> Outcome:
        if finish.error is not None or finish.cancelled:
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error)
        command = NoteCommand.model_validate(self.run.header.command)
        said = "".join(f"- {remark.said} ({', '.join(remark.by)})\n" for remark in command.remarks)
        return Outcome("succeeded", f"# {command.about}\n\n{command.words}\n\n{said}".encode())


class NoteHandler:
    def begin(self, run: Run) -> Noting:
        return Noting(run)


@dataclass(frozen=True)
class RingHandler:
    bell: Path

    async def act(self, command: RingCommand, principal: Principal, file: FileIdentity) -> Sequence[str]:
        await asyncio.to_thread(self.bell.write_text, "ding" * command.times)
        return (f"Rung by {principal.id}.",)


class CompanionFailed(CouncilError):
    code = "companion_failed"


@dataclass(frozen=True)
class Heart:
    """Beats until it finds a file that stops it; the file says why."""

    home: Path
    name: str = "heart"

    async def run(self) -> None:
        while True:
            (self.home / ".council" / "heart").write_text("beats")
            await asyncio.sleep(0.02)
            stopped = self.home / "stop-heart"
            if stopped.exists():
                raise CompanionFailed(stopped.read_text())


class Subject(Arguments):
    about: Annotated[str, Field(max_length=64, description="a subject")]


def count_notes(store: Store) -> Tool:
    async def run(arguments: Subject, /, *, context: ToolContext) -> ToolResult:
        about = arguments.about
        rows = store.read(lambda tx: tx.execute(_COUNT, (about,)).fetchone())
        return ToolResult(ok=True, title=f"COUNT_NOTES({about})", text=f"{rows[0]} notes on {about}")

    spelling = "[ORCHESTRATOR_REQUEST: COUNT_NOTES(apples)]"
    return Tool("COUNT_NOTES", "Counts the notes on a subject.", Subject, "read", (spelling,), run)


def _companions(core: Core) -> Sequence[Heart]:
    return [Heart(core.home.root)]


SAMPLE = System(
    "sample",
    commands=(
        CommandType(NoteCommand, admit_note, names=frozenset({"about"}), audited_as="note_taken"),
        CommandType(RingCommand, admit_ring, given_by="administrator"),
    ),
    handlers=lambda core: {"note": NoteHandler()},
    controls=lambda core: {"ring": RingHandler(core.home.root / ".council" / "bell")},
    tools=lambda core: [count_notes(core.store)],
    companions=_companions,
)
