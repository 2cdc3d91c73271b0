"""`GeminiModel`: the Gemini API behind the `Model` seam, through the google-genai SDK.

One stateless call per request, one attempt per call: retries, limits and records wrap it from outside. Every failure
leaves as a `ModelError` whose kind says what to do next. The SDK (0.8 s, 40 MB) is imported at the first call, and no
other module names it. `GeminiEmbedder` asks for embeddings through the same client. Not here: chats, files, explicit
caches, Vertex AI.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from council.errors import ModelError, ModelErrorKind
from council.llm.base import Finish, Message, Model, OnText, Reply, ToolCall, ToolSpec, TurnInfo, Usage
from council.llm.embeddings import Embedded, Embedder, Purpose, unit_vectors
from council.llm.providers import Provider, Setup
from council.redaction import Redactor, Secret

if TYPE_CHECKING:
    import ssl

    import httpx2
    from google.genai import Client, types

DEFAULT_MODEL_ID = "gemini-2.5-flash"
DEFAULT_EMBEDDING_ID = "gemini-embedding-001"
DEFAULT_DIMENSIONS = 768
_API_URL = "https://generativelanguage.googleapis.com/"

_MESSAGE_CHARS = 300  # of a provider's own words; an HTML error page is not a message
# A daily quota comes with a retryDelay of seconds, which only burns calls; ask again once an hour.
_DAILY_QUOTA_WAIT_S = 3600.0

# The ordinary rate limit says "check your plan and billing details" too: only these words mean that waiting is no help.
# `limit: 0` is a plan that does not include the model at all.
_PAYMENT = re.compile(
    r"prepa(?:y|id)|insufficient\s+(?:funds|credits?)|spend(?:ing)?[\s-]+(?:cap|limit)|\blimit:\s*0(?![\d.])"
    r"|credits?\s+(?:are|is|have\s+been|has\s+been)\s+(?:depleted|exhausted|used\s+up)"
    r"|billing\s+(?:account\s+)?(?:is\s+|has\s+been\s+)?(?:disabled|not\s+enabled|not\s+active|inactive|closed|suspended)",
    re.IGNORECASE,
)
# In a refusal that is not about rates these are clear as well.
_NEEDS_BILLING = re.compile(
    r"billing_disabled|(?:enable|requires|set\s+up)\s+billing|billing\s+(?:account|must|is|has|to\s+be)\b",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"api_key_(?:invalid|expired)|api key (?:not valid|not found|expired|was reported)", re.IGNORECASE
)

_KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",  # ABORTED: a conflict on the provider's side
    429: "rate",
    499: "server",  # CANCELLED, and not by us
    503: "overload",
    504: "timeout",
    529: "overload",
}

_FIX: dict[ModelErrorKind, str] = {
    "auth": "check GEMINI_API_KEY in .env: the key must exist, be whole and be allowed to use the Gemini API.",
    "billing": "open the billing page of the key's Google project: add credit, raise the cap or change the plan.",
    "not_found": "`council models list gemini` names those that this key can use; the API version matters (v1, v1beta).",
    "request": "this is refused whenever it is sent: shorten the inputs, or check the model's settings.",
    "rate": "wait, lower the number of concurrent runs, or raise the quota of the key's project.",
    "overload": "nothing is wrong here; the model is busy. Try later or name another model.",
    "server": "nothing is wrong here; the provider failed. Try later.",
    "timeout": "try again; if it keeps happening raise the request timeout or shorten the inputs.",
    "network": "check the connection, the proxy variables (HTTPS_PROXY, NO_PROXY) and the base URL.",
    "protocol": "try again; if it keeps happening something between here and the provider alters the answers.",
    "blocked": "reword the task or leave out the input that the provider's filter objects to.",
    "length": "raise max_output_tokens: thinking counts towards it.",
    "empty": "try again; if it keeps happening reword the task or name another model.",
}

# Not filters: the model's own output was malformed, another attempt may be well.
_MALFORMED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
_CUT_SHORT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_WHOLE = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED", ""})


class GeminiModel:
    """A Gemini model by its id. `request_timeout_s` bounds a whole call; `context_tokens` is prompt and answer.

    `base_url` and `api_version` None leave the choice to the SDK (its environment variables, then Google's `v1`).
    """

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
    ) -> None:
        self._model_id = model_id
        self._api_key = api_key
        self._base_url = base_url
        self._api_version = api_version
        self._timeout_s = request_timeout_s
        self._max_output_tokens = max_output_tokens
        self._temperature = temperature
        self._context_tokens = context_tokens
        self._redactor = Redactor([Secret(api_key.reveal().strip())])
        self._client: Client | None = None
        self._client_loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"gemini:{self._model_id}"

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolSpec] = (),
        on_text: OnText | None = None,
        max_output_tokens: int | None = None,
        temperature: float | None = None,
        info: TurnInfo | None = None,
    ) -> Reply:
        """One call, one attempt. Raises ModelError; see `Model`. `on_text` may get pieces of a reply that fails."""
        with self._provider_failures():
            if self._client is None:  # other calls begin meanwhile
                await asyncio.to_thread(import_module, "google.genai")
            client = self._open_client()
            request = self._request(messages, system, schema, tools, max_output_tokens, temperature)
        answer = _Answer()
        try:
            async with asyncio.timeout(self._timeout_s):
                if on_text is None:
                    with self._provider_failures():
                        answer.add(await client.aio.models.generate_content(**request))
                else:
                    async with aclosing(self._chunks(client, request)) as chunks:
                        async for chunk in chunks:
                            if piece := answer.add(chunk):
                                on_text(piece)
                    self._require_an_end(answer)
        except TimeoutError:
            raise self._error("timeout", f"{self.name} gave no whole answer within {self._timeout_s:g} s.") from None
        return self._reply(answer)

    async def embed(self, texts: Sequence[str], config: Mapping[str, Any], dimensions: int | None) -> Embedded:
        """The same texts as vectors, where this is an embedding model. Raises ModelError; see `Embedder`."""
        # One content each: of plain strings the SDK makes a single one for some models, and so a single vector.
        contents = [{"role": "user", "parts": [{"text": text}]} for text in texts]
        try:
            async with asyncio.timeout(self._timeout_s):
                with self._provider_failures():
                    if self._client is None:
                        await asyncio.to_thread(import_module, "google.genai")
                    models: Any = self._open_client().aio.models
                    answer = await models.embed_content(model=self._model_id, contents=contents, config=dict(config))
        except TimeoutError:
            raise self._error("timeout", f"{self.name} gave no vectors within {self._timeout_s:g} s.") from None
        rows = [each.values for each in answer.embeddings or []]
        try:
            vectors = unit_vectors(rows, count=len(texts), dimensions=dimensions)
        except (ValueError, OverflowError) as error:
            raise self._error("protocol", f"the answer of {self.name} is not what the API promises: {error}.") from None
        counted = getattr(answer.usage_metadata, "prompt_token_count", None)
        return Embedded(vectors, Usage(input_tokens=counted) if counted else None)

    async def aclose(self) -> None:
        """Closes the connections; a later `generate` opens new ones."""
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

    # --- the request -------------------------------------------------------------------------------------------------

    def _open_client(self) -> Client:
        """The SDK's client for the running loop. Its pooled connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._client_loop is loop:
            return self._client
        key = self._api_key.reveal().strip()
        if not key:  # the SDK would take any key it finds in the environment instead
            raise self._error("auth", f"{self.name} was not called: there is no API key.")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise self._error("auth", f"{self.name} was not called: the API key holds characters no key can hold.")
        import httpx2
        from google import genai
        from google.genai import types

        tls = httpx2.create_ssl_context()  # for all three users of one; each would build its own, 20 ms apiece
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._api_version,
            timeout=max(
                1, math.ceil(self._timeout_s * 1000)
            ),  # ms, and per operation: asyncio.timeout bounds the whole
            # Without its own transport the SDK switches to aiohttp wherever that happens to be installed, and its
            # exceptions change. A redirect would carry the key to another host.
            async_client_args={
                "transport": _transport(self._base_url, tls),
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

    def _request(
        self,
        messages: Sequence[Message],
        system: str,
        schema: Mapping[str, Any] | None,
        tools: Sequence[ToolSpec],
        max_output_tokens: int | None,
        temperature: float | None,
    ) -> dict[str, Any]:
        """The arguments of an SDK call, as plain dicts: half the time of SDK objects on a long history."""
        config: dict[str, Any] = {
            "max_output_tokens": max_output_tokens or self._max_output_tokens,
            "automatic_continuation": False,  # on by default and without a bound: one call became 201
            "automatic_function_calling": {"disable": True},
        }
        if system:
            config["system_instruction"] = system
        warmth = self._temperature if temperature is None else temperature
        if warmth is not None:
            config["temperature"] = warmth
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
        return {"model": self._model_id, "contents": contents, "config": config}

    # --- the answer --------------------------------------------------------------------------------------------------

    def _require_an_end(self, answer: _Answer) -> None:
        """A plain answer is whole if its JSON is; a stream may end in good order and still be cut."""
        if not answer.finish and not answer.prompt_block and answer.seen_candidate:
            raise self._error("protocol", f"the answer of {self.name} broke off: no finish reason came.")

    def _reply(self, answer: _Answer) -> Reply:
        text, finish = answer.text, answer.finish
        spoke = bool(text.strip()) or bool(answer.calls)
        if answer.prompt_block:
            raise self._error(
                "blocked", f"{self.name} refused the prompt: {answer.block_words()}.", reason=answer.prompt_block
            )
        if finish in _MALFORMED:
            raise self._error("protocol", f"{self.name} produced a malformed answer: {finish}.", reason=finish)
        if finish not in _WHOLE and finish not in _CUT_SHORT:
            raise self._error(
                "blocked", f"{self.name} stopped before the end of an answer: {answer.block_words()}.", reason=finish
            )
        if finish in _CUT_SHORT and not spoke:
            thoughts = answer.usage.thought_tokens if answer.usage else 0
            spent = f" ({thoughts} tokens went into thinking)" if thoughts else ""
            raise self._error(
                "length", f"{self.name} reached the output token limit before its first word{spent}.", reason=finish
            )
        if not spoke:
            raise self._error("empty", f"{self.name} answered with no text.", reason=finish or "no candidate")
        how: Finish = "length" if finish in _CUT_SHORT else "tool_calls" if answer.calls else "stop"
        return Reply(text, how, self.name, answer.usage, tuple(answer.calls))

    # --- failures ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _provider_failures(self) -> Iterator[None]:
        """Whatever the SDK raises leaves as ModelError; cancellation passes."""
        try:
            yield
        except ModelError:
            raise
        except Exception as exc:  # noqa: BLE001 the SDK reads foreign bytes: any type can come out, and none may pass the seam
            # The cause is cut: tracebacks of the HTTP layer quote header values, and the key is one.
            raise self._failure(exc) from None

    def _failure(self, exc: Exception) -> ModelError:
        import httpx2
        from google.genai import errors
        from pydantic import ValidationError

        kind_of_exception = type(exc).__name__
        match exc:
            case errors.APIError():
                return self._refusal(exc)
            case httpx2.TimeoutException() | TimeoutError():
                return self._error("timeout", f"{self.name} did not answer in time ({kind_of_exception}).")
            case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
                return self._error(
                    "request", f"the request to {self.name} could not be built ({kind_of_exception}).",
                    fix="check the base URL and the API version of the model.",
                )  # fmt: skip
            case httpx2.DecodingError():
                return self._error("protocol", f"the answer of {self.name} could not be decoded.")
            case httpx2.TransportError() | OSError():
                words = self._quote(str(exc)).rstrip(".")
                return self._error(
                    "network", f"the connection to {self.name} failed: {kind_of_exception}{words and f' ({words})'}."
                )
            case json.JSONDecodeError() | errors.UnknownApiResponseError() | ValidationError():
                return self._error(
                    "protocol", f"the answer of {self.name} is not what the API promises ({kind_of_exception})."
                )
            case ValueError() | ImportError():
                words = self._quote(str(exc))
                return self._error(
                    "request", f"the request to {self.name} could not be built: {words or kind_of_exception}."
                )
            case _:
                return self._error("protocol", f"the exchange with {self.name} failed ({kind_of_exception}).")

    def _refusal(self, exc: Any) -> ModelError:
        """An answer with an error status, or an error object in the middle of a stream."""
        status = exc.code if isinstance(exc.code, int) else 0
        details = _details(exc.details)
        words = self._quote(str(exc.message or exc.status or ""))
        kind = _kind_of_refusal(status, f"{exc.message} {json.dumps(details)}")
        daily = kind == "rate" and "perday" in json.dumps(details).lower()
        wait_s = _retry_after_s(exc, details)
        if daily:
            wait_s = max(wait_s or 0.0, _DAILY_QUOTA_WAIT_S)
        fix = "the daily quota of this key is used up: wait for tomorrow or raise the plan." if daily else ""
        if 300 <= status < 400:
            words = "a redirect, which is not followed because the key would go along"
        said = f": {words.rstrip('.')}" if words else ""
        return self._error(
            kind, f"{self.name} answered {status or 'an error'}{said}.", fix=fix, retry_after_s=wait_s, status=status
        )

    def _quote(self, words: str) -> str:
        """A provider's words, safe to show. The key goes first: cut through its middle, it would not be found."""
        return _brief(self._redactor.redact(words))

    def _error(
        self, kind: ModelErrorKind, message: str, *, fix: str = "", retry_after_s: float | None = None, **data: object
    ) -> ModelError:
        return ModelError(
            kind,
            self._redactor.redact(message),
            fix=fix or _FIX[kind],
            retry_after_s=retry_after_s,
            model=self.name,
            **data,
        )


class GeminiEmbedder:
    """A Gemini embedding model by its id. Its own size is 3,072 dimensions; the default here is 768, which Google
    recommends beside it: a fourth of the room, and hardly worse at finding things."""

    max_texts = 64  # the API takes 100
    max_text_bytes = 6_000  # the API cuts off behind 2,048 tokens: some three thousand bytes of prose are well within

    def __init__(self, client: GeminiModel, model_id: str, *, dimensions: int | None = None) -> None:
        self._client = client
        self._dimensions = dimensions or DEFAULT_DIMENSIONS
        self._has_task_types = not model_id.startswith("gemini-embedding-2")  # which wants no such word

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def dimensions(self) -> int | None:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embedded:
        """One call, one attempt. Raises ModelError."""
        config: dict[str, Any] = {"output_dimensionality": self._dimensions}
        if self._has_task_types:
            config["task_type"] = "RETRIEVAL_QUERY" if purpose == "question" else "RETRIEVAL_DOCUMENT"
        return await self._client.embed(texts, config, self._dimensions)

    async def aclose(self) -> None:
        """Closes the connections; a later call opens new ones."""
        await self._client.aclose()


@dataclass
class _Answer:
    """What has come so far: one response, or the chunks of a stream."""

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
        return f"{reason} ({_brief(self.finish_message).rstrip('.')})" if self.finish_message else reason

    def add(self, response: types.GenerateContentResponse) -> str:
        """Takes a response in and gives back the text it brought. Thoughts are not text."""
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.prompt_block = str(feedback.block_reason.value)
            self.finish_message = feedback.block_reason_message or ""
        self.usage = _usage(response.usage_metadata) or self.usage
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


def _usage(counts: types.GenerateContentResponseUsageMetadata | None) -> Usage | None:
    if counts is None:
        return None
    thoughts = counts.thoughts_token_count or 0
    return Usage(
        input_tokens=counts.prompt_token_count or 0,
        output_tokens=(counts.candidates_token_count or 0) + thoughts,  # both are billed as output
        cached_tokens=counts.cached_content_token_count or 0,
        thought_tokens=thoughts,
    )


def _transport(base_url: str | None, tls: ssl.SSLContext) -> httpx2.AsyncHTTPTransport:
    """A transport made here has to find the proxy itself: a client looks for one only for transports it makes."""
    import httpx2

    url = urlsplit(base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or _API_URL)
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if proxy is None or proxy_bypass(url.hostname or ""):
        return httpx2.AsyncHTTPTransport(verify=tls)
    return httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy if "://" in proxy else f"http://{proxy}")


def _kind_of_refusal(status: int, words: str) -> ModelErrorKind:
    """`words`: the provider's message and details; they decide where one status means several things."""
    if status in (400, 401, 403) and _BAD_KEY.search(words):
        return "auth"
    if status in (400, 403, 429) and _PAYMENT.search(words):
        return "billing"
    if status in (400, 403) and _NEEDS_BILLING.search(words):
        return "billing"
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    if 400 <= status < 500:
        return "request"
    if 500 <= status < 600:
        return "server"
    return "network" if 300 <= status < 400 else "protocol"


def _details(body: object) -> list[dict[str, Any]]:
    """The `details` of a Google error body; empty for a body of any other shape."""
    failure = body.get("error") if isinstance(body, dict) else None
    details = failure.get("details") if isinstance(failure, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _retry_after_s(exc: Any, details: list[dict[str, Any]]) -> float | None:
    """The longer of the provider's two wishes: the Retry-After header (seconds or a date) and RetryInfo (`"2s"`)."""
    headers = getattr(exc.response, "headers", None) or {}
    wishes = [_seconds(str(headers.get("retry-after") or ""))]
    wishes += [_seconds(str(detail.get("retryDelay") or "").removesuffix("s")) for detail in details]
    return max((wish for wish in wishes if wish is not None), default=None)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        try:
            value = (parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(0.0, value) if math.isfinite(value) else None


def _brief(text: str) -> str:
    """A provider's words as one short line; the tags of an HTML page are dropped."""
    line = " ".join(re.sub(r"<[^>]{0,500}>", " ", text).split())
    return line if len(line) <= _MESSAGE_CHARS else f"{line[:_MESSAGE_CHARS]}…"


def _build(setup: Setup) -> Model:
    return _client(setup, DEFAULT_MODEL_ID)


def _build_embedder(setup: Setup) -> Embedder:
    model_id = setup.model_id or DEFAULT_EMBEDDING_ID
    return GeminiEmbedder(_client(setup, model_id), model_id, dimensions=setup.embedding_dimensions)


def _client(setup: Setup, default_id: str) -> GeminiModel:
    setup.require_known_options(_OPTIONS)
    options = setup.options
    windows = {"context_tokens": options["context_tokens"]} if "context_tokens" in options else {}
    return GeminiModel(
        setup.model_id or default_id,
        api_key=setup.require_key(*provider.keys_of(options)),
        base_url=options.get("base_url") or setup.variable("GOOGLE_GEMINI_BASE_URL"),
        api_version=options.get("api_version"),
        request_timeout_s=setup.request_timeout_s,
        max_output_tokens=setup.max_output_tokens,
        temperature=setup.temperature,
        **windows,
    )


_OPTIONS = frozenset(
    {"base_url", "api_version", "key_env", "context_tokens", "temperature", "max_output_tokens", "request_timeout_s"}
)
provider = Provider(
    _build,
    key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_needed=True,
    summary="Google's Gemini API",
    build_embedder=_build_embedder,
)
