"""The home, the settings and the keys, as the options of the top command choose them for every command below it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from council.app import App
    from council.audit.trail import Trail
    from council.engine.ledger import Ledger
    from council.engine.receipts import Receipts
    from council.redaction import Secret
    from council.settings import Home, LoadedSettings, ProviderKeys
    from council.storage.reader import Looking

Result = TypeVar("Result")


@dataclass
class CliState:
    """Stored on `ctx.obj`. `flags`: settings given on the command line; None means not given.

    Everything is looked up when asked for: `council init` and `council --help` need no home.
    """

    home_flag: Path | None = None
    flags: dict[str, object] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    _loaded: LoadedSettings | None = field(default=None, repr=False)
    _loaded_for: dict[str, object] = field(default_factory=dict, repr=False)
    _keys: ProviderKeys | None = field(default=None, repr=False)
    _store: Looking | None = field(default=None, repr=False)

    def home(self) -> Home:
        """Raises HomeNotFound."""
        from council.settings.home import find_home

        return find_home(self.home_flag, self.environ, Path.cwd())

    def settings(self) -> LoadedSettings:
        """Raises ConfigError. An oddity in `.env` is told once, on stderr."""
        from council.settings import load_settings

        is_first = self._loaded is None
        if self._loaded is None or self._loaded_for != self.flags:
            self._loaded = load_settings(self.home(), flags=self.flags, environ=self.environ)
            self._loaded_for = self.flags
            for warning in self._loaded.warnings if is_first else ():
                typer.echo(f"warning: {warning}", err=True)
        return self._loaded

    def keys(self) -> ProviderKeys:
        """The same object each time: it knows which names were asked for, and so what to keep out of texts."""
        from council.settings import load_provider_keys

        def in_vault(name: str) -> Secret | None:
            from council.app.safekeeping import key_in_vault  # late: most commands ask for no key

            return key_in_vault(name, self.home(), self.settings().settings, self.keys(), self.environ)

        if self._keys is None:
            self._keys = load_provider_keys(self.home(), self.environ).beyond_them(in_vault)
        return self._keys

    def store(self) -> Looking:
        """The home's database, to look at: nothing is made or changed. Raises ConfigError, StorageFailed."""
        from council.settings.home import names_a_server
        from council.storage.reader import looking

        if self._store is None:
            is_server = names_a_server(self.home(), self.environ)
            self._store = looking(self.home().runtime, self.settings().settings.database_url if is_server else None)
        return self._store

    def ledger(self) -> Ledger:
        """The home's runs, to look at. Raises as `store`."""
        from council.engine.ledger import Ledger

        return Ledger(self.store())

    def receipts(self) -> Receipts:
        """The home's receipts, to look at. Raises as `store`."""
        from council.engine.receipts import Receipts

        return Receipts(self.store())

    @contextlib.contextmanager
    def trail(self) -> Iterator[Trail]:
        """The home's audit, to write to; made where there is none. Raises ConfigError, StorageFailed."""
        from council.app.safekeeping import build_trail, open_store

        home, settings, keys = self.home(), self.settings().settings, self.keys()
        with contextlib.closing(open_store(home, settings)) as store:
            yield build_trail(home, store, settings, keys, self.environ, keys.redactor)

    def read_offline(self, read: Callable[[App], Awaitable[Result]]) -> Result:
        """The result of `read` over this home's council with the offline model, which is not asked: reading what was
        recorded needs no key."""
        import asyncio

        from council.app import build_app

        settings = self.settings().settings.model_copy(update={"model": "offline"})
        app = build_app(self.home(), settings, self.keys(), environ=self.environ)

        async def work() -> Result:
            try:
                return await read(app)
            finally:
                await app.aclose()

        return asyncio.run(work())

    def redact(self, text: str) -> str:
        """`text` without the keys that were looked at, those of the environment, and what looks like one."""
        from council.settings.keys import keys_of_environment

        return (self._keys or keys_of_environment(self.environ)).redactor.redact(text)

    def styled(self, text: str, *, fg: str) -> str:
        """`text` in a colour on a terminal, as it is elsewhere and when NO_COLOR is set (no-color.org)."""
        return typer.style(text, fg=fg) if self.coloured else text

    @property
    def hyperlinked(self) -> bool:
        """True on a terminal, other than one that says it knows no escape sequences."""
        return sys.stdout.isatty() and self.environ.get("TERM", "") not in ("", "dumb", "linux")

    @property
    def coloured(self) -> bool:
        return sys.stdout.isatty() and not self.environ.get("NO_COLOR")


def state(ctx: typer.Context) -> CliState:
    """The state that the top command stored, or an empty one where a sub-command runs by itself."""
    return ctx.ensure_object(CliState)
