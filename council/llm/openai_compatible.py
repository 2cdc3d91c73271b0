"""`OpenAICompatibleModel`: any server that speaks OpenAI's chat completions, behind the `Model` seam, over plain
httpx2.

One stateless call per request, one attempt per call. Every failure leaves as a `ModelError` whose kind says what to do
next. What a server refused by name (JSON mode, usage in streams, tools, a system role) is left out of the same call,
once, and remembered for the life of the model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlsplit

from council import __version__
from council.errors import ModelError, ModelErrorKind
from council.llm.base import Finish, Message, OnText, Reply, RequestOptions, Usage, tell
from council.llm.embeddings import Embeddings, Purpose, unit_vectors
from council.llm.http_failures import (
    AnswerTooLarge,
    Failures,
    ProxyUnusable,
    Refusal,
    brief,
    connect_timeout_s,
    is_loopback,
    tls_context,
)
from council.llm.openai_answer import OpenAIAnswer, count_of, events
from council.llm.openai_dialect import Dialect, JsonMode, Server, body_of, left_out
from council.llm.openai_errors import fix_of_kind, fix_of_refusal, refusal_in, refusal_of
from council.llm.providers import ListedModel
from council.llm.reply_limits import plausible, whole_characters
from council.llm.retry import WITHOUT_SCHEMA
from council.redaction import Secret

if TYPE_CHECKING:
    import httpx2

CHAT = "/chat/completions"
MAX_ANSWER_BYTES = 16 * 1024 * 1024  # far above any answer, with all the frames of a stream around each word
MAX_ERROR_BYTES = 64 * 1024
MAX_LISTED_MODELS = 2_000
_LINGER_S = 1.0
_BEGINNING_CHARS = 120
_UNTYPED = frozenset({"", "text/plain", "application/octet-stream"})

_WHOLE = frozenset(
    {"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "end", "complete", "completed", "done", "finished",
     "tool_calls", "tool_call", "tool_use", "function_call"}
)  # fmt: skip
_CUT_SHORT = frozenset(
    {"length", "max_tokens", "max_length", "model_length", "max_output_tokens", "max_completion_tokens"}
)
_FILTERED = frozenset(
    {"content_filter", "content_filtered", "safety", "moderation", "recitation", "refusal", "sensitive", "flagged",
     "guardrail", "prohibited_content", "blocklist", "spii"}
)  # fmt: skip
_FAILED: dict[str, ModelErrorKind] = {
    "error": "server",
    "abort": "server",
    "aborted": "server",
    "cancelled": "server",
    "network_error": "server",
    "insufficient_system_resource": "overload",
    "malformed_function_call": "protocol",
}


class _EarlyRefusal(Exception):
    def __init__(self, error: ModelError, refusal: Refusal) -> None:
        super().__init__(error.message)
        self.error = error
        self.refusal = refusal


class OpenAICompatibleModel:
    """An empty id is for asking the server about its models. `request_timeout_s` bounds a call with all that is left
    out in it."""

    def __init__(
        self,
        model_id: str,
        *,
        server: Server,
        api_key: Secret | None = None,
        request_timeout_s: float = 120,
        max_output_tokens: int = 8192,
        temperature: float | None = None,
        endpoint: str = CHAT,
    ) -> None:
        self.name = f"{server.name}:{model_id}" if model_id else server.name
        self.context_tokens = server.context_tokens
        self._model_id = model_id
        self._endpoint = endpoint
        self._server = server
        self._api_key = Secret(api_key.reveal().strip()) if api_key is not None else None
        self._timeout_s = request_timeout_s
        self._max_output_tokens = max_output_tokens
        self._temperature = temperature
        self._base_url = server.base_url.rstrip("/").removesuffix(CHAT)
        self._dialect = Dialect(server.token_limit_field, server.json_mode)
        self._failures = Failures(
            self.name,
            self._api_key,
            partial(fix_of_kind, server, model_id, self._base_url),
            url=self._base_url,
            address_fix=f"check base_url and headers in [providers.{server.name}].",
        )
        self._error, self._quote = self._failures.error, self._failures.quote
        self.malformed = self._failures.malformed
        self._client: httpx2.AsyncClient | None = None
        self._client_loop: asyncio.AbstractEventLoop | None = None

    @property
    def native_tools(self) -> bool:
        """False once the server has refused native tools."""
        return self._dialect.tools

    @property
    def json_mode(self) -> JsonMode:
        """The way in which replies are held to a schema here; `none` once the server has refused it."""
        return self._dialect.json_mode

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """Raises ModelError; see `Model`. `on_text` may get pieces of a reply that fails."""
        asked["max_output_tokens"] = asked.get("max_output_tokens") or self._max_output_tokens
        if asked.get("temperature") is None:
            asked["temperature"] = self._temperature
        async with self._failures.whole_call(self._timeout_s):
            learnt: dict[str, Any] = {}
            while True:  # each turn leaves out one more of the few things that `Dialect` knows
                dialect = replace(self._dialect, **learnt)  # another call may learn the same meanwhile
                try:
                    reply = await self._call(messages, asked, dialect)
                except _EarlyRefusal as refused:
                    change = left_out(refused.refusal, asked, dialect)
                    if change.keys() <= learnt.keys():
                        refused.error.data[WITHOUT_SCHEMA] = dialect.json_mode == "none"
                        raise refused.error from None
                    learnt |= change
                else:
                    self._dialect = replace(self._dialect, **learnt)
                    return reply

    async def list_models(self) -> list[ListedModel]:
        """The models that the server says it has, in its order. Raises ModelError."""
        content = await self.read("/models")
        with self._transport_failures():
            models = content if isinstance(content, list) else content["data"] or []
            found = []
            for model in models[:MAX_LISTED_MODELS]:
                id_ = model.get("id") or model.get("name")
                if not id_:
                    continue
                # vLLM, OpenRouter, Groq, llama.cpp and the Hugging Face router each have their own name for the window.
                names = ("max_model_len", "context_length", "context_window")
                places = [(model, name) for name in names] + [(model.get("meta"), "n_ctx_train")]
                places += [(provider, "context_length") for provider in model.get("providers") or []]
                window = next((count for place, name in places if (count := count_of(place, name))), None)
                found.append(ListedModel(whole_characters(str(id_)), window))
            return found

    async def read(self, path: str) -> Any:
        return await self._exchange("GET", path)

    async def ask(self, body: Mapping[str, Any]) -> Any:
        """Asks the endpoint with `body` and gives its JSON; for endpoints other than chat. Raises ModelError."""
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return await self._exchange("POST", self._endpoint, data)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._client_loop is asyncio.get_running_loop():
            await client.aclose()  # connections of a loop that is gone cannot be awaited shut

    async def _exchange(self, method: str, path: str, data: bytes = b"") -> Any:
        async with self._failures.whole_call(self._timeout_s):
            try:
                async with self._response(method, path, data) as response:
                    return await self._read_json(response)
            except _EarlyRefusal as refused:
                raise refused.error from None

    async def _call(self, messages: Sequence[Message], asked: RequestOptions, dialect: Dialect) -> Reply:
        body = body_of(self._model_id, messages, asked, dialect)
        data, on_text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"), asked.get("on_text")
        async with self._response("POST", self._endpoint, data) as response:
            await self._require_success(response)
            answer = OpenAIAnswer()
            # A stream that was asked for may have been taken for plain bytes on its way.
            type_ = str(response.headers.get("content-type", "")).lower().partition(";")[0].strip()
            if type_ == "text/event-stream" or (on_text is not None and type_ in _UNTYPED):
                await self._read_stream(response, answer, on_text)
            else:
                content = await self._read_json(response)
                if isinstance(content, dict) and "choices" not in content:
                    raise self.malformed(f"it holds no choices, and says {json.dumps(content, ensure_ascii=False)}")
                with self._transport_failures():
                    if content["choices"] is not None:
                        answer.take(content)
        # An answer that has ended is judged; a listener gets one that did not come as a stream.
        text = answer.text()
        finish = answer.finish
        if not answer.seen_choice:
            raise self._error("empty", f"{self.name} answered without a choice.", reason="no choice")
        if answer.refused:
            raise self._error("blocked", f"{self.name} refused: {self._quote(answer.refused)}", reason="refusal")
        if finish in _FILTERED:
            raise self._error("blocked", f"{self.name} stopped before the end of an answer: {finish}.", reason=finish)
        if finish in _FAILED:
            raise self._error(_FAILED[finish], f"{self.name} broke an answer off: {finish}.", reason=finish)
        if finish not in _WHOLE and finish not in _CUT_SHORT:
            words = f"{self.name} ended an answer for an unknown reason: {self._quote(finish)}."
            raise self._error("protocol", words, reason=finish)
        try:
            calls = answer.tool_calls()
        except (ValueError, RecursionError):
            if finish not in _CUT_SHORT:
                raise self._error("protocol", f"{self.name} produced a malformed function call.") from None
            words = f"{self.name} reached the output token limit within a function call."
            raise self._error("length", words, reason="length") from None
        if not text.strip() and not calls:
            thoughts = answer.usage.thought_tokens if answer.usage else 0
            thinking = f" ({thoughts} tokens went into thinking)" if thoughts else " (it was thinking)"
            spent = thinking if thoughts or answer.thought else ""
            if finish in _CUT_SHORT:
                words = f"{self.name} reached the output token limit before its first word{spent}."
                raise self._error("length", words, reason="length")
            raise self._error("empty", f"{self.name} answered with no text{spent}.", reason=finish or "no text")
        if text and not answer.told:
            tell(asked, text)
        how: Finish = "length" if finish in _CUT_SHORT else "tool_calls" if calls else "stop"
        return Reply(text, how, self.name, answer.usage, calls)

    @asynccontextmanager
    async def _response(self, method: str, path: str, data: bytes = b"") -> AsyncIterator[httpx2.Response]:
        with self._transport_failures():
            client = self._open_client()
            headers = {
                "Content-Type": "application/json",
                "User-Agent": f"council/{__version__}",
                **self._server.headers,
            }
            key = self._api_key.reveal() if self._api_key is not None else ""
            if key:
                self._failures.require_sendable(key)
                headers["Authorization"] = f"Bearer {key}"
            request = client.build_request(method, self._base_url + path, content=data, headers=headers)
            response = await client.send(request, stream=True)
        async with aclosing(response):
            yield response

    async def _read_stream(self, response: httpx2.Response, answer: OpenAIAnswer, on_text: OnText | None) -> None:
        async with aclosing(self._events(response)) as stream:
            async for event in stream:
                if event == "[DONE]":
                    answer.done = True
                    # To the end of a body in which nothing more is said, for a connection that
                    # can be used again. Some servers keep it open instead.
                    with suppress(ModelError, TimeoutError):
                        async with asyncio.timeout(_LINGER_S):
                            async for _ in stream:
                                continue
                    break
                with self._transport_failures():
                    content = json.loads(event)
                    refusal = refusal_in(content)
                    if refusal is not None:
                        self._refuse(refusal, told=answer.told)
                    piece = answer.take(content)
                if piece and on_text is not None:
                    answer.told = True
                    on_text(piece)
        if not answer.done and not answer.finish:  # a stream may end in good order and still be cut
            raise self._error("protocol", f"the answer of {self.name} broke off: no finish reason came.")

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[str, None]:
        with self._transport_failures():
            async for event in events(response.aiter_bytes(), max_bytes=MAX_ANSWER_BYTES):
                yield event

    async def _read_json(self, response: httpx2.Response) -> Any:
        await self._require_success(response)
        with self._transport_failures():
            data = await _read(response, MAX_ANSWER_BYTES)
            if len(data) > MAX_ANSWER_BYTES:
                raise AnswerTooLarge(f"more than {MAX_ANSWER_BYTES} bytes")
            try:
                content = json.loads(data)
            except ValueError:
                words = brief(data.decode("utf-8", "replace"))[:_BEGINNING_CHARS]
                raise self.malformed(
                    f"it is not JSON, and begins with: {words}" if words else "it is empty, not JSON"
                ) from None
            refusal = refusal_in(content, response.headers)
        if refusal is not None:
            self._refuse(refusal)
        return content

    async def _require_success(self, response: httpx2.Response) -> None:
        if 200 <= response.status_code < 300:
            return
        with self._transport_failures():
            data = (await _read(response, MAX_ERROR_BYTES))[:MAX_ERROR_BYTES]
        self._refuse(refusal_of(response.status_code, data, response.headers))

    def _open_client(self) -> httpx2.AsyncClient:
        """The HTTP client for the running loop. Its pooled connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._client_loop is loop:
            return self._client
        import httpx2

        try:
            parts = urlsplit(self._base_url)
            usable = parts.scheme in ("http", "https") and (parts.port is None or parts.port > 0)
            host = parts.hostname if usable else None
        except ValueError:
            host = None
        if not host:
            raise self._error(
                "request",
                f"{self.name} was not called: its base_url is not an http or https address.",
                fix=f"write the whole address into council.toml: [providers.{self._server.name}] base_url = …",
            )
        tls = tls_context()  # with SSL_CERT_FILE, which a client that trusts no environment would leave out
        try:
            # A redirect would carry the key and the documents to another host. A proxy cannot reach this machine's own servers.
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeout_s, connect=connect_timeout_s(self._timeout_s)),
                follow_redirects=False,
                trust_env=not is_loopback(host),
                verify=tls,
            )
        except (ValueError, ImportError) as error:
            raise ProxyUnusable(str(error)) from None
        self._client_loop = loop
        return self._client

    @contextmanager
    def _transport_failures(self) -> Iterator[None]:
        try:
            yield
        except (ModelError, _EarlyRefusal):
            raise
        except Exception as exc:  # noqa: BLE001 foreign bytes are read here: any type can come out, and none may pass the seam
            # The cause is cut: tracebacks of the HTTP layer quote header values, and the key is one.
            raise self._failures.of_exchange(exc) from None

    def _refuse(self, refusal: Refusal, *, told: bool = False) -> None:
        """Raises what a refusal means; as `_EarlyRefusal` while the request can still be sent another way."""
        fix = fix_of_refusal(refusal, self._server, base_url=self._base_url, endpoint=self._endpoint)
        error = self._failures.of_refusal(refusal, fix)
        if told:
            raise error
        raise _EarlyRefusal(error, refusal)


