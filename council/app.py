"""Builds everything from settings: the only module that names concrete classes."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.agents.memory import Memory
from council.audit.head_file import HEAD_FILE
from council.audit.trail import Trail
from council.budgets import (
    Budget,
    BudgetedEmbedder,
    BudgetedModel,
    Calibration,
    DayLogs,
    Price,
    Prices,
    SpendLog,
    TimedEmbedder,
    TimedModel,
)
from council.budgets import Limits as Budgeted
from council.commands.models import (
    MIN_FORGOTTEN_CHARS,
    BudgetConfig,
    DeliberateCommand,
    ForgetCommand,
    MemoryCommand,
    RunCommand,
    canonical_hash,
    dump,
)
from council.deliberation.deliberate import Limits
from council.deliberation.guarding import Guard
from council.deliberation.handler import CouncilSetup, DeliberateHandler, RunModels, admit_deliberation
from council.deliberation.memory import MemoryHandler, admit_memory_change
from council.engine.engine import Engine, EnginePaths
from council.engine.ledger import Ledger, entry_of_receipt, found_on_disk
from council.engine.receipts import Receipt, Receipts
from council.engine.runs import Admission, Handler, Run
from council.errors import CommandInvalid, ConfigError, KeysRefused, ModelError
from council.events import Events
from council.ids import STEWARD, Clock, SystemClock
from council.keys.sources import KEY_VARIABLE, KeySource, key_source, load_or_create, require_keys
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.meaning import Search
from council.knowledge.library import Library
from council.knowledge.tools import list_files, query_cortex, read_file
from council.llm.base import Model
from council.llm.bounds import BoundedModel
from council.llm.embeddings import REQUEST_TIMEOUT_S, Embedder, RetryingEmbedder
from council.llm.fallback import FallbackModel
from council.llm.json_mode import JsonModeModel
from council.llm.limits import Bucket, KeptPauses
from council.llm.pool import ModelPool
from council.llm.providers import Provider, Setup, build, build_embedder, find_provider
from council.llm.replay import ReplayModel
from council.llm.retry import OnRetry, RetryingModel
from council.redaction import Redactor, Secret
from council.safety.untrusted import clean
from council.settings import Home, ProviderKeys, Settings
from council.settings.model import PriceSetting
from council.storage.database_version import DATABASE_FILE, require_known_version
from council.storage.paths import ALWAYS_DENIED, OUTPUT_DENIED, ConfinedRoot, PathRules
from council.telemetry.switch import foreign_protocol, wanted
from council.tools.base import Tool
from council.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from council.audit.log import AuditLog
    from council.storage.database import Database
    from council.telemetry.export import Telemetry
    from council.telemetry.tracing import Tracing
    from council.users.directory import Users
    from council.vault.base import Vault

log = logging.getLogger(__name__)

TABLES = ("council.audit.tables", "council.users.tables", "council.vault.tables")  # declared on the shared metadata
ADMINISTRATORS_ONLY = ("memory", "forget")
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
    setup = CouncilSetup(
        home=home.root,
        root=root,
        personas=home.personas,
        seeds=seeds_folder(home, settings),
        memory=build_memory(home),
        models=spending,
        seconds_to_midnight=spending.days.seconds_to_midnight,
        tools=build_tools(root, settings, build_search(cortex, settings), tracing.tool if tracing else None),
        streams=settings.streaming == "on",
        native_tools=settings.native_tools == "on",
        limits=Limits(
            max_requests_per_reply=settings.max_requests_per_reply,
            max_requests=settings.max_requests_per_task,
            max_context_bytes=settings.max_context_bytes_per_task,
        ),
        output_rules=PathRules(deny=OUTPUT_DENIED),
        clock=clock,
        guard=guard_of(settings, replays=cassette is not None),
        redactor=keys.redactor,
    )
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


def build_trail(
    home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], redactor: Redactor
) -> Trail:
    """The home's audit; nothing is loaded, opened or made before its first record."""

    def opening() -> AuditLog:
        from council.audit.log import AuditLog

        source = build_key_source(home, settings, keys, environ)
        (require_keys if (home.runtime / HEAD_FILE).exists() else load_or_create)(source)
        database = open_database(home, settings)
        return AuditLog(database, partial(require_keys, source), home.runtime, SystemClock(), redactor.redact)

    return Trail(opening)


