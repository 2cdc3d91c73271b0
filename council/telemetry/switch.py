"""Spans of runs, where the setting `otel_endpoint` or else the standard OTEL_* variables ask for them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council.errors import ConfigError
from council.settings import ProviderKeys, Settings

if TYPE_CHECKING:
    from council.telemetry.export import Telemetry

log = logging.getLogger(__name__)

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_PATH = "/v1/traces"


@dataclass(frozen=True)
class SpanDestination:
    endpoint: str
    content: bool


def build_telemetry(settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> Telemetry | None:
    """None unless it is switched on. Raises ConfigError when a setting asks for it and its packages are not there;
    where only the environment does, that is logged."""
    asked = wanted(settings, environ)
    if asked is None:
        return None
    try:
        from council.telemetry.export import open_telemetry  # not at the top: OpenTelemetry, which may not be there
    except ImportError as error:
        fix = "pip install 'council[otel]'"
        if settings.otel_endpoint:
            raise ConfigError(
                f"otel_endpoint is set, but OpenTelemetry is not installed ({error.name}).", fix=fix
            ) from None
        log.warning("no spans: OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed (%s).", fix)
        return None
    return open_telemetry(asked, keys.redactor)


def wanted(settings: Settings, environ: Mapping[str, str]) -> SpanDestination | None:
    """None: no spans. OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none switch off whatever else is set."""
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
    return SpanDestination(traces, settings.otel_content)
