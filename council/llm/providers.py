"""Providers, from which models come: each is one file with a `Provider` (or a plain function) and an entry point
`council.providers`. The council's own are found without a scan of what is installed, which costs a tenth of a second.
Nothing installed can take their names. See docs/models.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from council.errors import ConfigError, CouncilError
from council.llm.base import Model
from council.proposals import nearest
from council.redaction import Secret
from council.settings.model_names import meant_model

if TYPE_CHECKING:
    from council.llm.embeddings import Embedder

Built = TypeVar("Built")
GROUP = "council.providers"

# As in pyproject.toml; a test holds them equal.
BUILT_IN: Mapping[str, str] = {
    "gemini": "council.llm.gemini:provider",
    "offline": "council.llm.offline:provider",
    "scripted": "council.llm.scripted:provider",
    "cassette": "council.llm.replay:provider",
    "openai": "council.llm.presets:openai",
    "openrouter": "council.llm.presets:openrouter",
    "huggingface": "council.llm.presets:huggingface",
    "kairos": "council.llm.presets:kairos",
    "ollama": "council.llm.presets:ollama",
    "vllm": "council.llm.presets:vllm",
    "llamacpp": "council.llm.presets:llamacpp",
}
LIMITS = frozenset({"request_timeout_s", "max_output_tokens", "temperature"})  # that the settings have for all, too
_DEFECT = "this is a defect of the provider: update it, or choose another model"
OWN_SERVER = "council.llm.presets:own_server"  # any other name whose settings table has a base_url


@dataclass(frozen=True)
class ListedModel:
    """A model that a provider says it has; `context_tokens` None where it does not say."""

    id: str
    context_tokens: int | None = None


@dataclass(frozen=True)
class Setup:
    """`model_id` is what stands behind the colon. `options` is the table `[providers.<name>]`, as far as it is set.
    `key(name)` finds a secret, and has it kept out of every text; `variable(name)` what is none, such as an address.
    The three limits are settled. `embedding_dimensions` None: the model's own size."""

    provider: str
    model_id: str
    home: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    key: Callable[[str], Secret | None] = lambda name: None
    variable: Callable[[str], str | None] = lambda name: None
    request_timeout_s: float = 120
    max_output_tokens: int = 8192
    temperature: float | None = None
    embedding_dimensions: int | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model_id}" if self.model_id else self.provider

    def require_key(self, *names: str) -> Secret:
        """The first of these that is set. Raises ConfigError naming the first one."""
        key = next((key for name in names if (key := self.key(name)) is not None), None)
        if key is None:
            raise ConfigError(
                f"the model {self.name} needs a key, and {names[0]} is not set.",
                fix=f"put {names[0]}=… into .env, name another model (`council models list`), or try it "
                "without one: `council run --model offline`",
                missing_key=names[0],
            )
        if not (key.reveal().isascii() and key.reveal().isprintable() and " " not in key.reveal()):
            raise ConfigError(
                f"{names[0]} contains characters that a key cannot have.",
                fix="copy the key again into .env, without spaces",
            )
        return key

    def require_known_options(self, known: Collection[str]) -> None:
        """Raises ConfigError for a key of the table that this provider does not have."""
        for name in self.options:
            if name not in known:
                near = nearest(name, known)
                fix = f"did you mean {near}?" if near else f"it takes {', '.join(sorted(known)) or 'none'}."
                raise ConfigError(
                    f"`{name}` in [providers.{self.provider}] is not a setting of this provider.", fix=fix
                )


@dataclass(frozen=True)
class Provider:
    """`defaults`: the provider's own limits. `key_names`: the variables that may hold its key, the first one named to
    people; `key_needed`: there is no model without one. `local`: it runs on this machine. `served_tokens` asks how much
    the server holds for a model that it has loaded."""

    build: Callable[[Setup], Model]
    list_models: Callable[[Setup], Awaitable[Sequence[ListedModel]]] | None = None
    defaults: Mapping[str, float] = field(default_factory=dict)
    key_names: tuple[str, ...] = ()
    key_needed: bool = False
    local: bool = False
    summary: str = ""
    served_tokens: Callable[[Setup], Awaitable[int | None]] | None = None
    build_embedder: Callable[[Setup], Embedder] | None = None

    def keys_of(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The variables that may hold the key, with the table's own `key_env`."""
        own = options.get("key_env")
        if own is None:
            return self.key_names
        return (own,) if own else ()


def find_provider(name: str, tables: Mapping[str, Mapping[str, Any]]) -> Provider:
    """Built in, installed, or a server of one's own (a settings table with a base_url). Raises ConfigError."""
    if name in BUILT_IN:
        return _load(EntryPoint(name, BUILT_IN[name], GROUP))
    installed = installed_providers()
    if name in installed:
        return _load(installed[name])
    if tables.get(name, {}).get("base_url"):
        return _load(EntryPoint(name, OWN_SERVER, GROUP))
    known = sorted({*BUILT_IN, *installed, *tables} - {name})
    if name in tables:
        raise ConfigError(
            f"there is no provider {name!r}, and [providers.{name}] has no base_url.",
            fix="give it the base_url of its server, or install the package that provides it",
        )
    meant = meant_model(f"{name}:") or nearest(name, known)
    hint = f"did you mean {meant.rstrip(':')}? " if meant else ""
    raise ConfigError(
        f"there is no provider {name!r}.", fix=f"{hint}the providers are {', '.join(known)}; see docs/models.md"
    )


def installed_providers() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def build(provider: Provider, setup: Setup) -> Model:
    """Raises ConfigError: what the provider says is missing, or that it failed."""
    return _built(provider.build, setup, "generate", "model")


def build_embedder(provider: Provider, setup: Setup) -> Embedder:
    if provider.build_embedder is None:
        raise ConfigError(
            f"the provider {setup.provider!r} has no embedding models, and embedding_model is {setup.name}.",
            fix="name one of gemini, openai, ollama, vllm or another OpenAI-compatible server; or leave it unset",
        )
    return _built(provider.build_embedder, setup, "embed", "embedding model")


def _built(make: Callable[[Setup], Built], setup: Setup, method: str, kind: str) -> Built:
    try:
        built = make(setup)
    except CouncilError:
        raise
    except Exception as error:  # a provider is foreign code: what it raises must still be told as a setting to mend
        raise ConfigError(
            f"the provider {setup.provider!r} failed to build {setup.name} ({type(error).__name__}).",
            fix=_DEFECT,
        ) from error
    if not callable(getattr(built, method, None)):
        raise ConfigError(
            f"the provider {setup.provider!r} did not give a {kind} ({type(built).__name__}).",
            fix=_DEFECT,
        )
    return built


def _load(point: EntryPoint) -> Provider:
    try:
        found = point.load()
    except Exception as error:  # importing foreign code can raise anything
        raise ConfigError(
            f"the provider {point.name!r} cannot be loaded from {point.value} ({type(error).__name__}: {error}).",
            fix="install it again, or choose another model",
        ) from error
    if isinstance(found, Provider):
        return found
    if callable(found):
        return Provider(found)
    raise ConfigError(
        f"the provider {point.name!r} ({point.value}) is neither a Provider nor a function.",
        fix=_DEFECT,
    )
