"""One home with its settings, keys and records, as every door stands before it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from council.desk.all_systems import house
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.errors import ConfigError, DaemonRunning
from council.settings.home import Home, names_a_server
from council.storage.files import FileLock
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking, looking

if TYPE_CHECKING:
    from datetime import tzinfo

    from council.agents.manifest import AgentManifest
    from council.app import App
    from council.app.home_store import Safe
    from council.commands.models import CommandBase
    from council.commands.types import CommandTypes
    from council.engine.admission import Grant
    from council.engine.receipts import Receipt
    from council.engine.runs import Premises
    from council.redaction import Secret
    from council.settings import LoadedSettings, ProviderKeys, Settings
    from council.systems import System

Result = TypeVar("Result")

# NOTE: imports inside functions are of what loads pydantic, asyncio or every system. `council status` must wait for none of
# these (benchmarks/startup.py).


class Desk:
    """One home. Everything is looked up when it is first asked for: a look at its state needs no settings and no key."""

    def __init__(
        self,
        home: Home,
        environ: Mapping[str, str],
        flags: Mapping[str, object] | None = None,
        warn: Callable[[str], None] = lambda warning: None,
        *,
        systems: Callable[[], Sequence[System]] = house,
    ) -> None:
        """`flags`: settings that the door was given; None means not given. `warn` is told of each oddity in `.env`.
        `systems` loads those of this council."""
        self.home = home
        self.environ = environ
        self.flags = flags or {}
        self._warn = warn
        self.systems = systems

    def asking(self, model: str) -> Desk:
        """The same home and keys with another model. Work that asks no model takes `offline`, which needs no key."""
        desk = copy.copy(self)
        desk.flags = {**self.flags, "model": model}
        desk.keys = self.keys
        desk.__dict__.pop("loaded", None)
        if "loaded" in self.__dict__:  # what is odd there is told already
            desk._warn = lambda warning: None
        return desk

    @cached_property
    def loaded(self) -> LoadedSettings:
        """The settings with the place that each comes from. Raises ConfigError."""
        from council.settings import load_settings

        found = load_settings(self.home, flags=self.flags, environ=self.environ)
        for warning in found.warnings:
            self._warn(warning)
        return found

    @property
    def settings(self) -> Settings:
        """Raises ConfigError."""
        return self.loaded.settings

    @cached_property
    def zone(self) -> tzinfo | None:
        """The home's zone; None, the machine's, also while the settings cannot be read: that is warned of, and hides no run."""
        try:
            return self.settings.zone
        except ConfigError as error:
            self._warn(f"{error.message} Times are in the machine's zone. Fix: {error.fix}")
            return None

    @cached_property
    def keys(self) -> ProviderKeys:
        """The providers' keys, those in the vault among them. They know which were asked for, and so what to redact."""
        from council.settings import load_provider_keys

        def in_vault(name: str) -> Secret | None:
            from council.app.home_store import key_in_vault

            return key_in_vault(name, self.home, self.settings, self.keys, self.environ)

        return load_provider_keys(self.home, self.environ).beyond_them(in_vault)

    @cached_property
    def store(self) -> Looking:
        """The home's database, to look at: nothing is made or changed. Raises ConfigError, StorageFailed."""
        is_server = names_a_server(self.home, self.environ)
        return looking(self.home.runtime, self.settings.database_url if is_server else None)

    @property
    def ledger(self) -> Ledger:
        """The home's runs, to look at. Raises as `store`."""
        return Ledger(self.store)

    @property
    def receipts(self) -> Receipts:
        """The home's receipts, to look at. Raises as `store`."""
        return Receipts(self.store)

    def safe(self) -> AbstractContextManager[Safe]:
        """The database to write to, with audit, users and vault; made if need be. Raises ConfigError, StorageFailed."""
        from council.app.home_store import open_safe

        return open_safe(self.home, self.settings, self.keys, self.environ)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The home's lock, so that no daemon works meanwhile. Raises DaemonRunning when somebody has it."""
        self.home.ensure_runtime()
        lock = FileLock(self.home.lock_file)
        try:
            lock.acquire({"leaves": True})
        except DaemonRunning as error:
            # A holder that does not leave by itself is a daemon, which cannot do this work instead.
            pid = error.data["pid"]
            if pid is not None and not error.data["leaves"]:
                error.fix = f"stop process {pid} on {error.data['host']}, then try again"
            raise
        try:
            yield
        finally:
            lock.release()

    @cached_property
    def commands(self) -> CommandTypes:
        """The types of command of its systems. Raises ConfigError."""
        from council.app import commands_of

        return commands_of(self.systems())

    @property
    def tables(self) -> tuple[str, ...]:
        """The modules that declare the tables of the home's database."""
        from council.app import tables_of

        return tables_of(self.systems())

    def admission_of(self, command: CommandBase) -> Grant | Receipt:
        """The word of the home's daemon on a command, without an app. Raises as `admission`."""
        from council.engine.admission import admission

        with self.premises() as premises:
            return admission(self.commands, premises, command)

    @contextlib.contextmanager
    def premises(self) -> Iterator[Premises]:
        """The state of the home by which commands are admitted. Raises ConfigError, StorageFailed."""
        from council.engine.runs import Premises

        def require_model(spelling: str) -> None:
            from council.turns.model_building import build_model

            build_model(self.home, self.settings, self.keys, spelling)

        with ConfinedRoot(self.home.root) as root:
            yield Premises(
                self.home, self.settings, self.store, root, redactor=self.keys.redactor,
                ask_house=partial(self.ask_offline, writes=True), require_model=require_model,
            )  # fmt: skip

    def personas(self) -> dict[str, AgentManifest]:
        """Every persona of the home by its role. Raises PersonaError."""
        from council.agents.manifest import load_personas, seeds_folder

        return load_personas(self.home.personas, seeds_folder(self.home, self.settings))

    def tools(self) -> dict[str, str]:
        """The tools of this council: the name of each, in capitals, with its effect. Raises ConfigError, StorageFailed."""

        async def effects(app: App) -> dict[str, str]:
            return {tool.name.upper(): tool.effect for tool in app.tools}

        return self.ask_offline(effects)

    def reading_tools(self) -> tuple[str, ...]:
        """The names, in capitals, of the tools of this council that only read. Raises ConfigError, StorageFailed."""
        return tuple(name for name, effect in self.tools().items() if effect == "read")

    def ask_offline(self, work: Callable[[App], Awaitable[Result]], *, writes: bool = False) -> Result:
        """The result of `work` over this home's council with the offline model, which needs no key and is not asked. The
        database is only read. `writes`: `work` may write to it, and takes back what it wrote."""
        import asyncio

        from council.app import build_app

        settings = self.settings.model_copy(update={"model": "offline"})
        look = None if writes else self.store
        app = build_app(self.home, settings, self.keys, systems=self.systems(), environ=self.environ, look=look)

        async def done() -> Result:
            try:
                return await work(app)
            finally:
                await app.aclose()

        return asyncio.run(done())