def build_key_source(home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> KeySource:
    """Raises KeysRefused."""
    given = keys.get(KEY_VARIABLE)
    if given is not None and not environ.get(KEY_VARIABLE, "").strip():
        raise KeysRefused(
            f"{KEY_VARIABLE} stands in .env, inside the home, whose readers would have the key as well.",
            fix="set it in the environment of the process, and take it out of .env",
        )
    return key_source(settings.key_source, settings.key_file, home.root, environ, given)


def has_database(home: Home, settings: Settings) -> bool:
    """Whether there may be anything in it; opening one that is not there would make it."""
    return settings.database_url is not None or (home.runtime / DATABASE_FILE).exists()


def build_users(trail: Trail) -> Users:
    """Raises ConfigError, KeysRefused, StorageFailed."""
    from council.users.directory import Users

    return Users(trail.log(), SystemClock())


def build_vault(
    home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], trail: Trail, redactor: Redactor
) -> Vault:
    """Raises ConfigError, KeysRefused, StorageFailed."""
    if settings.vault == "aws":
        from council.vault.aws import AwsVault

        return AwsVault(trail.log(), settings.aws_prefix, SystemClock(), redactor.register)
    from council.vault.database import DatabaseVault

    source = build_key_source(home, settings, keys, environ)
    return DatabaseVault(trail.log(), source, SystemClock(), redactor.register)


def key_in_vault(
    name: str, home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]
) -> Secret | None:
    """A provider's key that the steward put into the vault; None when it holds none of that name. Raises CredentialRefused
    (expired, changed), KeysRefused, StorageFailed, ConfigError."""
    if name == KEY_VARIABLE or not (has_database(home, settings) or settings.vault == "aws"):
        return None
    from council.vault.sealing import Place

    place = Place(STEWARD.id, "", name)
    trail = build_trail(home, settings, keys, environ, keys.redactor)
    try:
        vault = build_vault(home, settings, keys, environ, trail, keys.redactor)
        if not any(entry.place == place for entry in vault.list()):
            return None
        return vault.get(place, actor=STEWARD.id, purpose="a model's key")
    finally:
        trail.close()


def require_authority(command: RunCommand, users: Callable[[], Users | None]) -> None:
    """A command on somebody's behalf can do what that person may. `users` None: there never were any. Raises
    CommandInvalid."""
    if command.user is None:
        return
    known = users()
    user = known.get(command.user) if known is not None else None
    if user is None:
        raise CommandInvalid(
            f"`user` is {command.user!r}, and there is no such user here.",
            fix=f"`council users add {command.user}` makes one; without `user` the command acts as the steward",
            field="user",
            refused=True,
        )
    if command.type in ADMINISTRATORS_ONLY and user.principal.kind != "administrator":
        raise CommandInvalid(
            f"`user` is {command.user!r}, who is no administrator: a {command.type} command is not theirs to give.",
            fix=f"`council users roles {command.user} --grant administrator`, or leave `user` out",
            field="user",
            refused=True,
        )


def open_database(home: Home, settings: Settings) -> Database:
    """The home's database with the tables of every room. Raises ConfigError, StorageFailed."""
    from council.storage.database import Database, url_of

    for room in TABLES:
        import_module(room)
    return Database.open(url_of(settings.database_url, home.runtime))


def guard_of(settings: Settings, *, replays: bool = False) -> Guard:
    """The guardrails that settings ask for. `replays`: the model is a cassette, which gives no second opinions."""
    model = "" if replays else settings.guardrail_model or ""
    return Guard(settings.guardrails, settings.scope_topics, model)


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


