"""Builds everything from settings: the only room that names concrete classes.

`build_app` puts together what the other modules build: `models` and what they may spend, what agents may read, what is
kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from council.app.models import build_bucket, build_model
from council.app.reading import build_cortex, build_search, build_tools, seeds_folder
from council.app.safekeeping import (
    build_ledger,
    build_memory,
    build_receipts,
    build_trail,
    build_users,
    has_database,
    require_authority,
)
from council.app.spending import Spending
from council.audit.trail import Trail
from council.commands.models import (
    MIN_FORGOTTEN_CHARS,
    DeliberateCommand,
    ForgetCommand,
    MemoryCommand,
    RunCommand,
    canonical_hash,
    dump,
)
from council.deliberation.admission import admit_deliberation
from council.deliberation.equipment import CouncilSetup, Limits
from council.deliberation.guarding import Guard
from council.deliberation.handler import DeliberateHandler
from council.deliberation.memory import MemoryHandler, admit_memory_change
from council.engine.engine import Engine, EnginePaths
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.engine.runs import Admission, Handler
from council.errors import CommandInvalid, ConfigError
from council.events import Events
from council.ids import Clock, SystemClock
from council.knowledge.cortex.cortex import Cortex
from council.llm.base import Model
from council.llm.bounds import BoundedModel
from council.llm.json_mode import JsonModeModel
from council.llm.limits import KeptPauses
from council.llm.pool import ModelPool
from council.llm.replay import ReplayModel
from council.redaction import Redactor
from council.safety.untrusted import clean
from council.settings import Home, ProviderKeys, Settings
from council.storage.database_version import require_known_version
from council.storage.paths import OUTPUT_DENIED, ConfinedRoot, PathRules
from council.telemetry.switch import foreign_protocol, wanted

if TYPE_CHECKING:
    from council.telemetry.export import Telemetry
    from council.telemetry.tracing import Tracing
    from council.users.directory import Users


log = logging.getLogger(__name__)

TEST_RUN_SECRET = "COUNCIL_TEST_RUN_SECRET"  # noqa: S105  hex; lets a test give two runs of one comparison one secret


@dataclass
class App:
    """A built council: what doors and daemon work with."""

    home: Home
    settings: Settings
    events: Events
    clock: Clock
    root: ConfinedRoot
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
        self.ledger.close()
        self.spending.close()
        self.audit.close()


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
    home.ensure_runtime()
    require_known_version(home.runtime)
    keys.register(setting.key_env for setting in settings.providers.values() if setting.key_env)
    redactor = keys.redactor
    trail = build_trail(home, settings, keys, environ, redactor)

    def known_users() -> Users | None:
        return build_users(trail) if has_database(home, settings) else None

    ledger = build_ledger(home)
    receipts = build_receipts(home, ledger)
    cassettes: dict[str, ReplayModel] = {}

    def make(spelling: str) -> Model:
        model = build_model(home, settings, keys, spelling)
        if isinstance(model, ReplayModel):
            cassettes[spelling] = model
        return around(JsonModeModel(BoundedModel(model)))

    pauses = KeptPauses(home.runtime / "pauses", clock)
    models = ModelPool(make, partial(build_bucket, settings, clock, pauses))
    model = models.get(settings.model)
    cassette = cassettes.get(settings.model)
    if cassette is not None:  # what failed after its retries fails at once
        settings = settings.model_copy(update={"model_attempts": 1})
    tracing = telemetry.tracing if telemetry else None
    spending = Spending(home, settings, keys, models, events, clock, cassette, tracing)
    root = ConfinedRoot(home.root)
    cortex = build_cortex(root, settings, keys.redactor)
    spending.require_embedder()
    setup = _council_setup(home, settings, root, spending, cortex, tracing, clock, keys.redactor)
    handlers: dict[str, Handler] = {
        "deliberate": DeliberateHandler(setup),
        "memory": MemoryHandler(setup.memory, home.root, setup.personas, setup.seeds),
    }
    if telemetry is not None:
        events.subscribe(telemetry.tracing.on_event)
    engine = Engine(
        EnginePaths.under(home.runtime),
        root,
        receipts,
        ledger,
        handlers,
        events,
        clock,
        max_parallel_runs=settings.max_parallel_runs,
        max_wait_s=settings.max_wait_s,
        max_attempts=settings.max_attempts,
        storage_retry_s=settings.storage_retry_s,
        audit=trail,
        require_authority=partial(require_authority, users=known_users),
        run_secret=partial(_run_secret, cassette, environ),
        redactor=redactor,
    )

    def ask_again() -> None:
        pauses.lift()
        models.lift_pauses()

    engine.before_asking_again = ask_again
    return App(
        home,
        settings,
        events,
        clock,
        root,
        model,
        models,
        engine,
        receipts,
        ledger,
        redactor,
        spending,
        handlers,
        cortex,
        trail,
        telemetry,
    )


def _council_setup(
    home: Home,
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
        memory=build_memory(home),
        models=spending,
        seconds_to_midnight=spending.days.seconds_to_midnight,
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


def build_telemetry(settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> Telemetry | None:
    """None unless it is switched on. Raises ConfigError when a setting asks for it and its packages are not there; where
    only the machine's environment does, that is logged."""
    asked = wanted(settings, environ)
    if asked is None:
        return None
    if (protocol := foreign_protocol(environ)) and not asked.by_setting:
        log.warning("no spans: OTEL_EXPORTER_OTLP_PROTOCOL is %s, and Council speaks http/protobuf.", protocol)
        return None
    try:
        from council.telemetry.export import open_telemetry
    except ImportError as error:
        fix = "pip install 'council[otel]'"
        if asked.by_setting:
            raise ConfigError(
                f"otel_endpoint is set, and OpenTelemetry is not installed ({error.name}).", fix=fix
            ) from None
        log.warning("no spans: OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed (%s).", fix)
        return None
    return open_telemetry(asked, keys.redactor)


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