async def _read(response: httpx2.Response, max_bytes: int) -> bytes:
    """The body, and no more of it than shows that it is longer than `max_bytes`."""
    pieces, total = [], 0
    async for piece in response.aiter_bytes():
        pieces.append(piece)
        total += len(piece)
        if total > max_bytes:
            break
    return b"".join(pieces)


ENDPOINT = "/embeddings"


class OpenAIEmbedder:
    max_texts = 64  # servers take from 32 (some vLLM set-ups) to 2048; the answer to 64 stays below a few megabytes
    max_text_bytes = 6_000  # OpenAI takes 8,191 tokens a text, and a token is at least a byte

    def __init__(
        self,
        model_id: str,
        *,
        server: Server,
        api_key: Secret | None = None,
        dimensions: int | None = None,
        request_timeout_s: float = 30,
    ) -> None:
        self._model_id = model_id
        self.dimensions = dimensions
        self._server = OpenAICompatibleModel(
            model_id, server=server, api_key=api_key, request_timeout_s=request_timeout_s, endpoint=ENDPOINT
        )
        self.name = self._server.name

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        """`purpose` makes no difference to these models."""
        body: dict[str, Any] = {"model": self._model_id, "input": list(texts)}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        content = await self._server.ask(body)
        try:
            data = content.get("data") if isinstance(content, dict) else None
            if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
                raise ValueError("it has no list of vectors")
            places = [item.get("index", at) for at, item in enumerate(data)]
            if sorted(place for place in places if type(place) is int) != list(range(len(data))):
                raise ValueError("its vectors are not numbered from 0")
            placed = sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
            rows = [item.get("embedding") for _, item in placed]
            vectors = unit_vectors(rows, count=len(texts), dimensions=self.dimensions)
        except (ValueError, OverflowError) as error:
            raise self._server.malformed(str(error)) from None
        counts = content.get("usage")
        tokens = count_of(counts, "prompt_tokens") or count_of(counts, "total_tokens")
        return Embeddings(vectors, plausible(Usage(input_tokens=tokens) if tokens else None, sum(map(len, texts))))

    async def aclose(self) -> None:
        await self._server.aclose()
