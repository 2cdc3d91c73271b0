"""What the fake providers have in common: an HTTP server on 127.0.0.1 that keeps every request, answers as it is told, and
drops all its connections when it is closed. How a provider's requests and answers look is said by who uses it."""

from __future__ import annotations

import json
import select
import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_RECORDED = 10_000
IDLE_TIMEOUT_S = 30.0

Request = TypeVar("Request")


@contextmanager
def no_way_in() -> Iterator[str]:
    """The address of a host that is not loopback by name, whose queue is full: a connection to it is never made."""
    with socket.create_server(("0.0.0.0", 0), backlog=0) as server, ExitStack() as waiting:
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"http://0.0.0.0:{server.getsockname()[1]}"


@dataclass(frozen=True)
class FakeReply:
    """The answer to a request. `chunks` are a provider's own: a stream sends each as an event, a plain call gets their merger.

    `ending`: `close` drops the connection after the chunks (in mid-body, also for a plain call); `silent` ends a stream in good
    order, so only what is missing betrays it; `open` says `[DONE]` and then leaves the connection as it is. `before_s` is waited
    first, `between_s` between chunks; both end early when the server closes. `comments` keeps a stream alive with lines that are
    no data. Without `streams` there is one plain answer.
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


def raw(body: bytes | str, *, status: int = 200, content_type: str = "application/json") -> FakeReply:
    data = body.encode() if isinstance(body, str) else body
    return FakeReply(status=status, body=data, content_type=content_type)


def redirect(location: str) -> FakeReply:
    return FakeReply(status=307, headers=(("Location", location),), body=b"")


def cuts_of(answer: str, pieces: int) -> list[str]:
    """The answer in so many pieces, for the events of a stream."""
    size = max(1, -(-len(answer) // max(1, pieces)))
    return [answer[at : at + size] for at in range(0, len(answer), size)] or [""]


class FakeServer(Generic[Request]):
    """The server, listening from construction on; `close()` (or leaving `with`) ends it and all its connections."""

    def __init__(self, handler: type[FakeHandler], *, port: int = 0) -> None:
        self.closing = threading.Event()
        self._requests: deque[Request] = deque(maxlen=MAX_RECORDED)
        self._embeddings: deque[Request] = deque(maxlen=MAX_RECORDED)
        self._hang_ups: deque[float] = deque(maxlen=MAX_RECORDED)
        self._count = 0
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", port), handler, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name=type(self).__name__, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._requests)

    @property
    def embeddings(self) -> list[Request]:
        """The requests for embeddings, which are kept apart."""
        with self._changed:
            return list(self._embeddings)

    def wait_for_requests(self, count: int, *, timeout_s: float = 10.0) -> list[Request]:
        """Blocks until `count` requests have come (call it through `asyncio.to_thread` on a loop)."""
        with self._changed:
            came = self._changed.wait_for(lambda: self._count >= count, timeout_s)
            assert came, f"{self._count} of {count} requests came within {timeout_s} s"
            return list(self._requests)

    def keep(self, request_at: Callable[[int], Request]) -> Request:
        """Keeps the request that `request_at` makes of its number."""
        with self._changed:
            request = request_at(self._count)
            self._count += 1
            self._requests.append(request)
            self._changed.notify_all()
            return request

    def keep_embedding(self, request_at: Callable[[int], Request]) -> Request:
        with self._changed:
            request = request_at(len(self._embeddings))
            self._embeddings.append(request)
            self._changed.notify_all()
            return request

    def note_hang_up(self) -> None:
        with self._changed:
            self._hang_ups.append(time.monotonic())
            self._changed.notify_all()

    def wait_for_hang_ups(self, count: int, *, timeout_s: float = 10.0) -> list[float]:
        """Blocks until `count` callers have cut their connection while they waited for an answer (`before_s`); when each
        did, by the monotonic clock in seconds."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._hang_ups) >= count, timeout_s)
            assert came, f"{len(self._hang_ups)} of {count} callers hung up within {timeout_s} s"
            return list(self._hang_ups)

    def close(self) -> None:
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()
        self._server.drop_connections()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[FakeHandler], fake: FakeServer[Any]) -> None:
        self.fake: Any = fake
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, handler)

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


class FakeHandler(BaseHTTPRequestHandler):
    """Reads a request and sends a reply; sub-classes say what they look like (`merged`, `stream_content_type`, `event`)."""

    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = IDLE_TIMEOUT_S
    # Headers and body in one packet: unbuffered, every call pays 40 ms to Nagle and the delayed acknowledgement.
    wbufsize = 65536
    disable_nagle_algorithm = True  # the same price per chunk of a stream
    stream_content_type = "text/event-stream"

    def merged(self, chunks: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        """The chunks of a stream as one plain answer."""
        raise NotImplementedError

    def stream(self, reply: Any) -> None:
        """Sends the chunks of a reply, after the head."""
        raise NotImplementedError

    def read_body(self) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        assert length <= MAX_BODY_BYTES
        return self.rfile.read(length)

    def lowered_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def answer(self, reply: FakeReply, *, streamed: bool) -> None:
        waited = not reply.before_s or self._waits(reply.before_s)
        if not waited or (reply.ending == "close" and not reply.chunks):
            self.close_connection = True
        elif reply.body is not None:
            self.send(reply.status, reply.body, reply.content_type, reply.headers)
        elif streamed:
            self.head(reply.status, self.stream_content_type, (("Transfer-Encoding", "chunked"),))
            self.stream(reply)
        else:
            self._send_plain(reply)

    def _waits(self, seconds: float) -> bool:
        """False where the caller hung up, or the server was closed, before that: a caller that waits says nothing more."""
        ended, _, _ = select.select([self.connection], [], [], seconds)
        if ended and not self.server.fake.closing.is_set():
            self.server.fake.note_hang_up()
        return not ended

    def _send_plain(self, reply: FakeReply) -> None:
        data = json.dumps(self.merged(reply.chunks)).encode()
        if reply.ending == "close":  # in the middle
            self.close_connection = True
            self.head(reply.status, "application/json", (("Content-Length", str(len(data) + 100)),))
            self.wfile.write(data)
        else:
            self.send(reply.status, data, reply.content_type, reply.headers)

    def send_part(self, data: bytes) -> None:
        """A part of a stream, at once."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end_parts(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def send(
        self,
        status: int,
        data: bytes,
        content_type: str = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.head(status, content_type, (*headers, ("Content-Length", str(len(data)))))
        self.wfile.write(data)

    def head(self, status: int, content_type: str, headers: tuple[tuple[str, str], ...]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the recorded requests tell the story."""


def in_turn(*replies: FakeReply) -> Callable[[Any], FakeReply]:
    """The replies one after the other; the last one stays."""
    queue = deque(replies)
    lock = threading.Lock()

    def next_reply(request: Any) -> FakeReply:
        with lock:
            return queue.popleft() if len(queue) > 1 else queue[0]

    return next_reply