class Spending:
    """The models of all runs, and what those may spend: one calibration and one day for all of them, a log for each."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        keys: ProviderKeys,
        pool: ModelPool,
        events: Events,
        clock: Clock,
        cassette: ReplayModel | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """`cassette`: the model of the council, where it is one."""
        self._cassette = cassette
        self._tracing = tracing
        self._home = home
        self._settings = settings
        self._keys = keys
        self._pool = pool
        self._events = events
        self._clock = clock
        self._calibration = Calibration(home.runtime / "calibration.json")
        self._day = Budgeted(
            settings.day_max_calls, settings.day_max_tokens, settings.day_max_usd, settings.day_max_seconds
        )
        self._prices: dict[str, Price | None] = {}
        self.days = DayLogs(home.runtime / "spend", clock)

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """Which models speak for an agent: the command's, else what settings say for its role, else its manifest's, else
        the council's; behind a single one those that settings let stand in for any. A cassette and the offline engine
        speak for all: who starts a daemon with one wants no other model asked."""
        settings = self._settings
        if self._cassette is not None or settings.model == "offline":
            return (settings.model,)
        wanted = (command,) if command else settings.agent_models.get(role) or manifest or (settings.model,)
        if len(wanted) > 1 or wanted == ("offline",):
            return tuple(wanted)
        return tuple(dict.fromkeys((*wanted, *settings.fallback_models)))

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """What receipts and pages call these models. Raises ConfigError for one that cannot be had."""
        return tuple(self._pool.get(spelling).name for spelling in chain)

    def price(self, name: str) -> Price | None:
        """None when nobody knows it. Looked up when first asked for: the bundled table is large."""
        if name not in self._prices:
            self._prices[name] = model_price(self._settings, name)
        return self._prices[name]

    def window_chars(self, chains: Iterable[tuple[str, ...]], run_secret: str) -> int:
        """How many characters the smallest context among these models holds, as far as is known now."""
        if self._cassette is not None:
            return self._cassette.window_chars_of(run_secret)
        models = {spelling: self._pool.get(spelling) for chain in chains for spelling in chain}
        return min(self._calibration.chars(model.name, model.context_tokens) for model in models.values())

    @property
    def embedding(self) -> str:
        """The name of the model that embeds; empty without one, and for a cassette and the offline engine: who starts a
        daemon with one wants no other model asked."""
        return self._embedder(lambda inner: inner).name if self._embeds else ""

    def require_embedder(self) -> None:
        """Raises ConfigError where it cannot be had: better now than at the first question."""
        log.debug("questions are embedded by %s", self.embedding or "nobody")

    @property
    def _embeds(self) -> bool:
        quiet = self._cassette is not None or self._settings.model == "offline"
        return self._settings.embedding_model is not None and not quiet

    def _embedder(self, around: Callable[[Embedder], Embedder]) -> Embedder:
        make = partial(build_embedding_model, self._home, self._settings, self._keys)
        return self._pool.embedder(self._settings.embedding_model or "", make, around)

    def models_for(self, run: Run, config: BudgetConfig, chair: str) -> RunModels:
        """A run's models by chain: retried, and asked for their worst case before each call. Using one raises ConfigError
        when a limit in dollars is set and its price is not known; that of the embedding model is asked for at once."""
        budget = Budget(
            run_id=run.id,
            command=Budgeted(config.max_calls, config.max_tokens, config.max_usd, config.max_seconds),
            day=self._day,
            command_log=SpendLog(self._home.runs / run.id / _spend_name(run.journal.retries)),
            day_log=self.days.today,
            price_of=self.price,
            chair=chair,
            clock=self._clock,
        )

        @cache
        def one(spelling: str) -> Model:
            output_tokens = output_limit(self._settings, spelling)

            def asking(model: Model) -> Model:
                budget.require_price(model.name)
                return BudgetedModel(model, budget, self._calibration, max_output_tokens=output_tokens)

            return with_retry(self._pool.get(spelling, asking), self._settings, self._events, run)

        def models(chain: tuple[str, ...]) -> Model:
            model = TimedModel(FallbackModel([one(spelling) for spelling in chain]), budget)
            return model if self._tracing is None else self._tracing.model(run.id, model)

        return RunModels(models, self._embedder_for(run, budget) if self._embeds else None)

    def _embedder_for(self, run: Run, budget: Budget) -> Embedder:
        budget.require_price(self.embedding)
        asking = self._embedder(lambda inner: BudgetedEmbedder(inner, budget, self._calibration))
        embedder = TimedEmbedder(embedder_with_retry(asking, self._settings, self._events, run), budget)
        return embedder if self._tracing is None else self._tracing.embedder(run.id, embedder)

    def close(self) -> None:
        self._calibration.save()


def model_price(settings: Settings, model: str) -> Price | None:
    """The price of a model, None when neither settings nor the bundled table know it."""
    overrides = {name: Price(*_decimals(price)) for name, price in settings.prices.items()}
    return Prices(overrides).of(model)


def _spend_name(retries: int) -> str:
    """A retry begins with the command's whole budget."""
    return f"spend-{retries}.jsonl" if retries else "spend.jsonl"


