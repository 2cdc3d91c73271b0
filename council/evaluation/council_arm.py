"""A question before the council: a real run in the evaluation's own home, begun by a drop as every run is.

The run's journal then tells what members held round by round and what was decided. An answer without the form that the
question asks for is asked for again, as a single one's is. That is done at most twice, and the answer is never found by
searching.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Literal

import msgspec

from council.app import App
from council.deliberation.deliberate import Deliberation
from council.deliberation.prompts import context_message
from council.deliberation.task import Task
from council.engine.receipts import Receipt
from council.errors import CouncilError, CouncilSilent
from council.evaluation.meter import READER
from council.evaluation.questions import Question
from council.evaluation.self_consistency import NO_ANSWER, SAID_CHARS, SYSTEM, Answer, Ballot, misfits, read_ballot
from council.events import CommandAnswer, CommandRefusal, Event, RunEnd, RunWait
from council.llm.base import Message, Model, Reply, TurnInfo
from council.llm.structured import Reading, ReplyProblem, repair_turns
from council.reports.past_run import PastRun, work_again
from council.settings.table import ProtocolName
from council.storage.command_drop import drop
from council.turns.fencing import Fencer

DOCUMENTS = "documents"  # the folder of the evaluation's home that holds what questions name
_NO_FORM = ReplyProblem("the decision's answer does not have the form that the task asks for", "answer")
_RESTATE = """\
Above stands a question that a council deliberated on, and below its decision. Say as one JSON object what the decision \
answers, and nothing else: {"answer": "…", "confidence": 0.5}. answer: the decision's answer in the form that the task asks \
for; not your own. confidence: the decision's own, from 0 to 1."""


class CouncilFailed(CouncilError):
    """A run that gave no answer for a reason that is not the question's: the evaluation stops, and can go on."""

    code = "council_failed"


class MemberAnswer(msgspec.Struct, frozen=True):
    """The position of a member after a round. `answer` is as `Question.read` gives it, empty for none."""

    role: str
    round: int
    answer: str
    confidence: float


class CouncilAnswer(msgspec.Struct, frozen=True):
    """The council's answer. `restated`: it was asked for again. `stopped`: why its rounds ended early."""

    run_id: str
    status: Literal["succeeded", "degraded", "failed"]
    answer: Ballot
    held: tuple[MemberAnswer, ...] = ()
    rounds: int = 0
    restated: bool = False
    stopped: str = ""


