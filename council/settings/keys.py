"""The providers' keys: read from the environment, then from `.env`, kept as Secrets. Never written to `os.environ`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

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
    """`sources[name]`: `environment` or `.env`, for the names that are set. `redactor` takes every key that was asked
    for out of texts. `beyond` is asked for what neither place holds: the vault."""

    sources: Mapping[str, str] = field(default_factory=dict)
    _values: dict[str, Secret] = field(default_factory=dict, repr=False)
    _layers: tuple[tuple[str, Mapping[str, str]], ...] = field(default=(), repr=False)
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    beyond: Callable[[str], Secret | None] = field(default=lambda name: None, repr=False)

    def get(self, name: str) -> Secret | None:
        """The value of one name, None when it is absent or empty. From then on it is one of `secrets`."""
        if name not in self._values:
            found = self._find(name)
            value = Secret(found[0]) if found else None
            if value is None and name != BASE_URL_NAME:
                value = self.beyond(name)
            if value is not None:
                self._values[name] = value
                if name != BASE_URL_NAME:
                    self.redactor.register(value)
        return self._values.get(name)

    def beyond_them(self, beyond: Callable[[str], Secret | None]) -> ProviderKeys:
        """The same keys, which ask `beyond` for what is set nowhere."""
        return replace(self, beyond=beyond)

    def variable(self, name: str) -> str | None:
        """The value of a name that holds no secret, such as an address."""
        found = self._find(name)
        return found[0] if found else None

    def source(self, name: str) -> str | None:
        """The place where a name is set, None when it is not."""
        found = self._find(name)
        return found[1] if found else None

    def register(self, names: Iterable[str]) -> None:
        """Makes these names `secrets` as well, where they are set; what lies beyond is not asked."""
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
        value = self.get(BASE_URL_NAME)
        return value.reveal() if value else None

    def secrets(self) -> list[Secret]:
        """Every key that is set: what a Redactor is fed with."""
        return [secret for name, secret in self._values.items() if name != BASE_URL_NAME]


def load_provider_keys(home: Home, environ: Mapping[str, str]) -> ProviderKeys:
    """Every value of `.env` is taken out of texts, but for settings and plain addresses. Raises ConfigError for one
    that is too large."""
    dotenv, _ = read_dotenv(home.root / ".env")
    keys = ProviderKeys(_layers=((ENVIRONMENT, dict(environ)), (DOTENV, dotenv)))
    keys.register((*PROVIDER_NAMES, *OTHER_SECRETS))
    for name, value in dotenv.items():
        if not (name.startswith("COUNCIL_") or name == BASE_URL_NAME or _ADDRESS.fullmatch(value)):
            keys.redactor.register(Secret(value))
    sources = {name: source for name in PROVIDER_NAMES if (source := keys.source(name))}
    return replace(keys, sources=MappingProxyType(sources))


def keys_of_environment(environ: Mapping[str, str]) -> ProviderKeys:
    """Those of no home."""
    keys = ProviderKeys(_layers=((ENVIRONMENT, dict(environ)),))
    keys.register((*PROVIDER_NAMES, *OTHER_SECRETS))
    return keys
