"""A stand-in for an OpenTelemetry collector on 127.0.0.1: takes OTLP over HTTP, decodes it, keeps every span."""

from __future__ import annotations

import gzip
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

MAX_BODY_BYTES = 16 << 20
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Received:
    """A span as it came. Ids are hex; `resource` holds what is said of the process."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    is_error: bool
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...]
    resource: dict[str, Any]
    schema_url: str


class FakeCollector:
    """`status`: what it answers with."""

    def __init__(self, *, status: int = 200) -> None:
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self._news = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65_536

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                assert size <= MAX_BODY_BYTES
                body = self.rfile.read(size)
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector._take(self.path, dict(self.headers), body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeCollector:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(TIMEOUT_S)

    def named(self, beginning: str) -> list[Received]:
        """The spans whose name begins so, by their start."""
        return sorted((span for span in self.spans if span.name.startswith(beginning)), key=lambda span: span.start_ns)

    def wait_for(self, beginning: str, count: int) -> list[Received]:
        """So many spans of that name."""
        deadline = time.monotonic() + TIMEOUT_S
        with self._news:
            while len(self.named(beginning)) < count:
                left = deadline - time.monotonic()
                assert left > 0, f"only {[span.name for span in self.spans]}"
                self._news.wait(left)
        return self.named(beginning)

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._news:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            for of_resource in request.resource_spans:
                resource = _values(of_resource.resource.attributes)
                for scope in of_resource.scope_spans:
                    self.spans += [_received(span, resource, scope.schema_url) for span in scope.spans]
            self._news.notify_all()


def _received(span: Any, resource: dict[str, Any], schema_url: str) -> Received:
    return Received(
        name=span.name,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        is_error=span.status.code == 2,
        attributes=_values(span.attributes),
        events=tuple((event.name, _values(event.attributes)) for event in span.events),
        resource=resource,
        schema_url=schema_url,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
