"""`BareCore` and `Core` are what each system gets, `System` what it brings: one value in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from typing import Any, Protocol

import msgspec

from council.agents.directory import Directory
from council.agents.memory import Memory
from council.audit.trail import Trail
from council.budgets.prices import Price
from council.budgets.spend import seconds_to_midnight
from council.commands.models import BudgetConfig
from council.commands.types import CommandType, CommandTypes
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.engine.runs import ControlHandler, Execution, Handler, Premises, Run, RunPause
from council.events import Events
from council.ids import STEWARD, Clock, Principal
from council.knowledge.cortex.cortex import Cortex
from council.llm.base import is_extract, is_rehearsal
from council.plans.approval import Plans
from council.plans.plan import PlanKind
from council.redaction import Redactor
from council.settings import Home, Settings
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from council.tools.registry import ToolRegistry
from council.tools.tool import Tool
from council.turns.bench import Bench, BenchState
from council.turns.equipment import Equipment, RequestLimits, Speaker
from council.turns.growing_page import GrowingPage
from council.turns.metered_models import Models, RunModels
from council.turns.requests import refusals_of
from council.turns.run_guardrails import Guard, RunGuard
from council.users.people import user_of
from council.vault.contract import Vault


@dataclass(frozen=True)
class BareCore:
    """The house without what its systems do, which is all that a tool is made of. `commands` are the types of all systems,
    `tables` the modules that declare tables. `vault` opens the home's credentials."""

    home: Home
    settings: Settings
    events: Events
    clock: Clock
    root: ConfinedRoot
    store: Store
    receipts: Receipts
    ledger: Ledger
    redactor: Redactor
    models: Models
    memory: Memory
    cortex: Cortex
    audit: Trail
    vault: Callable[[], Vault]
    commands: CommandTypes
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Core(BareCore):
    """The house: built once by `app`. `tools` are those of all systems, and `plans` use them. `directories` open the agents
    that systems offer, for one run."""

    tools: ToolRegistry
    plans: Plans
    directories: tuple[Callable[[Core, Bench], Directory], ...]

    def of_run(self, run: Run) -> Core:
        """The same for one run, which keeps the model that it began with, or was told to go on with."""
        return replace(self, models=self.models.of_council(run.model))

    def principal_of(self, run: Run) -> Principal:
        """The one for whom a run works."""
        name = run.header.command.get("user")
        if name is None:
            return STEWARD
        user = user_of(self.store, name)
        return Principal(name, "user") if user is None else user.principal

    def guard_and_prices(self, run: Run, task: str, names: Sequence[str]) -> tuple[Guard, dict[str, Price | None]]:
        """The guard of a run that begins with these models, and the prices of all that it may ask. Raises ConfigError."""
        guard = Guard(self.settings.guardrails, (), self.models.second_opinion(run.header.secret))
        guard = msgspec.structs.replace(guard, task=guard.check("task", task))
        opinion = self.models.names((guard.model,)) if guard.model and not is_extract(names[0]) else ()
        asked = (*names, *opinion, *filter(None, (self.models.embedding,)))
        return guard, {name: self.models.price(name) for name in asked}

    def guarding(self, run: Run, guard: Guard, models: RunModels, task: str, *, rehearses: bool = False) -> RunGuard:
        """The guard of a run at work. `rehearses`: no language model gives second opinions."""
        name = "" if rehearses else guard.model
        shown = name if not name or run.is_closed else self.models.opinion_name(name, run.header.secret)
        return RunGuard(run, guard, partial(models.of, (name,)) if name else None, shown, task)

    @asynccontextmanager
    async def bench(
        self, run: Run, state: BenchState, page: GrowingPage, budget: BudgetConfig, guard: Guard,
        speakers: Sequence[Speaker], *, project: str = "", rehearses: bool = False,
    ) -> AsyncIterator[tuple[Bench, RunGuard]]:  # fmt: skip
        """The bench of a run at work, over whose end it watches: what was refused is told to the audit. Where the run
        waits, or asks, its page says so. Raises GuardrailBlocked for a task that may not be worked on, and as `equipment`."""
        models = self.models.models_for(run, budget, "")
        state.guarding = guarding = self.guarding(run, guard, models, state.request, rehearses=rehearses)
        waits = False
        try:
            await guarding.judge_task()
            equipment = self.equipment(run, models, lambda speaker: speaker.models, speakers)
            reading = tuple(tool.name for tool in self.tools if tool.effect == "read")
            state.bench = Bench(
                run, equipment, self.models, guard, self.principal_of(run), state.request, reading, project, page.grow
            )
            yield state.bench, guarding
        except RunPause:
            waits = True
            raise
        finally:
            if state.bench is not None:
                run.refusals = tuple(refusals_of(state.bench.evidence))
            page.stop()
            if waits or state.question:
                page.show()

    def equipment(
        self,
        run: Run,
        models: RunModels,
        chain_of: Callable[[Speaker], tuple[str, ...]],
        speakers: Sequence[Speaker],
    ) -> Equipment:
        """The means of the turns of a run: its `speakers` speak by the chains that `chain_of` tells. Raises ConfigError where
        dollars are limited and a price is not known."""
        settings = self.settings
        model_of = cache(lambda speaker: models.of(chain_of(speaker)))
        if not run.is_closed:  # else nobody is asked any more, and a model need not be had
            for speaker in speakers:
                model_of(speaker)
        return Equipment(
            model_of=model_of,
            tools=self.tools,
            limits=RequestLimits(
                settings.max_requests_per_reply, settings.max_requests_per_task, settings.max_context_bytes_per_task
            ),
            seconds_to_midnight=partial(seconds_to_midnight, self.clock),
            window_chars=lambda: self.models.window_chars(map(chain_of, speakers), run.header.secret),
            redact=self.redactor.redact,
            streams=settings.streaming == "on",
            rehearses=not run.is_closed
            and all(is_rehearsal(name) for speaker in speakers for name in self.models.names(chain_of(speaker))),
            functions=cache(self.tools.specs) if settings.native_tools == "on" else lambda allowed: (),
            embedder=models.embedder,
        )


