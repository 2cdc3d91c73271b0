"""The OpenAI-compatible providers: where each server is, how its key is called, and what it is known to do.
`[providers.<name>]` in council.toml changes any of it. `kairos` is the model set of the KAIROS document ("Models")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from council.errors import ConfigError, ModelError
from council.llm.base import Model
from council.llm.embeddings import Embedder
from council.llm.openai_answer import count_of
from council.llm.openai_compatible import OpenAICompatibleModel, OpenAIEmbedder
from council.llm.openai_dialect import Server
from council.llm.providers import LIMITS, ListedModel, Provider, Setup
from council.proposals import nearest
from council.redaction import Secret

OLLAMA_PORT = 11434
_OPTIONS = LIMITS | {"base_url", "key_env", "context_tokens", "token_limit_field", "json_mode", "headers", "models"}


@dataclass(frozen=True)
class Preset:
    """`models` are names for ids, of which `first` is meant by none. `address` and `window` are variables of its base
    URL and context."""

    server: Server
    key_needed: bool = False
    models: Mapping[str, str] = field(default_factory=dict)
    first: str = ""
    address: str = ""
    window: str = ""

    def build(self, setup: Setup) -> Model:
        setup.require_known_options(_OPTIONS)
        return self._model(setup, self._model_id(setup))

    def build_embedder(self, setup: Setup) -> Embedder:
        setup.require_known_options(_OPTIONS)
        server = self.server_of(setup)
        return OpenAIEmbedder(
            self._model_id(setup),
            server=server,
            api_key=self._key(setup, server),
            dimensions=setup.embedding_dimensions,
            request_timeout_s=setup.request_timeout_s,
        )

    async def list_models(self, setup: Setup) -> Sequence[ListedModel]:
        """Raises ConfigError without a key that is needed, ModelError when the server does not answer."""
        async with aclosing(self._model(setup, "")) as model:
            return await model.list_models()

    async def served_by_ollama(self, setup: Setup) -> int | None:
        """Asks how many tokens Ollama gives a model that it has loaded; it cuts longer prompts off in silence."""
        root = self.server_of(setup).base_url.rstrip("/").removesuffix("/v1")
        async with aclosing(self._model(replace(setup, options={**setup.options, "base_url": root}), "")) as model:
            try:
                content = await model.read("/api/ps")
            except ModelError:
                return None  # an older Ollama, or another server at its place: it does not say
        loaded = content.get("models") if isinstance(content, dict) else None
        entries = [entry for entry in loaded or [] if isinstance(entry, dict)]
        wanted = self._model_id(setup)
        names = {wanted, wanted if ":" in wanted else f"{wanted}:latest"}
        return next(
            (count_of(entry, "context_length") or None for entry in entries if entry.get("name") in names), None
        )

    def _model(self, setup: Setup, model_id: str) -> OpenAICompatibleModel:
        server = self.server_of(setup)
        return OpenAICompatibleModel(
            model_id,
            server=server,
            api_key=self._key(setup, server),
            request_timeout_s=setup.request_timeout_s,
            max_output_tokens=setup.max_output_tokens,
            temperature=setup.temperature,
        )

    def server_of(self, setup: Setup) -> Server:
        changes: dict[str, Any] = {
            name: value for name, value in setup.options.items() if name in Server.__dataclass_fields__
        }
        named = setup.variable(self.address) if self.address else None
        if "base_url" not in changes and named:
            changes["base_url"] = ollama_base_url(named) if self.address == "OLLAMA_HOST" else named
        if "context_tokens" not in changes and self.window and (said := setup.variable(self.window)):
            if not (said.isascii() and said.isdigit() and int(said) > 0):
                raise ConfigError(
                    f"{self.window} is {said!r}, which is not a number of tokens.",
                    fix="write a whole number, or unset it",
                )
            changes["context_tokens"] = int(said)
        return replace(self.server, name=setup.provider, **changes)

    def _key(self, setup: Setup, server: Server) -> Secret | None:
        if not server.key_env:
            return None
        if self.key_needed or "key_env" in setup.options:
            return setup.require_key(server.key_env)
        return setup.key(server.key_env)

    def _model_id(self, setup: Setup) -> str:
        named: dict[str, str] = {**self.models, **setup.options.get("models", {})}
        given = setup.model_id or self.first
        if given in named:
            return named[given]
        if not given:
            raise ConfigError(
                f"the model {setup.provider!r} does not say which one.",
                fix=f"write {setup.provider}:<model id>; `council models list` shows what there is",
            )
        if self.models and given not in named.values() and "/" not in given:
            near = nearest(given, named)
            hint = f"did you mean {setup.provider}:{near}? " if near else ""
            raise ConfigError(
                f"{setup.provider} has no model {given!r}.", fix=f"{hint}it has {', '.join(named)}, or an id of the Hub"
            )
        return given


def ollama_base_url(host: str) -> str:
    """The base URL behind OLLAMA_HOST, which may be an address to listen on: `0.0.0.0`, `:11434`, `gpu-box`, a URL."""
    scheme, _, rest = host.rpartition("://")
    address = rest.rstrip("/")
    parts = urlsplit(f"//{address}")
    name = "127.0.0.1" if parts.hostname in (None, "", "0.0.0.0", "::") else parts.hostname  # noqa: S104 not bound to
    try:
        port = parts.port
    except ValueError:
        raise ConfigError(
            f"OLLAMA_HOST is {host!r}, which is not an address.", fix="write host:port, or unset it"
        ) from None
    port = port or {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT)
    shown = f"[{name}]" if ":" in str(name) else name
    return f"{scheme or 'http'}://{shown}:{port}{parts.path}/v1"


def _provider(
    server: Server,
    summary: str,
    *,
    local: bool = False,
    defaults: Mapping[str, float] = MappingProxyType({}),
    **known: Any,
) -> Provider:
    preset = Preset(server, **known)
    return Provider(
        preset.build,
        preset.list_models,
        defaults=defaults,
        key_names=(server.key_env,) if server.key_env else (),
        key_needed=preset.key_needed,
        local=local,
        summary=summary,
        served_tokens=preset.served_by_ollama if server.name == "ollama" else None,
        build_embedder=preset.build_embedder,
    )


_HUGGING_FACE = Server(
    "huggingface", "https://router.huggingface.co/v1", key_env="HF_TOKEN", context_tokens=32_768, json_mode="object"
)
openai = _provider(
    Server(
        "openai",
        "https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        context_tokens=128_000,
        token_limit_field="max_completion_tokens",  # noqa: S106 a field of the request
    ),
    "OpenAI, or what OPENAI_BASE_URL names",
    key_needed=True,
    address="OPENAI_BASE_URL",
)
openrouter = _provider(
    Server("openrouter", "https://openrouter.ai/api/v1", key_env="OPENROUTER_API_KEY", context_tokens=65_536),
    "OpenRouter: many providers behind one key",
    key_needed=True,
)
huggingface = _provider(_HUGGING_FACE, "Hugging Face Inference Providers", key_needed=True)
kairos = _provider(
    replace(_HUGGING_FACE, name="kairos", context_tokens=131_072),
    "the KAIROS set: primary, fallback, reasoning",
    defaults={"temperature": 0.2, "max_output_tokens": 4096, "request_timeout_s": 60},
    key_needed=True,
    models={
        "primary": "Qwen/Qwen2.5-7B-Instruct",
        "fallback": "microsoft/Phi-3.5-mini-instruct",
        "reasoning": "deepseek-ai/DeepSeek-R1",
    },
    first="primary",
)
ollama = _provider(
    # Ollama cuts a longer prompt off in silence, and holds 4,096 tokens unless told otherwise.
    Server(
        "ollama",
        f"http://127.0.0.1:{OLLAMA_PORT}/v1",
        key_env="OLLAMA_API_KEY",
        context_tokens=4096,
        start="`ollama serve`",
        fetch="ollama pull {model}",
    ),
    "Ollama on this machine, or at OLLAMA_HOST",
    local=True,
    address="OLLAMA_HOST",
    window="OLLAMA_CONTEXT_LENGTH",
)
vllm = _provider(Server("vllm", "http://127.0.0.1:8000/v1", start="`vllm serve <model>`"), "a vLLM server", local=True)
llamacpp = _provider(
    Server("llamacpp", "http://127.0.0.1:8080/v1", start="`llama-server -m <file>`"), "a llama.cpp server", local=True
)
own_server = _provider(Server("own", ""), "a server of your own")