class Deliberations:
    """The council of one evaluation. Made before the home is served, so that no end of a run is missed."""

    def __init__(self, app: App, protocol: ProtocolName, max_rounds: int, model: Model) -> None:
        """`model` is asked again where a decision has not the form of an answer."""
        self._app = app
        self._protocol = protocol
        self._max_rounds = max_rounds
        self._model = model
        self._ended: dict[str, asyncio.Future[str]] = {}
        self.out_of_budget: Callable[[str], None] = lambda why: None
        app.events.subscribe(self._on_event)

    async def decide(self, question: Question) -> CouncilAnswer:
        """Raises CouncilFailed, and ModelError from a repair turn."""
        bound = self._app.receipts.bound(question.ref)  # an earlier process may have begun it
        receipt = self._app.receipts.read(bound.run_id) if bound is not None else None
        if receipt is None or receipt.status not in ("succeeded", "degraded"):
            receipt = await self._deliberated(question)
        deliberation, material = await self._told(receipt)
        if receipt.status not in ("succeeded", "degraded"):
            failures = [turn.result.failure for turn in deliberation.transcript.turns()]
            kinds = {failure.kind for failure in failures if failure is not None}
            error = receipt.error
            if error is None or error.code != CouncilSilent.code or not kinds <= NO_ANSWER:
                why = f"{error.code}: {error.message}" if error is not None else receipt.status
                raise CouncilFailed(f"run {receipt.run_id} gave no answer: {why}", fix=_fix_of(receipt))
            # It said nothing because of what it was asked.
            return CouncilAnswer(receipt.run_id, "failed", Ballot(fault=error.message))
        answer, restated = await self._read(question, deliberation, material)
        stances = [(turn.role, turn.round, turn.stance) for turn in deliberation.transcript.turns() if turn.stance]
        held = [
            MemberAnswer(role, round_no, question.read(stance.position) or "", stance.confidence)
            for role, round_no, stance in stances
        ]
        ending = deliberation.transcript.ending
        return CouncilAnswer(
            receipt.run_id,
            "succeeded" if receipt.status == "succeeded" else "degraded",
            answer,
            held=tuple(held),
            rounds=receipt.rounds,
            restated=restated,
            stopped=ending.why if ending else "",
        )

    async def material(self, decided: CouncilAnswer) -> Message:
        """The material that members read first: the task and its documents. Raises CouncilFailed."""
        receipt = self._app.receipts.read(decided.run_id)
        if receipt is None:
            raise CouncilFailed(f"the receipt of run {decided.run_id} is gone.", fix="start a new evaluation")
        return (await self._told(receipt))[1]

    async def _deliberated(self, question: Question) -> Receipt:
        name = f"{question.ref}.json"
        ended = self._end_of(name)
        if not (self._app.home.commands / name).exists():  # else an earlier process dropped it, and its run goes on
            command = {
                "id": question.ref,
                "session": question.ref,  # a lane of its own: nobody remembers another question
                "task_description": question.task,
                "input_artifacts": [f"{DOCUMENTS}/{path}" for path in question.documents],
                "output_artifact_path": f"artifacts/{question.ref}.md",
                "config": {"protocol": self._protocol, "max_rounds": self._max_rounds},
            }
            drop(self._app.home.commands, name, json.dumps(command).encode())
        run_id = await ended
        receipt = self._app.receipts.read(run_id)
        if receipt is None:
            raise CouncilFailed(f"{question.id}: run {run_id} left no receipt.", fix="continue with --resume")
        return receipt

    def _end_of(self, name: str) -> asyncio.Future[str]:
        return self._ended.setdefault(name, asyncio.get_running_loop().create_future())

    def _on_event(self, event: Event) -> None:
        match event:
            case RunEnd(file=file) | CommandAnswer(file=file):
                if not (ended := self._end_of(file)).done():
                    ended.set_result(event.run_id)
            case CommandRefusal():
                if not (ended := self._end_of(event.file)).done():
                    ended.set_exception(CouncilFailed(f"{event.file}: {event.error}", fix=event.fix))
            case RunWait(reason="budget"):
                self.out_of_budget(event.error)

    async def _told(self, receipt: Receipt) -> tuple[Deliberation, Message]:
        """The deliberation of an ended run, from its journal, and the first message of every member. No model is asked."""
        journal = self._app.ledger.journal(receipt.run_id)
        header = journal.header
        task = self._app.handlers[header.type](PastRun(journal))
        assert isinstance(task, Task)
        await work_again(task, receipt.error)
        if task.deliberation is None:  # it did not even begin
            reason = f"{receipt.error.code}: {receipt.error.message}" if receipt.error else receipt.status
            raise CouncilFailed(f"run {receipt.run_id} gave no answer: {reason}", fix=_fix_of(receipt))
        fencer, transcript = Fencer(bytes.fromhex(header.secret)), task.deliberation.transcript
        material = context_message("", transcript.task, transcript.inputs, fencer, day=header.day)
        return task.deliberation, material

    async def _read(self, question: Question, deliberation: Deliberation, material: Message) -> tuple[Ballot, bool]:
        closings = deliberation.transcript.closings
        closing = next((each.result for each in closings if each.result.failure is None), None)
        if closing is None:
            failures = [each.result.failure.message for each in closings if each.result.failure]
            return Ballot(fault="; ".join(failures) or "nobody wrote a decision"), False
        settled = deliberation.transcript.settled
        record = settled.record if settled is not None else None
        answer = question.read(record.answer) if record is not None else None
        if record is not None and answer is not None:
            return Ballot(answer, record.confidence, record.answer[:SAID_CHARS]), False
        info = TurnInfo(READER, "other", 0, 0, question.task)
        messages = (material, Message("user", _RESTATE))
        check = partial(misfits, question)

        async def ask(turn: int, request: tuple[Message, ...]) -> Reply:
            return await self._model.generate(request, system=SYSTEM, schema=Answer.model_json_schema(), info=info)

        first: Reading[Answer] = Reading(None, "none", (_NO_FORM,))
        asking = repair_turns(first, closing, messages, Answer, ask, check=check)
        return await read_ballot(question, asking, closing.text[:SAID_CHARS]), True


def _fix_of(receipt: Receipt) -> str:
    first = f"{receipt.error.fix}; " if receipt.error and receipt.error.fix else ""
    return f"{first}then continue with --resume"