def admission_of(home: Home, settings: Settings, command: RunCommand) -> Admission:
    """What admission would say of a command, with no model and no run. Raises CommandInvalid or PathRefused."""
    receipts = build_receipts(home)
    if command.id is not None:
        is_active = (home.runtime / "active").joinpath
        receipts.answering(command.id, canonical_hash(command), lambda run_id: is_active(run_id).exists())
    if isinstance(command, ForgetCommand):
        return admit_forget(command, home, receipts)
    if isinstance(command, MemoryCommand):
        return admit_memory_change(command, build_memory(home), home.personas, seeds_folder(home, settings))
    with ConfinedRoot(home.root) as root:
        rules = PathRules(deny=OUTPUT_DENIED)
        return admit_deliberation(command, root, rules, home.personas, seeds_folder(home, settings))


def admit_forget(command: ForgetCommand, home: Home, receipts: Receipts) -> Admission:
    """Record 0 keeps everything of the command but its text and its salt. Raises CommandInvalid for an unknown run."""
    if command.run is not None and receipts.read(command.run) is None and not (home.runs / command.run).is_dir():
        raise CommandInvalid(
            f"`run` is {command.run!r}, which is not known here.",
            fix="`council status` lists the last runs",
            field="run",
        )
    if command.text is not None and len(clean(command.text).strip()) < MIN_FORGOTTEN_CHARS:
        raise CommandInvalid(
            f"`text` has fewer than {MIN_FORGOTTEN_CHARS} visible characters.",
            fix="give more of the text; invisible and control characters do not count",
            field="text",
        )
    what = [] if command.text is None else ["a text"]
    what += [] if command.run is None else [f"run {command.run}"]
    recorded = {**dump(command), "text": None if command.text is None else "", "salt": None}
    guessable = command.text is not None and command.salt is None
    return Admission(f"Forget {' and '.join(what)}", "", recorded=recorded, keeps_hashes=not guessable)
