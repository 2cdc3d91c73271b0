"""A system as a newcomer would write one: two commands, a tool, a table, a companion, an agent that is asked. One value,
`SAMPLE`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from council.agents.manifest import load_personas, require_roles
from council.commands.models import BudgetConfig, CommandModel, ControlBase, RunBase
from council.commands.types import Admission, CommandType
from council.engine.records import FileIdentity
from council.engine.runs import ANSWER, ControlAnswer, Finish, Outcome, Premises, Run, RunPause
from council.errors import CommandInvalid, CouncilError
from council.ids import Principal
from council.llm.base import Message, TurnInfo
from council.storage.store import Store, Tx
from council.systems import Core, System
from council.tools.tool import Arguments, Tool, ToolContext, ToolResult
from council.turns.asker import Asker
from council.turns.equipment import Speaker

_ANSWER_S = 30 * 86_400.0  # far more than max_wait_s
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
    outcome: StrictStr = ""
    action: StrictStr = ""
    remarks: tuple[Remark, ...] = ()


class RingCommand(ControlBase):
    """Rings a bell so many times."""

    type: Annotated[Literal["ring"], Field(description="What kind of command this is.")]
    times: Annotated[int, Field(ge=1, le=3)]
    for_whom: StrictStr = "nobody"


def admit_note(command: NoteCommand, premises: Premises) -> Admission:
    if (premises.home.root / f"no-{command.about}").exists():
        raise CommandInvalid(f"`about` is {command.about!r}, of which nothing is noted.", fix="choose", field="about")
    require_roles(load_personas(premises.home.personas), ["AUDITOR"])
    return Admission(f"A note: {command.words}", f"artifacts/{command.about}.md")


def admit_ring(command: RingCommand, premises: Premises) -> Admission:
    return Admission(f"ring {command.times} times for {command.for_whom}")


@dataclass
class Noting:
    """Asks the auditor for a remark, and a person where the note is a question. Then keeps the note."""

    run: Run
    core: Core
    remark: str = ""

    async def work(self) -> None:
        command = NoteCommand.model_validate(self.run.header.command)
        models, manifest = self.core.models, load_personas(self.core.home.personas)["AUDITOR"]
        chain = models.chain(manifest.role, manifest.model, None)
        auditor = Speaker(manifest.role, manifest.instructions, "", (), chain, models.names(chain)[0])
        run_models = models.models_for(self.run, BudgetConfig(), auditor.model)
        equipment = self.core.equipment(self.run, run_models, lambda one: one.models, [auditor])
        question = (Message("user", f"One remark on this note: {command.words}"),)
        info = TurnInfo(auditor.role, "turn", task=command.words)
        reply = await Asker(self.run, equipment, lambda: None).ask("remark", auditor, question, info)
        self.remark = reply.text
        if command.words.endswith("?"):
            self.remark = await self.run.step("answer", self.answer, type=str)

        def keep(tx: Tx) -> int:
            from tests.sample_tables import sample_notes  # not at the top: it loads SQLAlchemy

            sample_notes.create(tx.core, checkfirst=True)
            row = {"run_id": self.run.id, "about": command.about, "words": command.words}
            tx.core.execute(sample_notes.insert().values(row))
            return len(command.words)

        await self.run.effect("noted", keep, type=int)

    async def answer(self) -> str:
        """Raises RunPause until a person has answered, in a file."""
        file = self.core.home.root / "answer.txt"
        if not file.exists():
            raise RunPause(ANSWER, _ANSWER_S, CouncilError("nobody has answered yet.", fix="write answer.txt"))
        return await asyncio.to_thread(file.read_text)

    def conclude(self, finish: Finish) -> Outcome:
        if finish.error is not None or finish.cancelled:
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error)
        command = NoteCommand.model_validate(self.run.header.command)
        said = "".join(f"- {remark.said} ({', '.join(remark.by)})\n" for remark in command.remarks)
        return Outcome("succeeded", f"# {command.about}\n\n{command.words}\n\n{said}\n{self.remark}\n".encode())


@dataclass(frozen=True)
class RingHandler:
    bell: Path

    async def __call__(self, command: RingCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        await asyncio.to_thread(self.bell.write_text, "ding" * command.times)
        return ControlAnswer((f"Rung by {principal.id}.",))


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
    handlers=lambda core: {"note": lambda run: Noting(run, core.of_run(run))},
    controls=lambda core: {"ring": RingHandler(core.home.root / ".council" / "bell")},
    tools=lambda core: [count_notes(core.store)],
    companions=_companions,
    tables="tests.sample_tables",
)
