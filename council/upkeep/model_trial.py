"""The models there are, and their abilities here: the configured one, every provider, a local Ollama, and a trial of one.

`overview` asks nothing of the outside but a server on this machine, and not for long. `trial` makes four tiny calls.
Neither ever shows a key, only whether it is there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from typing import Any, Literal

from council.agents.manifest import load_personas, seeds_folder
from council.budgets.prices import Price
from council.errors import ConfigError, CouncilError, ModelError
from council.ids import Clock
from council.llm.base import Message, Model, Reply, ToolSpec, Usage
from council.llm.providers import BUILT_IN, ListedModel, installed_providers
from council.llm.reply_limits import whole_characters
from council.settings import Home, ProviderKeys, Settings
from council.turns.model_building import build_embedding_model, build_model, model_price, provider_of

_MEANINGS = ("Where do we keep the car?", "Which garage is the automobile in?", "The soup is too salty.")
LOCAL_TIMEOUT_S = 2.0  # a server on this machine answers at once, or is not there
_TRIAL_TOKENS = 256  # a thinking model needs some before its first word
_SCHEMA = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
_TOOL = ToolSpec("report", "Reports whether the system is ready.", {**_SCHEMA, "additionalProperties": False})

Works = Literal["yes", "no", "unclear"]


@dataclass(frozen=True)
class KeyState:
    """A provider's key, without the key: `source` is where it was found, None where it is not set."""

    names: tuple[str, ...]
    needed: bool
    source: str | None

    @property
    def words(self) -> str:
        if self.source is not None:
            return f"set ({self.source})"
        if not self.names:
            return "none needed"
        return f"{self.names[0]} not set" if self.needed else f"optional ({self.names[0]})"


@dataclass(frozen=True)
class ProviderState:
    """A provider: `error` says why it cannot be used."""

    name: str
    summary: str = ""
    key: KeyState | None = None
    local: bool = False
    error: str = ""


@dataclass(frozen=True)
class ServedModels:
    """The models that a provider's server names, or why it names none."""

    provider: str
    models: tuple[ListedModel, ...] = ()
    error: str = ""
    fix: str = ""


@dataclass(frozen=True)
class ModelUse:
    """A model: `by` whom it is asked beside the one in use, `source` where that is said. `error` and `fix`: why it cannot be
    had. Prices are US dollars per million tokens; an embedding model has no context."""

    name: str
    by: str
    source: str
    context_tokens: int | None = None
    price: Price | None = None
    error: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Overview:
    """`also`: all other models that settings and personas name, in the order in which they come to speak."""

    chosen: ModelUse
    also: tuple[ModelUse, ...]
    providers: tuple[ProviderState, ...]
    ollama: ServedModels


@dataclass(frozen=True)
class Feature:
    """One thing that was tried, and what came of it in words."""

    name: str
    works: Works
    words: str


@dataclass(frozen=True)
class Trial:
    """A model that answered. `served_tokens` is what its server holds for it, where it says so."""

    model: str
    latency_s: float
    words: str
    usage: Usage | None
    context_tokens: int
    served_tokens: int | None
    price: Price | None
    features: tuple[Feature, ...] = field(default=())


async def overview(home: Home, settings: Settings, keys: ProviderKeys, *, source: str) -> Overview:
    """`source`: where the setting `model` comes from."""
    own = [name for name in settings.providers if name not in BUILT_IN]
    known = []
    for name in [*BUILT_IN, *sorted({*own, *installed_providers()})]:
        try:
            provider, setup = provider_of(home, settings, keys, name)
        except ConfigError as error:
            known.append(ProviderState(name, error=str(error)))
            continue
        names = provider.keys_of(setup.options)
        found = next((found for variable in names if (found := keys.source(variable))), None)
        key = KeyState(names, provider.key_needed or bool(setup.options.get("key_env")), found)
        known.append(ProviderState(name, provider.summary, key, provider.local))
    return Overview(
        await _used(home, settings, keys, settings.model, "", source),
        tuple([await _used(home, settings, keys, *each) for each in named_models(home, settings)]),
        tuple(known),
        await listing(home, settings, keys, "ollama", timeout_s=LOCAL_TIMEOUT_S),
    )


async def listing(
    home: Home, settings: Settings, keys: ProviderKeys, provider: str, *, timeout_s: float | None = None
) -> ServedModels:
    """The models of one provider, asked for now. Raises ConfigError for a provider that is not there."""
    found, setup = provider_of(home, settings, keys, provider)
    if found.list_models is None:
        why = f"{provider} cannot be asked for its models."
        return ServedModels(provider, error=why, fix="see its own documentation")
    try:
        models = await found.list_models(replace(setup, request_timeout_s=timeout_s) if timeout_s else setup)
    except (ConfigError, ModelError) as error:
        return ServedModels(provider, error=error.message, fix=error.fix)
    return ServedModels(provider, tuple(models))


def named_models(home: Home, settings: Settings) -> list[tuple[str, str, str]]:
    """The models beside the one in use: those of single agents, stand-ins, and what embeds. Each stands with whom it is
    asked by, and where that is said. Raises PersonaError for a persona that cannot be read."""
    found: list[tuple[str, str, str]] = []
    for role, chain in settings.agent_models.items():
        found += [(name, _in_chain(role, chain, at), "agent_models") for at, name in enumerate(chain)]
    for manifest in load_personas(home.personas, seeds_folder(home, settings)).values():
        place = "its persona"
        if manifest.model and manifest.role in settings.agent_models:
            place = "its persona, but agent_models overrides it"
        found += [(name, _in_chain(manifest.role, manifest.model, at), place) for at, name in enumerate(manifest.model)]
    found += [(name, "any agent, as a fallback", "fallback_models") for name in settings.fallback_models]
    if settings.embedding_model is not None:
        found.append((settings.embedding_model, "QUERY_CORTEX", "embedding_model"))
    return found


