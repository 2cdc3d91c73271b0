"""A stand-in for OpenAI-compatible servers on 127.0.0.1: answers, fails and misbehaves on demand, and keeps every request.

    with FakeOpenAI() as fake:
        fake.reply = lambda request: text("hello") if "STRATEGIST" in request.system else error(503)
        fake.manners = Manners(response_format="none", key="sk-…")
        Server("openai", fake.url)

`reply` says what comes back; `manners` are checked before and refuse as the real servers do, in their words: those of
vLLM, llama.cpp, Ollama, OpenAI and OpenRouter.

It serves `POST /v1/chat/completions` (plain and streamed), `POST /v1/embeddings` (kept apart, in `embeddings`, and
answered by `embed_reply`), `GET /v1/models`, and of Ollama's own API `GET /api/tags`
and `/api/ps`; everything else is 404. It counts no tokens and speaks no TLS.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.fake_server import IDLE_TIMEOUT_S, FakeHandler, FakeReply, FakeServer, cuts_of, raw
from tests.fake_server import in_turn as in_turn
from tests.fake_server import redirect as redirect
from tests.meanings import DIMENSIONS, vector_of

_ROLE = re.compile(r"\bYou are (?:the )?([A-Z][A-Z_]{2,})\b")


@dataclass(frozen=True)
class RecordedRequest:
    """One call as it came."""

    index: int
    path: str
    body: dict[str, Any]
    authorization: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body.get("messages", []))

    @property
    def system(self) -> str:
        return "".join(message["content"] for message in self.messages if message["role"] == "system")

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]

    @property
    def texts(self) -> list[str]:
        return [message["content"] for message in self.messages if message["role"] == "user"]

    @property
    def all_texts(self) -> list[str]:
        return [message["content"] for message in self.messages if message["role"] != "system"]


@dataclass(frozen=True)
class Manners:
    """What this server refuses. `models`: those it has, None for any. `words` of JSON mode's refusal: by name or not."""

    response_format: Literal["schema", "object", "none"] = "schema"
    names_response_format: bool = True
    stream_options: bool = True
    token_limit_field: Literal["max_tokens", "max_completion_tokens", "any"] = "any"
    tools: bool = True
    system_role: bool = True
    alternating: bool = False
    json_word: bool = False
    models: tuple[str, ...] | None = None
    key: str = ""

    def refusal(self, request: RecordedRequest) -> FakeReply | None:
        """What the server says to a request that it does not take."""
        body = request.body
        wanted = body.get("response_format", {}).get("type", "")
        if self.key and request.authorization != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {request.authorization}.", code="invalid_api_key")
        if self.models is not None and request.model not in self.models:
            return error(404, f'model "{request.model}" not found, try pulling it first', type="api_error")
        if "stream_options" in body and not self.stream_options:
            return raw('{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}]}', status=422)  # fmt: skip  # noqa: E501
        for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
            if name in body and self.token_limit_field == other:
                words = f"Unsupported parameter: '{name}' is not supported with this model. Use '{other}' instead."
                return error(400, words, code="unsupported_parameter")
        if "tools" in body and not self.tools:
            return error(400, f"registry.ollama.ai/library/{request.model} does not support tools", type="api_error")
        if request.system and not self.system_role:
            return error(500, "System role not supported", shape="vllm")
        if self.alternating and any(a == b for a, b in zip(request.roles, request.roles[1:], strict=False)):
            return error(500, "Conversation roles must alternate user/assistant/user/assistant/...", shape="vllm")
        takes = {"schema": ("json_schema", "json_object"), "object": ("json_object",), "none": ()}[self.response_format]
        if wanted and wanted not in takes:
            named = f"This response_format type is unavailable now: {wanted}"
            return error(400, named if self.names_response_format else "Bad request")
        if wanted == "json_object" and self.json_word and "json" not in json.dumps(request.messages).lower():
            return error(400, "'messages' must contain the word 'json' in some form, to use 'response_format'.")
        return None


ReplyFunction = Callable[[RecordedRequest], FakeReply]


# --- replies ----------------------------------------------------------------------------------------------------------


def chunk(delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    if delta is not None:
        choice["delta"] = delta
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "fake", "choices": [choice]}


