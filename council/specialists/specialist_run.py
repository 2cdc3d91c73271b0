"""The frame of the runs that make and examine specialists: the start, the guard, the bench, and what they leave.

A step of such a run speaks through the bench, and its page grows with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel

from council.agents.directory import Directories
from council.agents.manifest import load_personas, seeds_folder
from council.artifacts.render import render
from council.budgets.prices import Price
from council.engine.records import Part
from council.engine.runs import Finish, Outcome, Run
from council.errors import CouncilError
from council.llm.base import Message
from council.llm.structured import Check
from council.specialists.commands import SpecialistRunCommand, require_language_model
from council.specialists.creation_gates import KnownAgent, refuse_unhealthy
from council.specialists.creation_page import account_of, build_page
from council.specialists.creation_prompts import SPEAKERS, system_of
from council.specialists.creation_state import CreationState
from council.specialists.specialist_registry import visible_to
from council.specialists.specialist_spec import SpecialistSpec
from council.systems import Core
from council.turns.account import Account
from council.turns.bench import Bench
from council.turns.equipment import Speaker
from council.turns.growing_page import GrowingPage
from council.turns.run_guardrails import Guard

T = TypeVar("T", bound=BaseModel)


class NoReply(CouncilError):
    """A model whose reply could not be used."""

    code = "no_reply"
    http_status = 502


class WorkStart(msgspec.Struct, frozen=True):
    """Recorded when the run starts: who speaks in it, with which models and prices, under which guard."""

    speakers: tuple[Speaker, ...]
    guard: Guard
    prices: dict[str, Price | None]


class SpecialistWork:
    """One command about a specialist being worked on (an engine Execution). Sub-classes do the work."""

    command: ClassVar[type[SpecialistRunCommand]]

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core.of_run(run)
        self._command = command = self.command.model_validate(run.header.command)
        self._user = core.principal_of(run).id
        self._page = GrowingPage(run, core.clock, lambda: self._rendered(None))
        self.state = CreationState(run.header, command.task)

    async def work(self) -> None:
        """Raises what a step raises, and RunPause until the person has decided."""
        run, core, state = self._run, self._core, self.state

        start = await run.step("start", self.begin, type=WorkStart, durable=False, part=Part("start"))
        state.model, state.prices = start.speakers[0].model, dict(start.prices)
        budget = self._command.budget
        async with core.bench(run, state, self._page, budget, start.guard, start.speakers) as (bench, _):
            bench.prices |= start.prices
            await self._work(bench, *start.speakers)

    async def _work(self, bench: Bench, *speakers: Speaker) -> None:
        raise NotImplementedError

    async def begin(self) -> WorkStart:
        """The start as it is recorded. Raises ConfigError for the offline engine."""
        models = self._core.models
        chain = models.chain(SPEAKERS[0], (), None)
        names = models.names(chain)
        require_language_model(names[0])
        speakers = tuple(Speaker(role, system_of(role), "", (), chain, names[0]) for role in SPEAKERS)
        guard, prices = self._core.guard_and_prices(self._run, self._command.task, names)
        return WorkStart(speakers, guard, prices)

    async def _object(
        self,
        bench: Bench,
        step: str,
        speaker: Speaker,
        messages: Sequence[Message],
        type: type[T],
        check: Check[T] | None = None,
    ) -> T:
        """The speaker's reply. Raises NoReply."""
        reply, fault = await bench.ask_object(step, speaker, messages, type, check)
        if reply is None:
            failure = bench.calls[-1].result.failure
            fix = (failure.fix if failure else "") or "try again, or set another model"
            raise NoReply(f"{speaker.role} gave no reply that could be used: {fault}.", fix=fix)
        return reply

    async def _ask_person(self, name: str, question: str) -> str:
        return await self.state.answered(self._run, name, question, self._core.settings.answer_timeout_s)

    async def _require_healthy(self, bench: Bench, spec: SpecialistSpec) -> None:
        """Raises CreationRefused where an agent or a tool that it needs is not there now."""

        async def healthy() -> bool:
            refuse_unhealthy(spec, self._agents(bench), bench.tools)
            return True

        await self._run.step("health", healthy, type=bool, part=Part("health"))

    def _agents(self, bench: Bench) -> tuple[KnownAgent, ...]:
        """The agents that this person can reach now."""
        core, user = self._core, self._user
        personas = load_personas(core.home.personas, seeds_folder(core.home, core.settings)).values()
        every = [*Directories([opened(core, bench) for opened in core.directories]).list(), *personas]
        needs = {one.role: one.spec.depends_on for one in visible_to(core.store, user)}
        return tuple(
            KnownAgent(
                one.id, one.purpose, (one.id, one.role, *one.aliases), one.is_trusted, one.owner == user,
                needs.get(one.id, ()),
            )
            for one in every
            if one.scope != "deliberation" and one.serves(user)
        )  # fmt: skip

    def conclude(self, finish: Finish) -> Outcome:
        state = self.state
        details: dict[str, Any] = {"plan": state.plan.plan_id} if state.plan is not None else {}
        return state.ending(
            state.status(finish),
            self._rendered(finish),
            error=finish.error,
            notes=(*state.notes(finish), *filter(None, [state.outcome])),
            details=details | ({"specialist": state.spec.role} if state.spec is not None else {}),
        )

    def account(self, finish: Finish | None) -> Account:
        return account_of(self.state, self._command.type, finish)

    def _rendered(self, finish: Finish | None) -> str:
        return self._core.redactor.redact(render(build_page(self.state, finish), self._run.output.path))
