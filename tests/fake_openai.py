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
import socket
import socketserver
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.meanings import DIMENSIONS, vector_of

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_RECORDED = 10_000
IDLE_TIMEOUT_S = 30.0

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


@dataclass(frozen=True)
class FakeReply:
    """What goes back. `chunks` are stream chunks: a stream sends each as an event, a plain call gets their merger.

    `ending`: `close` drops the connection after the chunks; `silent` ends a stream in good order but without `[DONE]`;
    `open` says `[DONE]` and then leaves the connection as it is.
    `comments` keeps a stream alive with lines that are no data. `before_s` is waited first, `between_s` between chunks.
    """

    chunks: tuple[dict[str, Any], ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    body: bytes | None = None
    before_s: float = 0.0
    between_s: float = 0.0
    ending: Literal["whole", "close", "silent", "open"] = "whole"
    comments: bool = False
    streams: bool = True


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
    size = max(1, -(-len(answer) // max(1, pieces)))
    cuts = [answer[at : at + size] for at in range(0, len(answer), size)] or [""]
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


def raw(body: bytes | str, *, status: int = 200, content_type: str = "application/json") -> FakeReply:
    data = body.encode() if isinstance(body, str) else body
    return FakeReply(status=status, body=data, content_type=content_type)


def redirect(location: str) -> FakeReply:
    return FakeReply(status=307, headers=(("Location", location),), body=b"")


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


def in_turn(*replies: FakeReply) -> ReplyFunction:
    """The replies one after the other; the last one stays."""
    queue = deque(replies)
    lock = threading.Lock()

    def next_reply(request: RecordedRequest) -> FakeReply:
        with lock:
            return queue.popleft() if len(queue) > 1 else queue[0]

    return next_reply


def default_reply(request: RecordedRequest) -> FakeReply:
    """The same words for the same request, naming the role if the system text tells it."""
    found = _ROLE.search(request.system)
    digest = hashlib.sha256(json.dumps(request.all_texts).encode()).hexdigest()[:8]
    return text(f"{found[1] if found else 'MODEL'} has read {len(request.all_texts)} messages ({digest}).")


# --- the server -------------------------------------------------------------------------------------------------------


class FakeOpenAI:
    """The server, listening from construction on; `close()` (or leaving `with`) ends it and all its connections."""

    def __init__(self, *, reply: ReplyFunction = default_reply, manners: Manners | None = None) -> None:
        self.reply = reply
        self.embed_reply: ReplyFunction = default_vectors
        self._embeddings: deque[RecordedRequest] = deque(maxlen=MAX_RECORDED)
        self.manners = manners or Manners()
        self.listed: list[Any] = [{"id": "fake-model", "object": "model"}]
        self.loaded: list[dict[str, Any]] = []
        self.closing = threading.Event()
        self._requests: deque[RecordedRequest] = deque(maxlen=MAX_RECORDED)
        self._changed = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-openai", daemon=True
        )
        self._thread.start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        with self._changed:
            return list(self._requests)

    @property
    def embeddings(self) -> list[RecordedRequest]:
        with self._changed:
            return list(self._embeddings)

    def record_embedding(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> RecordedRequest:
        with self._changed:
            key = headers.pop("authorization", "")
            request = RecordedRequest(len(self._embeddings), path, body, key, headers)
            self._embeddings.append(request)
            self._changed.notify_all()
            return request

    def answer_embedding(self, request: RecordedRequest) -> FakeReply:
        return self.manners.refusal(request) or self.embed_reply(request)

    def wait_for_requests(self, count: int, *, timeout_s: float = 10.0) -> list[RecordedRequest]:
        """Blocks until `count` requests have come (call it through `asyncio.to_thread` on a loop)."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._requests) >= count, timeout_s)
            assert came, f"{len(self._requests)} of {count} requests came within {timeout_s} s"
            return list(self._requests)

    def record(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> RecordedRequest:
        with self._changed:
            key = headers.pop("authorization", "")
            request = RecordedRequest(len(self._requests), path, body, key, headers)
            self._requests.append(request)
            self._changed.notify_all()
            return request

    def answer(self, request: RecordedRequest) -> FakeReply:
        return self.manners.refusal(request) or self.reply(request)

    def close(self) -> None:
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()
        self._server.drop_connections()

    def __enter__(self) -> FakeOpenAI:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fake: FakeOpenAI) -> None:
        self.fake = fake
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look its own name up in the DNS here, which can take seconds on a machine without one.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other side was faster

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up (a cancelled call, a timeout) is ordinary here and leaves no traceback."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = IDLE_TIMEOUT_S
    wbufsize = 65536  # headers and body in one packet; see tests/fake_gemini.py
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        assert length <= MAX_BODY_BYTES
        data = self.rfile.read(length)
        place, fake = urlsplit(self.path).path, self.server.fake
        if place not in ("/v1/chat/completions", "/v1/embeddings"):
            return self._send(404, b"404 page not found", "text/plain")
        headers = {name.lower(): value for name, value in self.headers.items()}
        embeds = place == "/v1/embeddings"
        request = (fake.record_embedding if embeds else fake.record)(self.path, json.loads(data), headers)
        try:
            reply = fake.answer_embedding(request) if embeds else fake.answer(request)
        except Exception as exc:  # noqa: BLE001 a mistake in a test's own reply function is to be seen, not to hang
            return self._send(500, json.dumps({"error": f"the reply function raised {exc!r}"}).encode())
        return self._answer(reply, request.streamed)

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
            return self._send(404, b"404 page not found", "text/plain")
        if fake.manners.key and self.headers.get("Authorization") != f"Bearer {fake.manners.key}":
            return self._send(401, b'{"error":"Unauthorized"}')
        return self._send(200, json.dumps(page).encode())

    def _answer(self, reply: FakeReply, streamed: bool) -> None:
        if (reply.before_s and self.server.fake.closing.wait(reply.before_s)) or (
            reply.ending == "close" and not reply.chunks
        ):
            self.close_connection = True
        elif reply.body is not None:
            self._send(reply.status, reply.body, reply.content_type, reply.headers)
        elif streamed and reply.streams:
            self._stream(reply)
        else:
            self._send_plain(reply)

    def _send_plain(self, reply: FakeReply) -> None:
        data = json.dumps(_merged(reply.chunks)).encode()
        if reply.ending == "close":
            self.close_connection = True
            self._head(reply.status, "application/json", (("Content-Length", str(len(data) + 100)),))
            self.wfile.write(data)
        else:
            self._send(reply.status, data, reply.content_type, reply.headers)

    def _stream(self, reply: FakeReply) -> None:
        self._head(reply.status, "text/event-stream; charset=utf-8", (("Transfer-Encoding", "chunked"),))
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
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, event: str) -> None:
        data = event.encode()
        middle = len(data) // 2  # in two parts: an event is not a packet, nor is a character
        for part in (data[:middle], data[middle:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()

    def _send(
        self,
        status: int,
        data: bytes,
        content_type: str = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._head(status, content_type, (*headers, ("Content-Length", str(len(data)))))
        self.wfile.write(data)

    def _head(self, status: int, content_type: str, headers: tuple[tuple[str, str], ...]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the recorded requests tell the story."""


def _merged(chunks: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The chunks of a stream as one plain answer."""
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


def _merge_calls(calls: dict[int, dict[str, Any]], fragments: list[dict[str, Any]]) -> None:
    for fragment in fragments:
        known = calls.setdefault(
            fragment.get("index", 0), {"type": "function", "function": {"name": "", "arguments": ""}}
        )
        if "id" in fragment:
            known["id"] = fragment["id"]
        for name, value in fragment["function"].items():
            known["function"][name] += value
