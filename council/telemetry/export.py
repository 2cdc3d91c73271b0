"""The way out of spans: a bounded queue, a thread of its own, OTLP over HTTP. A collector that is slow, dead or wrong
costs a run nothing. The standard OTEL_* variables hold; the global tracer of the process is left alone."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from council import __version__
from council.redaction import Redactor
from council.telemetry.switch import SpanDestination
from council.telemetry.tracing import RunIds, Tracing

log = logging.getLogger(__name__)

CLOSE_S = 3.0  # a collector that is there takes milliseconds
_EXPORT_S = 5.0  # one delivery, its retries included


class Telemetry:
    """Tracing and the way out, as one thing to be closed."""

    def __init__(self, tracing: Tracing, provider: TracerProvider, exporter: _Once) -> None:
        self.tracing = tracing
        self._provider = provider
        self._exporter = exporter

    def close(self) -> None:
        """Delivers what there is, for at most `CLOSE_S` seconds; where nothing could be delivered before, it is let be."""
        self.tracing.close()
        if self._exporter.failing:
            self._exporter.shutdown()
        last = threading.Thread(target=self._provider.shutdown, name="council-telemetry-close", daemon=True)
        last.start()
        last.join(CLOSE_S)
        if last.is_alive():
            self._exporter.warn_once("the last spans were not delivered within %g s and are dropped.", CLOSE_S)


def open_telemetry(wanted: SpanDestination, redactor: Redactor, exporter: SpanExporter | None = None) -> Telemetry:
    """`exporter` in place of OTLP: for tests, and for whoever embeds Council."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would say every few seconds what we say once
    known = Resource.create()
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    own = {SERVICE_VERSION: __version__} | ({} if named else {SERVICE_NAME: "council"})
    provider = TracerProvider(resource=known.merge(Resource(own)), id_generator=RunIds(), shutdown_on_exit=False)
    inner = exporter or OTLPSpanExporter(endpoint=wanted.endpoint, timeout=_EXPORT_S)
    outer = _Once(inner, wanted.endpoint)
    provider.add_span_processor(BatchSpanProcessor(outer))
    return Telemetry(Tracing(provider, content=wanted.content, redactor=redactor), provider, outer)


class _Once(SpanExporter):
    """Says once for each outage that spans cannot be delivered."""

    def __init__(self, inner: SpanExporter, endpoint: str) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self.failing = False
        self._lock = threading.Lock()  # the end of a run warns while the thread that delivers may be about to

    def warn_once(self, text: str, *values: object) -> None:
        """Logs the first failure since the last delivery and no other."""
        with self._lock:
            if not self.failing:
                log.warning(text, *values)
            self.failing = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        why = ""
        try:
            result = self._inner.export(spans)
        except Exception as error:  # noqa: BLE001  whatever an exporter does, the thread that delivers must live on
            result, why = SpanExportResult.FAILURE, f" ({type(error).__name__})"
        scheme, mark, rest = self._endpoint.partition("://")
        where = f"{scheme}{mark}{rest.rpartition('@')[2]}"  # without a user's name and password
        if result is not SpanExportResult.SUCCESS:
            self.warn_once(
                "spans cannot be delivered to %s%s; runs continue without them. Is it an address for "
                "OTLP over HTTP? This message appears once.",
                where,
                why,
            )
        else:
            self.failing = False
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)
