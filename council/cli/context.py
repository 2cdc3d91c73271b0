"""What the options of the top command leave for every command below it: the home, the settings, the keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from council.redaction import Secret
    from council.settings import Home, LoadedSettings, ProviderKeys


@dataclass
class CliState:
    """Stored on `ctx.obj`. `flags`: settings given on the command line; None means not given.

    Everything is looked up when asked for: `council init` and `council --help` need no home.
    """

    home_flag: Path | None = None
    flags: dict[str, object] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    _loaded: LoadedSettings | None = field(default=None, repr=False)
    _keys: ProviderKeys | None = field(default=None, repr=False)

    def home(self) -> Home:
        """Raises HomeNotFound."""
        from council.settings.home import find_home

        return find_home(self.home_flag, self.environ, Path.cwd())

    def settings(self) -> LoadedSettings:
        """Raises ConfigError. What is odd in `.env` is said once, on stderr."""
        from council.settings import load_settings

        if self._loaded is None:
            self._loaded = load_settings(self.home(), flags=self.flags, environ=self.environ)
            for warning in self._loaded.warnings:
                typer.echo(f"warning: {warning}", err=True)
        return self._loaded

    def keys(self) -> ProviderKeys:
        """The same object each time: it knows which names were asked for, and so what to keep out of texts."""
        from council.settings import load_provider_keys

        if self._keys is None:
            found = load_provider_keys(self.home(), self.environ)
            self._keys = found.beyond_them(self._in_vault)
        return self._keys

    def _in_vault(self, name: str) -> Secret | None:
        """A key that neither the environment nor `.env` holds. Imported late: most commands ask for none."""
        from council.app.safekeeping import key_in_vault

        assert self._keys is not None
        return key_in_vault(name, self.home(), self.settings().settings, self._keys, self.environ)

    def redact(self, text: str) -> str:
        """`text` without the keys that were looked at, those of the environment, and what looks like one."""
        from council.settings.keys import keys_of_environment

        return (self._keys or keys_of_environment(self.environ)).redactor.redact(text)

    def styled(self, text: str, *, fg: str) -> str:
        """`text` in a colour on a terminal, as it is elsewhere and when NO_COLOR is set (no-color.org)."""
        return typer.style(text, fg=fg) if self.coloured else text

    @property
    def hyperlinked(self) -> bool:
        """Whether standard output is a terminal, other than one that says it knows no escape sequences."""
        return sys.stdout.isatty() and self.environ.get("TERM", "") not in ("", "dumb", "linux")

    @property
    def coloured(self) -> bool:
        return sys.stdout.isatty() and not self.environ.get("NO_COLOR")


def state(ctx: typer.Context) -> CliState:
    """The state that the top command stored, or an empty one where a sub-command runs by itself."""
    return ctx.ensure_object(CliState)