class Companion(Protocol):
    """Something that runs beside the inbox as long as the daemon."""

    @property
    def name(self) -> str:
        """Its name in the log and in `status`."""

    async def run(self) -> None:
        """Serves until it is cancelled. To return is to have ended too early: it is started again."""


@dataclass(frozen=True)
class System:
    """One system. Its tools are built from the bare core, all else once the core is there; its commands are admitted
    without one.

    `handlers` are those of its commands that become runs, `controls` those of its control commands, by type. `admits` has a
    word on commands of other systems, by type, before these admit them: it raises CommandInvalid. `plan_kinds`
    are the plans that may propose its write tools. `directory` opens the agents that it offers, for one run. `tables` is the
    module that declares its tables: by it `forget`, retention and the generated schema reach them.
    """

    name: str
    commands: tuple[CommandType, ...] = ()
    handlers: Callable[[Core], Mapping[str, Handler]] = lambda core: {}
    controls: Callable[[Core], Mapping[str, ControlHandler]] = lambda core: {}
    admits: Mapping[str, Callable[[Any, Premises], None]] = field(default_factory=dict)
    tools: Callable[[BareCore], Iterable[Tool]] = lambda core: ()
    plan_kinds: tuple[PlanKind, ...] = ()
    companions: Callable[[Core], Iterable[Companion]] = lambda core: ()
    directory: Callable[[Core, Bench], Directory] | None = None
    tables: str = ""


@dataclass(frozen=True)
class LateHandler:
    """Begins a run with `work`, a `module:Class` over the run and the core. It is loaded then: an idle daemon needs none."""

    work: str
    core: Core

    def load(self) -> Callable[[Run, Core], Execution]:
        module, _, name = self.work.partition(":")
        execution: Callable[[Run, Core], Execution] = getattr(import_module(module), name)
        return execution

    def __call__(self, run: Run) -> Execution:
        return self.load()(run, self.core)
