"""Builds everything from settings: the only room that names concrete classes. A council is a core and a list of
systems, which the door hands in."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from council.agents.memory import Memory
from council.app.home_store import TABLES, Safe, VaultWords, open_store
from council.app.knowledge_tools import build_cortex, build_library, build_texts, build_tools
from council.audit.head_file import lost_end
from council.commands.models import CommandBase, RunBase
from council.commands.types import DEFAULT_TYPE, Admission, CommandType, CommandTypes
from council.engine.admission import Grant, admission
from council.engine.control_commands import CONTROLS
from council.engine.engine import Engine
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt, Receipts
from council.engine.records import RunStatus
from council.engine.runs import ActiveRun, ControlHandler, Handler, Premises
from council.events import Events
from council.ids import SystemClock
from council.knowledge.cortex.hybrid_search import Search
from council.knowledge.file_texts import FileTexts
from council.llm.base import Model
from council.llm.replay import ReplayModel
from council.plans.approval import Plans
from council.plans.commands import PLAN_TYPES
from council.plans.handlers import plan_controls, plan_handlers
from council.plans.plan import PlanKind
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.storage.store import Store
from council.systems import BareCore, Core, System
from council.tools.registry import ToolRegistry
from council.turns.metered_models import Models
from council.turns.model_building import ModelPool, build_model
from council.turns.recorded_models import RecordedModels

if TYPE_CHECKING:
    from council.telemetry.export import Telemetry

log = logging.getLogger(__name__)

TEST_RUN_SECRET = "COUNCIL_TEST_RUN_SECRET"  # noqa: S105  hex; lets a test give two runs of one comparison one secret


@dataclass(frozen=True)
class App(Core):
    """A built council: the core and its systems, for doors and daemon. `close` ends what was opened for it."""

    model: Model
    systems: tuple[System, ...]
    handlers: Mapping[str, Handler]
    controls: Mapping[str, ControlHandler]
    run_secret: Callable[[RunBase], bytes | None]
    texts: FileTexts
    vault_words: VaultWords
    close: Callable[[], None]
    telemetry: Telemetry | None = None

    def engine(self, on_ended: Callable[[ActiveRun, RunStatus], None]) -> Engine:
        """The engine of the home's one daemon; `on_ended` takes the command file of a run whose receipt answers."""
        return Engine(
            self.store,
            self._premises,
            self.commands,
            self.handlers,
            self.events,
            self.clock,
            audit=self.audit,
            redactor=self.redactor,
            on_ended=on_ended,
            controls=self.controls,
            before_asking_again=self.models.pool.lift_pauses,
            run_secret=self.run_secret,
            recorded_day=self.models.day,
            informed=self.vault_words.learn,
        )

    def admission_of(self, command: CommandBase) -> Grant | Receipt:
        """The daemon's word on a command, with no run. Raises as `admission`."""
        return admission(self.commands, self._premises, command)

    def handlers_asking(self, model: Model) -> Mapping[str, Handler]:
        """The handlers of all runs, each asking `model`, whatever the settings name."""
        return _handlers(replace(self, models=self.models.asking(model)), self.systems)

    @property
    def _premises(self) -> Premises:
        return Premises(self.home, self.settings, self.store, self.root, model=self.model.name)

    async def aclose(self) -> None:
        if self.telemetry is not None:
            await asyncio.to_thread(self.telemetry.close)
        await self.models.pool.aclose()
        await asyncio.to_thread(self.close)


