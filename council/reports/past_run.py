"""The work of a run done again over its recorded steps. Its page comes out byte for byte, whatever words this version would ask
in; its requests are rendered again, and checked against the recorded hashes. No model and no tool is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NoReturn, TypeVar, Unpack

import msgspec

from council.engine.outputs import PlacedOutput
from council.engine.receipts import ErrorRef
from council.engine.records import EPOCH, FORGOTTEN, OWN, Part
from council.engine.run_records import JournalEnd, RunRecords
from council.engine.runs import Execution, Finish, Handler, Run, Runs, StepOptions
from council.errors import CouncilError, RunNotFound
from council.events import Events
from council.llm.base import Message, Model, RequestOptions, TurnInfo, request_hash
from council.llm.cassette import CassetteCall, asked_call
from council.reports.timeline import value_in
from council.safety.second_opinion import Opinion


async def replay(records: RunRecords, handlers: Mapping[str, Handler]) -> bytes:
    """Raises RunNotFound for a run without an end or an artifact, UnknownType, JournalDamaged for an unreadable record."""
    committed = records.committed
    run_id = records.header.run_id
    if committed is None or not records.recorded("finish"):
        raise RunNotFound(f"run {run_id} has not ended.", fix="`council status` shows how far it is")
    if not records.header.output_path or not committed.files:
        raise RunNotFound(f"run {run_id} left no artifact.", fix="`council show` prints its receipt")
    execution = Runs(handlers).begin(PastRun(records))
    finish = records.result("finish", Finish)
    await work_again(execution, finish.error)
    outcome = execution.conclude(finish)
    assert outcome.artifact is not None
    return outcome.artifact


class PastRun(Run):
    """A run of recorded steps alone. Where its artifact went nothing is looked at and nothing written."""

    def __init__(self, records: RunRecords) -> None:
        output = PlacedOutput(records.header, records.committed) if records.header.output_path else None
        super().__init__(records, Events(), output)


async def work_again(execution: Execution, ended_with: ErrorRef | None) -> None:
    """Does the work of a run over its recorded steps, as far as they go. Raises an error that it did not end with."""
    try:
        await execution.work()
    except JournalEnd:
        pass  # the run ended before this step: the rest is what it left
    except CouncilError as error:
        if ended_with is None or ended_with.code != error.code:
            raise


T = TypeVar("T")


class CannotRender(CouncilError):
    """The requests of a run cannot be told any more."""

    code = "cannot_render"
    http_status = 409


async def requests_of(records: RunRecords, handlers: Callable[[Model], Mapping[str, Handler]]) -> list[CassetteCall]:
    """All calls of a run, in the order of its work, without what came of them. `handlers` are those that ask a given model.
    Raises CannotRender when another version of Council asked in other words, UnknownType, JournalDamaged for a record that
    cannot be read."""
    header = records.header
    if header.epoch != EPOCH:
        raise CannotRender(
            f"run {header.run_id} was begun by a version of Council with journal epoch {header.epoch}; "
            f"this one has {EPOCH} and uses other prompts.",
            fix="use the version that made it",
        )
    noting = _NotingModel()
    run = _NotingRun(records)
    execution = Runs(handlers(noting)).begin(run)
    finish = records.result("finish", Finish) if records.recorded("finish") else Finish("")
    await work_again(execution, finish.error)
    return run.asked


class _Question(Exception):
    """Carries a call out of where it would have been made."""

    def __init__(self, call: CassetteCall) -> None:
        super().__init__()
        self.call = call


class _NotingModel:
    """A model that only hands on what it is asked."""

    name = "noting"
    context_tokens = 1  # never looked at: the size of the window is a recorded step

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> NoReturn:
        raise _Question(asked_call("", "", asked["system"], messages, asked.get("info") or TurnInfo()))

    async def aclose(self) -> None:
        """Nothing to close."""


class _NotingRun(PastRun):
    def __init__(self, records: RunRecords) -> None:
        super().__init__(records)
        self._recorded = {step.name: step for step in records.steps()}
        self.asked: list[CassetteCall] = []

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], **how: Unpack[StepOptions]) -> T:
        if request := how.get("request"):
            known = self._recorded.get(name)
            if known is not None and known.request not in ("", request):
                what = f"step {name} of run {self.id} was asked in words that this version of Council does not use any more."
                raise CannotRender(what, fix="use the version that asked it", step=name)
            try:
                await fn()
            except _Question as noted:
                self.asked.append(msgspec.structs.replace(noted.call, step=name, request=request))
        return await super().step(name, fn, type=type, **how)

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], part: Part = OWN) -> T:
        opinion = value_in(self._recorded[name].answer, Opinion) if name in self._recorded else None
        if opinion is not None:
            try:
                await fn()
            except _Question as noted:
                request = request_hash(opinion.model, noted.call.system, noted.call.messages or ())
                if opinion.asked in (request, FORGOTTEN):
                    self.asked.append(msgspec.structs.replace(noted.call, step=name, request=request))
        return await super().ephemeral(name, fn, type=type, part=part)