def usage(prompt: int = 12, output: int = 7, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    counts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    if cached:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    if reasoning:
        counts["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return counts


def _counted(counts: dict[str, Any]) -> dict[str, Any]:
    """The last chunk of a stream that was asked for usage: no choice in it."""
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": counts}


def text(
    answer: str,
    *,
    finish: str | None = "stop",
    reasoning: str = "",
    reasoning_field: str = "reasoning_content",
    prompt: int = 12,
    output: int = 7,
    cached: int = 0,
    reasoning_tokens: int = 0,
    counted: bool = True,
    pieces: int = 3,
    between_s: float = 0.0,
    comments: bool = False,
    streams: bool = True,
) -> FakeReply:
    """An answer, after some reasoning in a field of its own if there is any; a stream gets it in `pieces` events."""
    cuts = cuts_of(answer, pieces)
    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({reasoning_field: reasoning, "content": None})] if reasoning else []
    chunks += [chunk({"content": cut}) for cut in cuts]
    chunks.append(chunk({}, finish))
    chunks += [_counted(usage(prompt, output, cached=cached, reasoning=reasoning_tokens))] if counted else []
    return FakeReply(tuple(chunks), between_s=between_s, comments=comments, streams=streams)


def parts(*contents: dict[str, Any]) -> FakeReply:
    """An answer whose content is a list."""
    return FakeReply((chunk({"content": list(contents)}), chunk({}, "stop"), _counted(usage())))


def tool_call(
    name: str,
    arguments: str = "{}",
    *,
    id: str = "call_1",
    say: str = "",
    finish: str = "tool_calls",
    numbered: bool = True,
) -> FakeReply:
    """A call, whose arguments a stream gets in three fragments. Without `numbered` each has the id and no index."""
    size = max(1, -(-len(arguments) // 3))
    cuts = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    place: dict[str, Any] = {"index": 0} if numbered else {"id": id}
    chunks = [chunk({"content": say})] if say else []
    chunks.append(
        chunk({"tool_calls": [{**place, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})
    )
    chunks += [chunk({"tool_calls": [{**place, "function": {"arguments": cut}}]}) for cut in cuts]
    return FakeReply((*chunks, chunk({}, finish), _counted(usage())))


def vectors(rows: list[list[float]], *, counted: int | None = 5, backwards: bool = False) -> FakeReply:
    """Embeddings as they are given, well or not; `backwards`: the last one first, each with its number."""
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    content: dict[str, Any] = {"object": "list", "data": data[::-1] if backwards else data, "model": "fake"}
    if counted is not None:
        content["usage"] = {"prompt_tokens": counted, "total_tokens": counted}
    return raw(json.dumps(content))


def default_vectors(request: RecordedRequest) -> FakeReply:
    """By the meaning of each text (`tests.meanings`)."""
    return vectors([vector_of(text, request.body.get("dimensions", DIMENSIONS)) for text in request.body["input"]])


def error(
    status: int,
    message: str = "",
    *,
    code: str | int | None = None,
    type: str = "",
    retry_after: float | str | None = None,
    shape: Literal["openai", "vllm", "string", "detail", "openrouter"] = "openai",
    headers: tuple[tuple[str, str], ...] = (),
    **more: Any,
) -> FakeReply:
    """An error, in the shape that one of the servers gives it; `more` goes into the error object."""
    message = message or f"fake failure {status}"
    body: dict[str, Any]
    if shape == "openai":
        body = {
            "error": {"message": message, "type": type or "invalid_request_error", "param": None, "code": code, **more}
        }
    elif shape == "vllm":
        body = {
            "object": "error",
            "message": message,
            "type": type or "BadRequestError",
            "param": None,
            "code": status,
            **more,
        }
    elif shape == "openrouter":
        body = {"error": {"message": message, "code": code or status, **more}, "user_id": "u"}
    elif shape == "string":
        body = {"error": message, **more}
    else:
        body = {"detail": message, **more}
    if retry_after is not None:
        headers = (*headers, ("Retry-After", str(retry_after)))
    return FakeReply(status=status, headers=headers, body=json.dumps(body).encode())


def error_in_200(message: str, code: int | str | None, **metadata: Any) -> FakeReply:
    """A router's answer of 200 that is an error."""
    return raw(json.dumps({"error": {"message": message, "code": code, "metadata": metadata}, "user_id": "u"}))


def error_in_stream(message: str, code: int | str | None, *, after: str = "so far") -> FakeReply:
    failure = {**chunk({"content": ""}, "error"), "error": {"code": code, "message": message}}
    return FakeReply((chunk({"content": after}), failure))


def drop(after: str = "") -> FakeReply:
    """The connection closes: at once, or in the middle of an answer that began with `after`."""
    return FakeReply((chunk({"content": after}),) if after else (), ending="close")


def unfinished(answer: str) -> FakeReply:
    """A stream that ends in good order with neither a finish reason nor `[DONE]`."""
    return FakeReply((chunk({"content": answer}),), ending="silent")


def slow(seconds: float, answer: str = "late") -> FakeReply:
    return FakeReply(text(answer).chunks, before_s=seconds)


def no_choices() -> FakeReply:
    return FakeReply(({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage(12, 0)},))


def default_reply(request: RecordedRequest) -> FakeReply:
    """The same words for the same request, naming the role if the system text tells it."""
    found = _ROLE.search(request.system)
    digest = hashlib.sha256(json.dumps(request.all_texts).encode()).hexdigest()[:8]
    return text(f"{found[1] if found else 'MODEL'} has read {len(request.all_texts)} messages ({digest}).")


# --- the server -------------------------------------------------------------------------------------------------------


class FakeOpenAI(FakeServer[RecordedRequest]):
    """As `FakeServer`; `manners` are checked before `reply` is asked."""

    def __init__(self, *, reply: ReplyFunction = default_reply, manners: Manners | None = None) -> None:
        self.reply = reply
        self.embed_reply: ReplyFunction = default_vectors
        self.manners = manners or Manners()
        self.listed: list[Any] = [{"id": "fake-model", "object": "model"}]
        self.loaded: list[dict[str, Any]] = []
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def record(self, path: str, body: dict[str, Any], headers: dict[str, str], *, embeds: bool) -> RecordedRequest:
        key = headers.pop("authorization", "")
        keep = self.keep_embedding if embeds else self.keep
        return keep(lambda index: RecordedRequest(index, path, body, key, headers))

    def answer_to(self, request: RecordedRequest, *, embeds: bool) -> FakeReply:
        return self.manners.refusal(request) or (self.embed_reply if embeds else self.reply)(request)


class _Handler(FakeHandler):
    stream_content_type = "text/event-stream; charset=utf-8"

    def do_POST(self) -> None:
        data, place, fake = self.read_body(), urlsplit(self.path).path, self.server.fake
        if place not in ("/v1/chat/completions", "/v1/embeddings"):
            return self.send(404, b"404 page not found", "text/plain")
        embeds = place == "/v1/embeddings"
        request = fake.record(self.path, json.loads(data), self.lowered_headers(), embeds=embeds)
        try:
            reply = fake.answer_to(request, embeds=embeds)
        except Exception as exc:  # noqa: BLE001 a mistake in a test's own reply function is to be seen, not to hang
            return self.send(500, json.dumps({"error": f"the reply function raised {exc!r}"}).encode())
        return self.answer(reply, streamed=request.streamed and reply.streams)

    def do_GET(self) -> None:
        fake = self.server.fake
        pages: dict[str, dict[str, Any]] = {
            "/v1/models": {"object": "list", "data": fake.listed},
            "/api/tags": {
                "models": [{"name": entry["id"]} for entry in fake.listed if isinstance(entry, dict) and "id" in entry]
            },
            "/api/ps": {"models": fake.loaded},
        }
        page = pages.get(urlsplit(self.path).path)
        if page is None:
            return self.send(404, b"404 page not found", "text/plain")
        if fake.manners.key and self.headers.get("Authorization") != f"Bearer {fake.manners.key}":
            return self.send(401, b'{"error":"Unauthorized"}')
        return self.send(200, json.dumps(page).encode())

    def merged(self, chunks: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        whole: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "model": "fake", "choices": []}
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls: dict[int, dict[str, Any]] = {}
        for piece in chunks:
            whole.update({name: piece[name] for name in ("usage", "error") if name in piece})
            for choice in piece["choices"]:
                whole["choices"] = [{"index": 0, "message": message, "finish_reason": choice.get("finish_reason")}]
                for name, value in choice.get("delta", {}).items():
                    if name == "tool_calls":
                        _merge_calls(calls, value)
                    elif value is not None:
                        known = message.get(name)
                        message[name] = value if known is None or name == "role" else known + value
        if calls:
            message["tool_calls"] = list(calls.values())
        return whole

    def stream(self, reply: FakeReply) -> None:
        for at, piece in enumerate(reply.chunks):
            if at and reply.between_s and self.server.fake.closing.wait(reply.between_s):
                break
            note = ": OPENROUTER PROCESSING\n\n" if reply.comments else ""
            self._event(f"{note}data: {json.dumps(piece, ensure_ascii=False)}\n\n")
        if reply.ending == "close":
            self.close_connection = True
            return
        if reply.ending in ("whole", "open"):
            self._event("data: [DONE]\n\n")
        if reply.ending == "open":
            self.close_connection = True
            self.server.fake.closing.wait(IDLE_TIMEOUT_S)
            return
        self.end_parts()

    def _event(self, event: str) -> None:
        data = event.encode()
        middle = len(data) // 2  # in two parts: an event is not a packet, nor is a character
        for part in (data[:middle], data[middle:]):
            self.send_part(part)


def _merge_calls(calls: dict[int, dict[str, Any]], fragments: list[dict[str, Any]]) -> None:
    for fragment in fragments:
        known = calls.setdefault(
            fragment.get("index", 0), {"type": "function", "function": {"name": "", "arguments": ""}}
        )
        if "id" in fragment:
            known["id"] = fragment["id"]
        for name, value in fragment["function"].items():
            known["function"][name] += value
