"""Builds everything from settings: the only room that names concrete classes.

`build_app` puts together what the other modules build: `models` and what they may spend, what agents may read, what is
kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from council.app.models import choose_model
from council.app.reading import build_cortex, build_search, build_tools, seeds_folder
from council.app.safekeeping import build_memory, build_trail, open_store, require_authority
from council.app.spending import Spending
from council.audit.trail import Trail
from council.budgets.spend import seconds_to_midnight
from council.commands.models import DeliberateCommand, RunCommand
from council.deliberation.equipment import CouncilSetup, Limits
from council.deliberation.guarding import Guard
from council.deliberation.handler import DeliberateHandler
from council.deliberation.memory import MemoryHandler
from council.engine.engine import Engine
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.engine.runs import Handler
from council.events import Events
from council.ids import Clock, SystemClock
from council.knowledge.cortex.cortex import Cortex
from council.llm.base import Model
from council.llm.pool import ModelPool
from council.llm.replay import ReplayModel
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import OUTPUT_DENIED, ConfinedRoot, PathRules
from council.storage.store import Store

if TYPE_CHECKING:
    from council.telemetry.export import Telemetry
    from council.telemetry.tracing import Tracing


TEST_RUN_SECRET = "COUNCIL_TEST_RUN_SECRET"  # noqa: S105  hex; lets a test give two runs of one comparison one secret


@dataclass
class App:
    """A built council: what doors and daemon work with."""

    home: Home
    settings: Settings
    events: Events
    clock: Clock
    root: ConfinedRoot
    store: Store
    model: Model
    models: ModelPool
    engine: Engine
    receipts: Receipts
    ledger: Ledger
    redactor: Redactor
    spending: Spending
    handlers: dict[str, Handler]
    cortex: Cortex
    audit: Trail
    telemetry: Telemetry | None = None

    async def aclose(self) -> None:
        if self.telemetry is not None:
            await asyncio.to_thread(self.telemetry.close)
        await self.models.aclose()
        self.root.close()
        self.spending.close()
        await asyncio.to_thread(self.store.close)


def build_app(
    home: Home,
    settings: Settings,
    keys: ProviderKeys,
    *,
    environ: Mapping[str, str] | None = None,
    telemetry: Telemetry | None = None,
    around: Callable[[Model], Model] = lambda model: model,
) -> App:
    """Raises ConfigError: the model cannot be had (no key, unknown name, unreadable script). `telemetry` is closed with
    the app. `around` is put around each provider's model, inside everything that is the house's own: it sees every call
    that is made."""
    environ = os.environ if environ is None else environ
    events, clock = Events(), SystemClock()
    keys.register(setting.key_env for setting in settings.providers.values() if setting.key_env)
    store = open_store(home, settings, keys.redactor)
    try:
        return _build_over(store, home, settings, keys, environ, telemetry, around, events, clock)
    except BaseException:
        store.close()
        raise


def _build_over(
    store: Store,
    home: Home,
    settings: Settings,
    keys: ProviderKeys,
    environ: Mapping[str, str],
    telemetry: Telemetry | None,
    around: Callable[[Model], Model],
    events: Events,
    clock: Clock,
) -> App:
    chosen = choose_model(home, settings, keys, store, clock, around)
    if chosen.cassette is not None:  # what failed after its retries fails at once
        settings = settings.model_copy(update={"model_attempts": 1})
    tracing = telemetry.tracing if telemetry is not None else None
    if tracing is not None:
        events.subscribe(tracing.on_event)
    spending = Spending(home, store, settings, keys, chosen.pool, events, clock, chosen.cassette, tracing)
    spending.require_embedder()
    root = ConfinedRoot(home.root)
    cortex = build_cortex(root, settings, keys.redactor)
    handlers = _handlers(_council_setup(home, store, settings, root, spending, cortex, tracing, clock, keys.redactor))
    audit = build_trail(home, store, settings, keys, environ, keys.redactor)
    engine = Engine(
        store,
        root,
        handlers,
        events,
        clock,
        max_parallel_runs=settings.max_parallel_runs,
        max_wait_s=settings.max_wait_s,
        max_attempts=settings.max_attempts,
        storage_retry_s=settings.storage_retry_s,
        audit=audit,
        require_authority=partial(require_authority, store=store),
        run_secret=partial(_run_secret, chosen.cassette, environ),
        redactor=keys.redactor,
    )
    engine.before_asking_again = chosen.lift_pauses
    return App(
        home=home,
        settings=settings,
        events=events,
        clock=clock,
        root=root,
        store=store,
        model=chosen.model,
        models=chosen.pool,
        engine=engine,
        receipts=Receipts(store),
        ledger=Ledger(store),
        redactor=keys.redactor,
        spending=spending,
        handlers=handlers,
        cortex=cortex,
        audit=audit,
        telemetry=telemetry,
    )


def _handlers(setup: CouncilSetup) -> dict[str, Handler]:
    """Who does the work of a command that takes its lane's turn, by its type. `upkeep.forget` adds its own."""
    return {
        "deliberate": DeliberateHandler(setup),
        "memory": MemoryHandler(setup.memory, setup.home, setup.personas, setup.seeds),
    }


def _council_setup(
    home: Home,
    store: Store,
    settings: Settings,
    root: ConfinedRoot,
    spending: Spending,
    cortex: Cortex,
    tracing: Tracing | None,
    clock: Clock,
    redactor: Redactor,
) -> CouncilSetup:
    return CouncilSetup(
        home=home.root,
        root=root,
        personas=home.personas,
        seeds=seeds_folder(home, settings),
        memory=build_memory(home, store),
        models=spending,
        seconds_to_midnight=partial(seconds_to_midnight, clock),
        tools=build_tools(root, settings, build_search(cortex, spending.meanings), tracing.tool if tracing else None),
        streams=settings.streaming == "on",
        native_tools=settings.native_tools == "on",
        limits=Limits(
            max_requests_per_reply=settings.max_requests_per_reply,
            max_requests=settings.max_requests_per_task,
            max_context_bytes=settings.max_context_bytes_per_task,
        ),
        output_rules=PathRules(deny=OUTPUT_DENIED),
        clock=clock,
        guard=Guard(settings.guardrails, settings.scope_topics),
        redactor=redactor,
    )


def _run_secret(cassette: ReplayModel | None, environ: Mapping[str, str], command: RunCommand) -> bytes | None:
    """None: each run draws its own. What a cassette holds was asked in the words of the run that it was recorded from."""
    if cassette is not None and isinstance(command, DeliberateCommand):
        return cassette.run_secret_for(command.task_description)
    return bytes.fromhex(environ[TEST_RUN_SECRET]) if TEST_RUN_SECRET in environ else None


def handlers_asking(app: App, model: Model) -> dict[str, Handler]:
    """The app's handlers, each asking `model`, whatever the settings name."""
    return {
        type_: handler.asking(model) if isinstance(handler, DeliberateHandler) else handler
        for type_, handler in app.handlers.items()
    }