def _decimals(price: PriceSetting) -> tuple[Decimal, Decimal, Decimal | None]:
    cached = Decimal(str(price.cached)) if price.cached is not None else None
    return Decimal(str(price.input)), Decimal(str(price.output)), cached


def build_receipts(home: Home, ledger: Ledger | None = None) -> Receipts:
    """The home's receipts; each new one becomes a row of `ledger`."""
    if ledger is None:
        return Receipts(home.receipts, home.runtime / "ids")

    def note(receipt: Receipt, ended_ns: int) -> None:
        ledger.put(entry_of_receipt(receipt, folder=home.runs / receipt.run_id, ended_ns=ended_ns))

    return Receipts(home.receipts, home.runtime / "ids", note)


def build_ledger(home: Home) -> Ledger:
    """The run ledger, filled from receipts and journals when it is new (or was lost)."""
    ledger = Ledger(home.runtime / "ledger.sqlite")
    if ledger.is_incomplete:
        ledger.rebuild(found_on_disk(home.runs, build_receipts(home)))
    return ledger


def build_bucket(settings: Settings, clock: Clock, pauses: KeptPauses, provider: str) -> Bucket:
    """One for all runs: they share the provider."""
    return Bucket(
        clock,
        max_concurrent=settings.max_provider_calls,
        max_per_minute=settings.max_calls_per_minute,
        max_pause_s=settings.max_inline_wait_s,
        pause_s=pauses.left_s(provider),
        on_pause=partial(pauses.note, provider),
    )


def build_memory(home: Home) -> Memory:
    return Memory(home.session_states, home.runtime / "memory")


def seeds_folder(home: Home, settings: Settings) -> Path | None:
    """Where original awakening seeds are read from, if anywhere."""
    return home.root / settings.seeds_dir if settings.seeds_dir else None


def build_library(root: ConfinedRoot, settings: Settings) -> Library:
    """What agents read, by rule."""
    return Library(
        root,
        read_rules(settings),
        max_file_bytes=settings.max_file_bytes,
        max_text_bytes=settings.max_context_bytes_per_request,
    )


def build_tools(
    root: ConfinedRoot, settings: Settings, search: Search, around: Callable[[Tool], Tool] | None = None
) -> ToolRegistry:
    """The tools of deliberations: reading, inside the allowed roots; `around` goes around each."""
    library = build_library(root, settings)
    tools = [read_file(library), list_files(library), query_cortex(search)]
    return ToolRegistry(map(around, tools) if around else tools)


def build_cortex(root: ConfinedRoot, settings: Settings, redactor: Redactor) -> Cortex:
    """The indexes of a home, without the secrets that `redactor` knows; nothing is read or loaded until it is asked."""
    folder = Home(root.root).runtime / "cortex"
    rules = read_rules(settings)
    return Cortex(root, rules, folder, max_file_bytes=settings.max_file_bytes, redact=redactor.redact)


def build_search(cortex: Cortex, settings: Settings) -> Search:
    """The indexes with the vectors of the embedding model, if there is one."""
    return Search(cortex, embedding_name(settings))


def read_rules(settings: Settings) -> PathRules:
    """What agents may read."""
    return PathRules(deny=(*ALWAYS_DENIED, *settings.deny), allow=settings.read_roots)


