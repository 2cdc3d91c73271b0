"""The providers' keys: read from the environment, then from `.env`, kept as Secrets. Never written to `os.environ`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from council.redaction import Redactor, Secret
from council.settings.home import Home
from council.settings.layers import DOTENV, ENVIRONMENT, PROVIDER_NAMES, read_dotenv

BASE_URL_NAME = "GOOGLE_GEMINI_BASE_URL"  # read beside the keys, but no secret
# What libraries here read by themselves: kept out of texts, too.
OTHER_SECRETS = ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "CREDENTIAL_ENCRYPTION_KEY")
_ADDRESS = re.compile(r"https?://[^\s@?]*")
KEY_NAMES = tuple(name for name in PROVIDER_NAMES if name != BASE_URL_NAME)


@dataclass(frozen=True)
class ProviderKeys:
    """Any name can be asked for, beside those that everyone knows. `redactor` takes every key that was asked for out of texts.
    `beyond` is asked for what neither place holds: the vault."""

    _values: dict[str, Secret] = field(default_factory=dict, repr=False)
    _layers: tuple[tuple[str, Mapping[str, str]], ...] = field(default=(), repr=False)
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    beyond: Callable[[str], Secret | None] = field(default=lambda name: None, repr=False)

    def get(self, name: str) -> Secret | None:
        if name not in self._values:
            found = self._find(name)
            value = Secret(found[0]) if found else self.beyond(name)
            if value is not None:
                self._values[name] = value
                self.redactor.register(value)
        return self._values.get(name)

    def beyond_them(self, beyond: Callable[[str], Secret | None]) -> ProviderKeys:
        return replace(self, beyond=beyond)

    def variable(self, name: str) -> str | None:
        """The value of a name that holds no secret, such as an address."""
        found = self._find(name)
        return found[0] if found else None

    def source(self, name: str) -> str | None:
        """The place where a name is set: `environment` or `.env`; None when it is not."""
        found = self._find(name)
        return found[1] if found else None

    @property
    def sources(self) -> dict[str, str]:
        return {name: source for name in PROVIDER_NAMES if (source := self.source(name))}

    def register(self, names: Iterable[str]) -> None:
        """Takes these out of texts as well, where they are set; what lies beyond is not asked."""
        for name in names:
            if self._find(name):
                self.get(name)

    def _find(self, name: str) -> tuple[str, str] | None:
        for source, mapping in self._layers:
            if value := mapping.get(name, "").strip():
                return value, source
        return None

    @property
    def gemini_base_url(self) -> str | None:
        return self.variable(BASE_URL_NAME)


def load_provider_keys(home: Home, environ: Mapping[str, str]) -> ProviderKeys:
    """Every value of `.env` is taken out of texts, but for settings and plain addresses. Raises ConfigError for one that is
    too large."""
    dotenv, _ = read_dotenv(home.root / ".env")
    keys = keys_of_environment(environ, (DOTENV, dotenv))
    for name, value in dotenv.items():
        if not (name.startswith("COUNCIL_") or name == BASE_URL_NAME or _ADDRESS.fullmatch(value)):
            keys.redactor.register(Secret(value))
    return keys


def keys_of_environment(environ: Mapping[str, str], *layers: tuple[str, Mapping[str, str]]) -> ProviderKeys:
    """Those of no home, and of further `layers`."""
    keys = ProviderKeys(_layers=((ENVIRONMENT, dict(environ)), *layers))
    keys.register((*KEY_NAMES, *OTHER_SECRETS))
    return keys