def _in_chain(role: str, chain: Sequence[str], at: int) -> str:
    return role if at == 0 else f"{role} instead of {chain[at - 1]}"


async def _used(home: Home, settings: Settings, keys: ProviderKeys, name: str, by: str, source: str) -> ModelUse:
    try:
        embeds = source == "embedding_model"
        model = (build_embedding_model if embeds else build_model)(home, settings, keys, name)
        try:
            price = model_price(settings, model.name)
            return ModelUse(model.name, by, source, getattr(model, "context_tokens", None), price)
        finally:
            await model.aclose()
    except CouncilError as error:
        return ModelUse(name, by, source, error=error.message, fix=error.fix)


async def trial(
    home: Home, settings: Settings, keys: ProviderKeys, name: str, clock: Clock, *, features: bool = True
) -> Trial:
    """One tiny call, and three more that try streaming, JSON mode and native tools. Raises ConfigError when the model
    cannot be built, ModelError when the first call fails."""
    provider, setup = provider_of(home, settings, keys, name)
    model = build_model(home, settings, keys, name)
    try:
        began_s = clock.monotonic_s()
        try:
            reply = await _ask(model, "Answer with the one word: ready")
            words, usage = " ".join(whole_characters(reply.text).split())[:60], reply.usage
        except ModelError as error:
            if error.kind not in ("length", "empty"):  # else it was reached, and that is what was asked
                raise
            words, usage = f"no text ({error.kind})", None
        latency_s = clock.monotonic_s() - began_s
        attempts = {"streaming": _streams, "JSON mode": _gives_json, "native tools": _calls_tools} if features else {}
        tried = [Feature(name, *await _tried(attempt, model)) for name, attempt in attempts.items()]
    finally:
        await model.aclose()
    served = await provider.served_tokens(setup) if provider.served_tokens is not None else None
    price = model_price(settings, model.name)
    return Trial(model.name, latency_s, words, usage, model.context_tokens, served, price, tuple(tried))


@dataclass(frozen=True)
class EmbeddingTrial:
    """An embedding model that answered. `related` and `unrelated`: how near two texts are, from -1 to 1."""

    model: str
    latency_s: float
    dimensions: int
    usage: Usage | None
    price: Price | None
    related: float
    unrelated: float

    @property
    def tells_apart(self) -> bool:
        return self.related > self.unrelated


async def embedding_trial(
    home: Home, settings: Settings, keys: ProviderKeys, name: str, clock: Clock
) -> EmbeddingTrial:
    """One call with three short texts. Raises ConfigError and ModelError as `trial`."""
    embedder = build_embedding_model(home, settings, keys, name)
    try:
        began_s = clock.monotonic_s()
        embedded = await embedder.embed(_MEANINGS)
        latency_s = clock.monotonic_s() - began_s
    finally:
        await embedder.aclose()
    one, same, other = embedded.vectors
    price = model_price(settings, embedder.name)
    nearness = (_nearness(one, same), _nearness(one, other))
    return EmbeddingTrial(embedder.name, latency_s, len(one), embedded.usage, price, *nearness)


def _nearness(one: Sequence[float], other: Sequence[float]) -> float:
    return round(float(sum(map(mul, one, other))), 3)


async def _tried(attempt: Callable[[Model], Awaitable[tuple[Works, str]]], model: Model) -> tuple[Works, str]:
    try:
        return await attempt(model)
    except ModelError as error:
        if error.kind in ("length", "empty"):
            return "unclear", f"no text came within {_TRIAL_TOKENS} tokens ({error.kind})"
        return "no" if error.kind == "request" else "unclear", error.message


async def _streams(model: Model) -> tuple[Works, str]:
    pieces: list[str] = []
    await _ask(model, "Count from one to twenty in words.", on_text=pieces.append)
    return ("yes", f"{len(pieces)} pieces") if len(pieces) > 1 else ("no", "the answer came in one piece")


async def _gives_json(model: Model) -> tuple[Works, str]:
    reply = await _ask(model, 'Answer with this JSON object: {"ready": true}', schema=_SCHEMA)
    mode = getattr(model, "json_mode", "schema")
    if mode == "none":
        return "no", "the server does not support it: Council asks for JSON in words and checks it"
    try:
        ready = json.loads(reply.text)["ready"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "unclear", f"asked for by {mode}, but the answer was not that object"
    return "yes", f"by {mode}" if ready is True else f"by {mode}; it answered {ready!r:.20}"


async def _calls_tools(model: Model) -> tuple[Works, str]:
    reply = await _ask(model, "Call the tool `report` with ready = true.", tools=[_TOOL])
    if any(call.name == _TOOL.name for call in reply.tool_calls):
        return "yes", "it called the tool"
    if not getattr(model, "native_tools", True):
        return "no", "the server refused them: agents write their requests as lines of text"
    return "unclear", "the server accepted them, but the model did not call its tool"


async def _ask(model: Model, words: str, **asked: Any) -> Reply:
    message = Message("user", words)
    return await model.generate([message], system="You answer briefly.", max_output_tokens=_TRIAL_TOKENS, **asked)