def build_app(
    home: Home,
    settings: Settings,
    keys: ProviderKeys,
    *,
    systems: Sequence[System],
    environ: Mapping[str, str] | None = None,
    telemetry: Telemetry | None = None,
    around: Callable[[Model], Model] = lambda model: model,
    look: Looking | None = None,
) -> App:
    """Raises ConfigError: the model cannot be had. `telemetry` is closed with the app. `around` is put around each provider's
    model: it sees every call that is made. With `look`, the home's database to read, nothing is made or written: such an app
    tells what was recorded."""
    environ = os.environ if environ is None else environ
    home.require_own_places()
    keys.register(setting.key_env for setting in settings.providers.values() if setting.key_env)
    # A run that is told again reaches no statement that writes: each of its steps is recorded, or ends it.
    store = open_store(home, settings, keys.redactor) if look is None else cast(Store, look)
    with ExitStack() as undo:
        if look is None:
            undo.callback(store.close)
        events, clock = Events(), SystemClock()
        own = build_model(home, settings, keys)
        pool = ModelPool(home, settings, keys, store, clock, around, own)
        tracing = telemetry.tracing if telemetry is not None else None
        if tracing is not None:
            events.subscribe(tracing.on_event)
        parts = (home, store, settings, keys, pool, clock, tracing)
        models = RecordedModels(*parts, cassette=own) if isinstance(own, ReplayModel) else Models(*parts)
        if look is None:
            undo.callback(models.close)
        _ = models.embedding  # one that cannot be had is told now, and not when a question is asked
        if lost := lost_end(store, home.runtime):
            log.warning("%s; `council doctor` and `council audit verify` say more", lost)
        safe = Safe(home, store, settings, keys, environ)
        root, redactor = ConfinedRoot(home.root), keys.redactor
        undo.callback(root.close)
        texts = build_texts(root, settings)
        undo.callback(texts.close)
        library = build_library(texts, settings)
        cortex = build_cortex(texts, library.rules, redactor, store)
        bare = BareCore(
            home=Home(root.root),
            settings=models.settings,
            events=events,
            clock=clock,
            root=root,
            store=store,
            receipts=Receipts(store),
            ledger=Ledger(store),
            redactor=redactor,
            models=models,
            memory=Memory(Home(root.root).session_states, store),
            cortex=cortex,
            audit=safe.trail,
            vault=safe.vault,
            commands=commands_of(systems),
            tables=tables_of(systems),
        )
        every = [*build_tools(library, Search(cortex, models.meanings))]
        every += (tool for system in systems for tool in system.tools(bare))
        tools = ToolRegistry(map(tracing.tool, every) if tracing else every)
        core = Core(
            **vars(bare),
            tools=tools,
            plans=Plans(kinds_of(systems), tools, safe.trail, safe.keyring, redactor, clock, settings.draft_ttl_s),
            directories=tuple(system.directory for system in systems if system.directory is not None),
        )
        return App(
            **vars(core),
            model=pool.get(settings.model),
            systems=tuple(systems),
            handlers=_handlers(core, systems),
            controls=plan_controls(core.plans, store)
            | {name: one for system in systems for name, one in system.controls(core).items()},
            run_secret=partial(_run_secret, models, environ),
            texts=texts,
            vault_words=VaultWords(home, safe),
            telemetry=telemetry,
            close=undo.pop_all().close,
        )


def commands_of(systems: Iterable[System]) -> CommandTypes:
    """In the order in which they are told."""
    systems = tuple(systems)

    def with_words(type_: CommandType) -> CommandType:
        """The type, admitted only where no other system objects."""
        words = [system.admits[type_.name] for system in systems if type_.name in system.admits]

        def admit(command: CommandBase, premises: Premises) -> Admission:
            for word in words:
                word(command, premises)
            return type_.admit(command, premises)

        return replace(type_, admit=admit) if words else type_

    every = map(with_words, [*CONTROLS, *PLAN_TYPES, *(type_ for system in systems for type_ in system.commands)])
    return CommandTypes(sorted(every, key=lambda type_: (type_.name != DEFAULT_TYPE, not type_.is_control)))


def kinds_of(systems: Iterable[System]) -> Mapping[str, PlanKind]:
    return {kind.name: kind for system in systems for kind in system.plan_kinds}


def tables_of(systems: Iterable[System]) -> tuple[str, ...]:
    return (*TABLES, *(system.tables for system in systems if system.tables))


def _handlers(core: Core, systems: Iterable[System]) -> Mapping[str, Handler]:
    own = {name: handler for system in systems for name, handler in system.handlers(core).items()}
    return {**plan_handlers(core.plans), **own}


def _run_secret(models: Models, environ: Mapping[str, str], command: RunBase) -> bytes | None:
    recorded = models.run_secret(command.task)
    if recorded is None and TEST_RUN_SECRET in environ:
        return bytes.fromhex(environ[TEST_RUN_SECRET])
    return recorded
