"""`GeminiModel`: the Gemini API behind the `Model` seam, through the google-genai SDK.

One stateless call per request, one attempt per call. Every failure leaves as a `ModelError` whose kind says what to do
next. The SDK (0.8 s, 40 MB) is imported at the first call, and no other module names it.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import ValidationError

from council.errors import ConfigError, ModelError
from council.llm.base import Finish, Message, Reply, RequestOptions, ToolCall, Usage
from council.llm.embeddings import Embedder, Embeddings, Purpose, unit_vectors
from council.llm.gemini_errors import fix_of_kind, refusal_of
from council.llm.http_failures import AnswerTooLarge, Failures, brief, tls_context
from council.llm.providers import LIMITS, ListedModel, Provider, Setup
from council.llm.reply_limits import plausible
from council.redaction import Secret

if TYPE_CHECKING:
    from google.genai import Client, types

DEFAULT_MODEL_ID = "gemini-2.5-flash"
API_URL = "https://generativelanguage.googleapis.com/"
MAX_LISTED_MODELS = 1_000
_USES = frozenset({"generateContent", "embedContent"})


class GeminiModel:
    """`request_timeout_s` bounds a whole call; `context_tokens` is prompt and answer. `base_url` and `api_version` None
    leave the choice to the SDK (its environment variables, then Google's `v1`)."""

    def __init__(
        self,
        model_id: str = DEFAULT_MODEL_ID,
        *,
        api_key: Secret,
        base_url: str | None = None,
        api_version: str | None = None,
        request_timeout_s: float = 120,
        max_output_tokens: int = 8192,
        temperature: float | None = None,
        context_tokens: int = 1_048_576,
        key_name: str = "GEMINI_API_KEY",
    ) -> None:
        self.name = f"gemini:{model_id}"
        self.context_tokens = context_tokens
        self._model_id = model_id
        self._api_key = api_key
        self._base_url = base_url
        self._url = base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or API_URL  # as the SDK chooses
        self._api_version = api_version
        self._timeout_s = request_timeout_s
        self._max_output_tokens = max_output_tokens
        self._temperature = temperature
        self._failures = Failures(
            self.name,
            Secret(api_key.reveal().strip()),
            partial(fix_of_kind, key_name),
            url=self._url,
            address_fix="check the base URL and the API version of the model.",
        )
        self._error = self._failures.error
        self._client: Client | None = None
        self._client_loop: asyncio.AbstractEventLoop | None = None

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """Raises ModelError; see `Model`. `on_text` may get pieces of a reply that fails."""
        with self._provider_failures():
            client = await self._open_client()
            # Plain dicts: half the time of SDK objects on a long history.
            config: dict[str, Any] = {
                "max_output_tokens": asked.get("max_output_tokens") or self._max_output_tokens,
                "automatic_continuation": False,  # on by default and without a bound: one call became 201
                "automatic_function_calling": {"disable": True},
            }
            if asked["system"]:
                config["system_instruction"] = asked["system"]
            warmth = asked.get("temperature")
            warmth = self._temperature if warmth is None else warmth
            if warmth is not None:
                config["temperature"] = warmth
            schema, tools, on_text = asked.get("schema"), asked.get("tools"), asked.get("on_text")
            if schema is not None:
                config["response_mime_type"] = "application/json"
                config["response_json_schema"] = dict(schema)
            if tools:
                declarations = [
                    {"name": tool.name, "description": tool.description, "parameters_json_schema": tool.parameters}
                    for tool in tools
                ]
                config["tools"] = [{"function_declarations": declarations}]
            contents = [{"role": message.role, "parts": [{"text": message.text}]} for message in messages]
            request: dict[str, Any] = {"model": self._model_id, "contents": contents, "config": config}
        answer = GeminiAnswer()
        async with self._failures.whole_call(self._timeout_s):
            if on_text is None:
                with self._provider_failures():
                    answer.add(await client.aio.models.generate_content(**request))
            else:
                async with aclosing(self._chunks(client, request)) as chunks:
                    async for chunk in chunks:
                        if piece := answer.add(chunk):
                            on_text(piece)
                if not answer.finish and not answer.prompt_block and answer.seen_candidate:
                    raise self._error("protocol", f"the answer of {self.name} broke off: no finish reason came.")
        return self._reply(answer)

    async def embed(self, texts: Sequence[str], config: Mapping[str, Any], dimensions: int | None) -> Embeddings:
        """Raises ModelError; see `Embedder`."""
        # One content each: of plain strings the SDK makes a single one for some models, and so a single vector.
        contents = [{"role": "user", "parts": [{"text": text}]} for text in texts]
        async with self._failures.whole_call(self._timeout_s, "gave no vectors"):
            with self._provider_failures():
                models: Any = (await self._open_client()).aio.models
                answer = await models.embed_content(model=self._model_id, contents=contents, config=dict(config))
        rows = [each.values for each in answer.embeddings or []]
        try:
            vectors = unit_vectors(rows, count=len(texts), dimensions=dimensions)
        except (ValueError, OverflowError) as error:
            raise self._failures.malformed(str(error)) from None
        counted = getattr(answer.usage_metadata, "prompt_token_count", None)
        usage = Usage(input_tokens=counted) if counted else None
        return Embeddings(vectors, plausible(usage, sum(map(len, texts))))

    async def list_models(self) -> list[ListedModel]:
        """The models that the key can use for words or for vectors, in the API's order. Raises ModelError."""
        found: list[ListedModel] = []
        async with self._failures.whole_call(self._timeout_s, "told no models"):
            with self._provider_failures():
                client = await self._open_client()
                async for model in await client.aio.models.list(config={"page_size": MAX_LISTED_MODELS}):
                    if _USES & set(model.supported_actions or _USES) and model.name:
                        found.append(ListedModel(model.name.removeprefix("models/"), model.input_token_limit))
                    if len(found) >= MAX_LISTED_MODELS:
                        break
        return found

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is None or self._client_loop is not asyncio.get_running_loop():
            return  # connections of a loop that is gone cannot be awaited shut
        await client.aio.aclose()
        client.close()

    async def _chunks(
        self, client: Client, request: dict[str, Any]
    ) -> AsyncGenerator[types.GenerateContentResponse, None]:
        with self._provider_failures():
            stream = await client.aio.models.generate_content_stream(**request)
        async with aclosing(stream):  # type: ignore[type-var]
            while True:
                with self._provider_failures():
                    chunk = await anext(stream, None)
                if chunk is None:
                    return
                yield chunk

    async def _open_client(self) -> Client:
        """The SDK's client for the running loop. Its pooled connections belong to the loop that opened them."""
        if self._client is None:  # other calls begin meanwhile
            await asyncio.to_thread(import_module, "google.genai")
        loop = asyncio.get_running_loop()
        if self._client is not None and self._client_loop is loop:
            return self._client
        key = self._api_key.reveal().strip()
        if not key:  # the SDK would take any key it finds in the environment instead
            raise self._error("auth", f"{self.name} was not called: there is no API key.")
        self._failures.require_sendable(key)
        from google import genai
        from google.genai import types

        from council.llm.gemini_transport import BoundedTransport  # not at the top: httpx2

        tls = tls_context()  # for all three users of one; each would build its own, 20 ms apiece
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._api_version,
            timeout=max(
                1, math.ceil(self._timeout_s * 1000)
            ),  # ms, and per operation: asyncio.timeout bounds the whole
            # Without its own transport the SDK switches to aiohttp wherever that happens to be installed, and its
            # exceptions change. A redirect would carry the key to another host.
            async_client_args={
                "transport": BoundedTransport(self._url, tls),
                "follow_redirects": False,
                "verify": tls,
                "ssl": tls,
            },
            client_args={"trust_env": False, "verify": tls},  # the synchronous client is built too, and never used
        )
        # vertexai is said outright: an environment variable would divert the documents to another service.
        self._client = genai.Client(vertexai=False, api_key=key, http_options=options)
        self._client_loop = loop
        return self._client

    def _reply(self, answer: GeminiAnswer) -> Reply:
        text, finish = answer.text, answer.finish
        spoke = bool(text.strip()) or bool(answer.calls)
        if answer.prompt_block:
            raise self._error(
                "blocked", f"{self.name} refused the prompt: {answer.block_words()}.", reason=answer.prompt_block
            )
        if finish in MALFORMED:
            raise self._error("protocol", f"{self.name} produced a malformed answer: {finish}.", reason=finish)
        if finish not in WHOLE and finish not in CUT_SHORT:
            raise self._error(
                "blocked", f"{self.name} stopped before the end of an answer: {answer.block_words()}.", reason=finish
            )
        if finish in CUT_SHORT and not spoke:
            thoughts = answer.usage.thought_tokens if answer.usage else 0
            spent = f" ({thoughts} tokens went into thinking)" if thoughts else ""
            raise self._error(
                "length", f"{self.name} reached the output token limit before its first word{spent}.", reason=finish
            )
        if any(not call.name for call in answer.calls):
            raise self._error("protocol", f"{self.name} produced a malformed function call.")
        if not spoke:
            raise self._error("empty", f"{self.name} answered with no text.", reason=finish or "no candidate")
        how: Finish = "length" if finish in CUT_SHORT else "tool_calls" if answer.calls else "stop"
        return Reply(text, how, self.name, answer.usage, tuple(answer.calls))

    @contextmanager
    def _provider_failures(self) -> Iterator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as exc:  # noqa: BLE001 the SDK reads foreign bytes: any type can come out, and none may pass the seam
            # The cause is cut: tracebacks of the HTTP layer quote header values, and the key is one.
            raise self._failure(exc) from None

    def _failure(self, exc: Exception) -> ModelError:
        from google.genai import errors

        match exc:
            case errors.APIError():
                status = exc.code if isinstance(exc.code, int) else 0
                headers = getattr(exc.response, "headers", None) or {}
                words = str(exc.message or exc.status or "")
                return self._failures.of_refusal(*refusal_of(status, words, exc.details, headers))
            case errors.UnknownApiResponseError() | ValidationError():
                return self._failures.malformed("it has an unexpected form")
            case json.JSONDecodeError() | UnicodeDecodeError() | AnswerTooLarge():
                return self._failures.of_exchange(exc)
            case ValueError() | ImportError():
                words = self._failures.quote(str(exc)) or type(exc).__name__
                return self._error("request", f"the request to {self.name} could not be built: {words}.")
            case _:
                return self._failures.of_exchange(exc)


