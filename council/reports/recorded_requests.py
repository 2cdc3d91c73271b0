"""The requests of a recorded run: rendered again from its journal, and checked against the recorded hashes.

The handler does the run's work once more over the recorded steps, as for a replay of its page. The call of a step that asked a
model is begun before the step is read. Its model only notes what it is asked. Nothing is sent anywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar, Unpack

from council.engine.journal import Journal, StepOptions
from council.engine.records import EPOCH, FORGOTTEN, OWN, Part
from council.engine.runs import Finish, Handler, Runs
from council.errors import CouncilError
from council.llm.base import Message, Model, RequestOptions, TurnInfo, request_hash
from council.reports.past_run import PastRun, work_again
from council.reports.timeline import value_in
from council.safety.second_opinion import Opinion

T = TypeVar("T")


class CannotRender(CouncilError):
    """The requests of a run cannot be told any more."""

    code = "cannot_render"
    http_status = 409


@dataclass(frozen=True)
class AskedCall:
    """One request of a run. `request` is its hash. `recorded` False: the run ended before an answer was recorded.
    `is_checked` False: the hash was forgotten with words that stood in it."""

    step: str
    request: str
    system: str
    messages: tuple[Message, ...]
    info: TurnInfo
    recorded: bool
    is_checked: bool


async def requests_of(journal: Journal, handlers: Callable[[Model], Mapping[str, Handler]]) -> list[AskedCall]:
    """All requests of a run, in the order of its work. `handlers` are those that ask a given model.

    Raises CannotRender when another version of Council asked in other words, UnknownType, JournalDamaged for a blob that is gone.
    """
    header = journal.header
    if header.epoch != EPOCH:
        raise CannotRender(
            f"run {header.run_id} was begun by a version of Council with journal epoch {header.epoch}; "
            f"this one has {EPOCH} and uses other prompts.",
            fix="use the version that made it",
        )
    noting = _NotingModel()
    run = _NotingRun(journal)
    execution = Runs(handlers(noting)).begin(run)
    finish = journal.result("finish", Finish) if journal.recorded("finish") else Finish("")
    await work_again(execution, finish.error)
    return run.asked


class _Question(Exception):
    """Carries a request out of the call that would have made it."""

    def __init__(self, system: str, messages: Sequence[Message], info: TurnInfo) -> None:
        super().__init__()
        self.system = system
        self.messages = tuple(messages)
        self.info = info


class _NotingModel:
    """A model that only hands on what it is asked."""

    name = "noting"
    context_tokens = 1  # never looked at: the size of the window is a recorded step

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> NoReturn:
        raise _Question(asked["system"], messages, asked.get("info") or TurnInfo())

    async def aclose(self) -> None:
        """Nothing to close."""


class _NotingRun(PastRun):
    """A run of recorded steps that notes what each one asked."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._recorded = {step.name: step for step in journal.steps()}
        self.asked: list[AskedCall] = []

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], **how: Unpack[StepOptions]) -> T:
        if request := how.get("request"):
            known = self._recorded.get(name)
            if known is not None and known.request not in ("", request):
                raise CannotRender(
                    f"step {name} of run {self.id} was asked in words that this version of Council does not use any more.",
                    fix="use the version that asked it",
                    step=name,
                )
            try:
                await fn()
            except _Question as noted:
                checked = known is None or known.request == request
                call = AskedCall(name, request, noted.system, noted.messages, noted.info, known is not None, checked)
                self.asked.append(call)
        return await super().step(name, fn, type=type, **how)

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], part: Part = OWN) -> T:
        opinion = value_in(self._recorded[name].answer, Opinion) if name in self._recorded else None
        if opinion is not None:
            try:
                await fn()
            except _Question as noted:
                request = request_hash(opinion.model, noted.system, noted.messages)
                if opinion.asked in (request, FORGOTTEN):
                    checked = opinion.asked == request
                    self.asked.append(AskedCall(name, request, noted.system, noted.messages, noted.info, True, checked))
        return await super().ephemeral(name, fn, type=type, part=part)