def build_model(home: Home, settings: Settings, keys: ProviderKeys, name: str = "") -> Model:
    """The model of that name, else the one that settings name. Only its provider's module is imported, and only now.

    Raises ConfigError: no such provider, no key, settings that do not fit.
    """
    provider, setup = provider_of(home, settings, keys, name or settings.model)
    return build(provider, setup)


def build_embedding_model(home: Home, settings: Settings, keys: ProviderKeys, name: str) -> Embedder:
    """The embedding model of that name. Raises ConfigError: no such provider, one without embeddings, no key."""
    provider, setup = provider_of(home, settings, keys, name)
    return build_embedder(provider, replace(setup, request_timeout_s=min(setup.request_timeout_s, REQUEST_TIMEOUT_S)))


def embedding_name(settings: Settings) -> str:
    """Under which name vectors are kept: those of another model, or of another size, mean nothing beside them."""
    if settings.embedding_model is None:
        return ""
    size = settings.embedding_dimensions
    return settings.embedding_model if size is None else f"{settings.embedding_model} ({size} dimensions)"


def provider_of(home: Home, settings: Settings, keys: ProviderKeys, name: str) -> tuple[Provider, Setup]:
    """The provider of a model `provider:id`, and what it gets to build it from. Raises ConfigError."""
    provider_name, _, model_id = name.partition(":")
    provider, options = _provider_and_options(settings, provider_name)
    return provider, Setup(
        provider=provider_name,
        model_id=model_id,
        home=home.root,
        options=options,
        key=keys.get,
        variable=keys.variable,
        request_timeout_s=_settled(settings, provider, options, "request_timeout_s"),
        max_output_tokens=_settled(settings, provider, options, "max_output_tokens"),
        temperature=_settled(settings, provider, options, "temperature"),
        embedding_dimensions=settings.embedding_dimensions,
    )


def output_limit(settings: Settings, name: str) -> int:
    """The ceiling of one reply of that model, by its provider's table, the settings, or the provider's own default."""
    provider, options = _provider_and_options(settings, name.partition(":")[0])
    return int(_settled(settings, provider, options, "max_output_tokens"))


def _provider_and_options(settings: Settings, name: str) -> tuple[Provider, dict[str, Any]]:
    tables = {table: setting.options() for table, setting in settings.providers.items()}
    if name == "gemini":  # whose settings are older than the tables
        own = {"base_url": settings.gemini_base_url, "api_version": settings.gemini_api_version}
        tables[name] = {**tables.get(name, {}), **{key: value for key, value in own.items() if value is not None}}
    return find_provider(name, tables), tables.get(name, {})


def _settled(settings: Settings, provider: Provider, options: Mapping[str, Any], key: str) -> Any:
    """The nearest word counts: the provider's table, then what was set for all, then the provider's own default."""
    if key in options:
        return options[key]
    if key in settings.model_fields_set:
        return getattr(settings, key)
    return provider.defaults.get(key, getattr(settings, key))


def with_retry(model: Model, settings: Settings, events: Events, run: Run) -> Model:
    """Short failures are tried again; each try is an event and a line in the run's journal."""

    attempts, max_wait_s = settings.model_attempts, settings.max_inline_wait_s
    return RetryingModel(model, attempts=attempts, max_wait_s=max_wait_s, on_retry=_telling(events, run))


def embedder_with_retry(embedder: Embedder, settings: Settings, events: Events, run: Run) -> Embedder:
    """As `with_retry`."""
    attempts, max_wait_s = settings.model_attempts, settings.max_inline_wait_s
    return RetryingEmbedder(embedder, attempts=attempts, max_wait_s=max_wait_s, on_retry=_telling(events, run))


def _telling(events: Events, run: Run) -> OnRetry:
    def tell(error: ModelError, attempt: int, wait_s: float) -> None:
        events.publish(
            "model_retry", run.id, error=error.message, error_kind=error.kind, attempt=attempt, wait_s=wait_s
        )
        run.journal.retried(error.kind, error.message, attempt, wait_s)

    return tell