async def _list_models(setup: Setup) -> Sequence[ListedModel]:
    async with aclosing(_client(setup, DEFAULT_MODEL_ID)) as client:
        return await client.list_models()


def _build_embedder(setup: Setup) -> Embedder:
    model_id = setup.model_id or DEFAULT_EMBEDDING_ID
    return GeminiEmbedder(_client(setup, model_id), model_id, dimensions=setup.embedding_dimensions)


def _client(setup: Setup, default_id: str) -> GeminiModel:
    setup.require_known_options(_OPTIONS)
    options = setup.options
    windows = {"context_tokens": options["context_tokens"]} if "context_tokens" in options else {}
    names = provider.keys_of(options)
    if not names:
        raise ConfigError(
            f"{setup.name} needs a key, and key_env in [providers.gemini] names none.",
            fix="name its variable, or leave it out",
        )
    return GeminiModel(
        setup.model_id or default_id,
        api_key=setup.require_key(*names),
        key_name=next(name for name in names if setup.key(name) is not None),
        base_url=options.get("base_url") or setup.variable("GOOGLE_GEMINI_BASE_URL"),
        api_version=options.get("api_version"),
        request_timeout_s=setup.request_timeout_s,
        max_output_tokens=setup.max_output_tokens,
        temperature=setup.temperature,
        **windows,
    )


