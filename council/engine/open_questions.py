"""Questions of runs to a person, and the command `answer`.

A question and its answer are two steps of the run that waits: `NAME/question` and `NAME/answer`. So a kill loses neither,
and nothing is asked twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import msgspec
from pydantic import Field, StrictStr

from council.commands.models import RunControl
from council.commands.types import Admission, CommandType
from council.engine import statements as sql
from council.engine.ledger import Ledger
from council.engine.records import FileIdentity, Part
from council.engine.run_records import JournalEnd, RunRecords
from council.engine.runs import ANSWER, ActiveRun, ControlAnswer, Premises, Run, RunPause
from council.errors import CommandInvalid, CouncilError
from council.ids import Principal
from council.storage.reader import Looking
from council.typed_json import decode_json

QUESTION_ENDING, ANSWER_ENDING = "/question", "/answer"
MAX_ANSWER_CHARS = 20_000


class PersonAnswer(msgspec.Struct, frozen=True):
    """The words of the person, who they are, and the drop that brought them."""

    text: str
    by: str
    drop: str


async def ask_person(run: Run, name: str, question: str, timeout_s: float) -> str:
    """The person's answer to the question `name` of this run. Raises RunPause until there is one."""

    async def words() -> str:
        return question

    asked = await run.step(f"{name}{QUESTION_ENDING}", words, type=str, part=Part("question"))
    answer = run.value(f"{name}{ANSWER_ENDING}", PersonAnswer)
    if answer is not None:
        return answer.text
    if run.is_closed:
        raise JournalEnd(name)
    user = run.header.command.get("user")
    as_whom = f" --user {user}" if user else ""
    raise RunPause(ANSWER, timeout_s, CouncilError(f'{asked} (To answer: `council answer {run.id} "…"{as_whom}`.)'))


def open_questions(records: RunRecords) -> dict[str, str]:
    """The questions of a run that nobody has answered, by their names, the oldest first."""
    names = [step.name for step in records.steps() if step.name.endswith(QUESTION_ENDING)]
    return {
        name: records.result(f"{name}{QUESTION_ENDING}", str)
        for name in (name.removesuffix(QUESTION_ENDING) for name in names)
        if not records.recorded(f"{name}{ANSWER_ENDING}")
    }


def answers_in(run: Run) -> list[str]:
    """The person's answers to questions of a run, the newest last."""
    steps = [step for step in run.steps() if step.name.endswith(ANSWER_ENDING)]
    return [decode_json(step.answer, PersonAnswer).text for step in steps]


def run_to_answer(store: Looking, lane: str, drop: str) -> str:
    """The run of a lane that has a question open, or that this drop has answered before; empty for none."""

    def look(tx: Any) -> str:
        for run_id, run in tx.execute(sql.OPEN_IN_LANE, (lane,)).fetchall():
            rows = tx.execute(sql.RESULTS, (run,)).fetchall()
            answers = {name: out for name, out in rows if name.endswith(ANSWER_ENDING)}
            if any(decode_json(out, PersonAnswer).drop == drop for out in answers.values()):
                return str(run_id)
            asked = [name.removesuffix(QUESTION_ENDING) for name, _ in rows if name.endswith(QUESTION_ENDING)]
            if any(f"{name}{ANSWER_ENDING}" not in answers for name in asked):
                return str(run_id)
        return ""

    return str(store.read(look))


class AnswerCommand(RunControl):
    """Answers the question for which a run waits."""

    type: Annotated[Literal["answer"], Field(description="What kind of command this is.")]
    answer: Annotated[
        StrictStr,
        Field(min_length=1, max_length=MAX_ANSWER_CHARS, pattern=r"\S", description="The answer, in your own words."),
    ]


def admit_answer(command: AnswerCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a run that has ended."""
    row = premises.store.read(lambda tx: tx.execute(sql.ENDED_NS, (command.run,)).fetchone())
    if row is None or row[0] is not None:
        fix = "`council status` shows the runs that wait for an answer"
        raise CommandInvalid(f"the run {command.run!r} is not active.", fix=fix, field="run")
    return Admission(f"answer {command.run}", run_id=command.run)


def foresee_answer(command: AnswerCommand, premises: Premises) -> None:
    """Raises CommandInvalid for a run that asks nothing now."""
    if not open_questions(Ledger(premises.store).journal(command.run)):
        raise _asks_nothing(command.run)


def _asks_nothing(run_id: str) -> CommandInvalid:
    fix = "`council status` shows the runs that wait for an answer"
    return CommandInvalid(f"the run {run_id!r} asks nothing now.", fix=fix, field="run")


ANSWERING = CommandType(AnswerCommand, admit_answer, names=frozenset({"run"}), foresee=foresee_answer)


class ActiveRuns(Protocol):
    """The runs of the daemon, as a control command may act on them."""

    active: dict[str, ActiveRun]

    async def cancel(self, run_id: str, reason: str) -> bool: ...

    def wake(self, run: ActiveRun) -> None: ...

    def ask_for(self, run: ActiveRun) -> None: ...


@dataclass(frozen=True)
class AnswerHandler:
    """Obeys `answer`."""

    runs: ActiveRuns

    async def __call__(self, command: AnswerCommand, principal: Principal, file: FileIdentity) -> ControlAnswer:
        await self.record(command.run, command.answer, principal, file.drop)
        return ControlAnswer()

    async def record(self, run_id: str, words: str, principal: Principal, drop: str) -> None:
        """Records the answer to the oldest open question of a run, and wakes it; once, if the same drop comes again. Raises
        CommandInvalid where nothing is asked, and StorageFailed."""
        run = self.runs.active.get(run_id)
        steps = run.steps() if run is not None else ()
        answers = [step for step in steps if step.name.endswith(ANSWER_ENDING)]
        if any(decode_json(step.answer, PersonAnswer).drop == drop for step in answers):
            return
        asked = open_questions(run.journal) if run is not None and not run.is_closed else {}
        if run is None or not asked:
            raise _asks_nothing(run_id)
        name = next(iter(asked))
        answer = PersonAnswer(words, principal.id, drop)
        await run.put(f"{name}{ANSWER_ENDING}", answer, type=PersonAnswer, part=Part("answer"))
        self.runs.wake(run)
        self.runs.ask_for(run)  # a process that drains this drop and leaves holds the run back
