"""The wish for spans and their destination: the setting `otel_endpoint`, else the standard OTEL_* variables. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from council.settings import Settings

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PATH = "/v1/traces"
_HTTP = "http/protobuf"


@dataclass(frozen=True)
class SpanDestination:
    """`endpoint` is a whole URL. `by_setting`: asked for in this home, and not only by the machine's environment."""

    endpoint: str
    content: bool
    by_setting: bool


def wanted(settings: Settings, environ: Mapping[str, str]) -> SpanDestination | None:
    """The destination of spans. None: no spans. OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none switch off whatever else is
    set."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    traces, base = (environ.get(name, "").strip() for name in (_TRACES_ENDPOINT, _ENDPOINT))
    base = (settings.otel_endpoint or base).rstrip("/")
    if not base and not traces:
        return None
    if settings.otel_endpoint or not traces:
        traces = base if base.endswith(_PATH) else base + _PATH
    return SpanDestination(traces, settings.otel_content, by_setting=bool(settings.otel_endpoint))


def foreign_protocol(environ: Mapping[str, str]) -> str:
    """The OTLP protocol that the environment asks for where it is none of ours; empty otherwise."""
    asked = next((value for name in _PROTOCOLS if (value := environ.get(name, "").strip())), _HTTP)
    return "" if asked == _HTTP else asked