_OPTIONS = LIMITS | {"base_url", "api_version", "key_env", "context_tokens"}
provider = Provider(
    lambda setup: _client(setup, DEFAULT_MODEL_ID),
    _list_models,
    key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_needed=True,
    summary="Google's Gemini API",
    build_embedder=_build_embedder,
)


# Not filters: the model's own output was malformed, another attempt may be well.
MALFORMED = frozenset({
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
})  # fmt: skip
CUT_SHORT = frozenset({"MAX_TOKENS", "CONTINUATION"})
WHOLE = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED", ""})


@dataclass
class GeminiAnswer:
    """The answer so far: one response, or the chunks of a stream. Thoughts are not kept."""

    pieces: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    finish: str = ""
    finish_message: str = ""
    prompt_block: str = ""
    usage: Usage | None = None
    seen_candidate: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def block_words(self) -> str:
        reason = self.prompt_block or self.finish
        return f"{reason} ({brief(self.finish_message).rstrip('.')})" if self.finish_message else reason

    def add(self, response: types.GenerateContentResponse) -> str:
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.prompt_block = str(feedback.block_reason.value)
            self.finish_message = feedback.block_reason_message or ""
        counts = response.usage_metadata
        if counts is not None and counts.prompt_token_count:  # some gateways send zeros
            thoughts = counts.thoughts_token_count or 0
            self.usage = Usage(
                input_tokens=counts.prompt_token_count,
                output_tokens=(counts.candidates_token_count or 0) + thoughts,  # both are billed as output
                cached_tokens=counts.cached_content_token_count or 0,
                thought_tokens=thoughts,
            )
        candidate = response.candidates[0] if response.candidates else None
        if candidate is None:
            return ""
        self.seen_candidate = True
        if candidate.finish_reason is not None:
            self.finish = str(candidate.finish_reason.value)
            self.finish_message = candidate.finish_message or ""
        parts = candidate.content.parts if candidate.content is not None else None
        brought = "".join(part.text for part in parts or [] if part.text and not part.thought)
        self.pieces.append(brought)
        self.calls += [
            ToolCall(part.function_call.name or "", dict(part.function_call.args or {}), part.function_call.id or "")
            for part in parts or []
            if part.function_call is not None
        ]
        return brought


DEFAULT_EMBEDDING_ID = "gemini-embedding-001"
DEFAULT_DIMENSIONS = 768


class GeminiEmbedder:
    """Its own size is 3,072 dimensions; Google recommends 768 beside it, hardly worse in a fourth of the room."""

    max_texts = 64  # the API takes 100
    max_text_bytes = 6_000  # the API cuts off behind 2,048 tokens: some three thousand bytes of prose are well within

    def __init__(self, client: GeminiModel, model_id: str, *, dimensions: int | None = None) -> None:
        self._client = client
        self.name = client.name
        self.dimensions: int | None = dimensions or DEFAULT_DIMENSIONS
        self._has_task_types = not model_id.startswith("gemini-embedding-2")  # which wants no such word

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        config: dict[str, Any] = {"output_dimensionality": self.dimensions}
        if self._has_task_types:
            config["task_type"] = "RETRIEVAL_QUERY" if purpose == "question" else "RETRIEVAL_DOCUMENT"
        return await self._client.embed(texts, config, self.dimensions)

    async def aclose(self) -> None:
        await self._client.aclose()
