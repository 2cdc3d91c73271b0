"""The providers' keys: read from the environment, then from `.env`, kept as Secrets. Never written to `os.environ`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from council.redaction import Secret
from council.settings.home import Home
from council.settings.sources import DOTENV, ENVIRONMENT, PROVIDER_NAMES, read_dotenv

BASE_URL_NAME = "GOOGLE_GEMINI_BASE_URL"  # read beside the keys, but no secret
KEY_NAMES = tuple(name for name in PROVIDER_NAMES if name != BASE_URL_NAME)


@dataclass(frozen=True)
class ProviderKeys:
    """`sources[name]`: `environment` or `.env`, for the names that are set."""

    sources: Mapping[str, str] = field(default_factory=dict)
    _values: Mapping[str, Secret] = field(default_factory=dict, repr=False)

    def get(self, name: str) -> Secret | None:
        """The value of one name, None when it is absent or empty."""
        return self._values.get(name)

    @property
    def gemini_base_url(self) -> str | None:
        value = self.get(BASE_URL_NAME)
        return value.reveal() if value else None

    def secrets(self) -> list[Secret]:
        """Every key that is set: what a Redactor is fed with."""
        return [self._values[name] for name in KEY_NAMES if name in self._values]


def load_provider_keys(home: Home, environ: Mapping[str, str]) -> ProviderKeys:
    """An empty value is an absent one; blanks around a value are dropped. Nothing in `.env` is an error."""
    dotenv, _ = read_dotenv(home.root / ".env")
    values: dict[str, Secret] = {}
    sources: dict[str, str] = {}
    for name in PROVIDER_NAMES:
        for source, mapping in ((ENVIRONMENT, environ), (DOTENV, dotenv)):
            if value := mapping.get(name, "").strip():
                values[name], sources[name] = Secret(value), source
                break
    return ProviderKeys(MappingProxyType(sources), MappingProxyType(values))
