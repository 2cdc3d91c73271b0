"""Spans of runs, where they are asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from council.errors import ConfigError
from council.settings import ProviderKeys, Settings
from council.telemetry.switch import foreign_protocol, wanted

if TYPE_CHECKING:
    from council.telemetry.export import Telemetry

log = logging.getLogger(__name__)


def build_telemetry(settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> Telemetry | None:
    """None unless it is switched on. Raises ConfigError when a setting asks for it and its packages are not there; where
    only the machine's environment does, that is logged."""
    asked = wanted(settings, environ)
    if asked is None:
        return None
    if (protocol := foreign_protocol(environ)) and not asked.by_setting:
        log.warning("no spans: OTEL_EXPORTER_OTLP_PROTOCOL is %s, but Council only supports http/protobuf.", protocol)
        return None
    try:
        from council.telemetry.export import open_telemetry  # not at the top: OpenTelemetry, which may not be there
    except ImportError as error:
        fix = "pip install 'council[otel]'"
        if asked.by_setting:
            raise ConfigError(
                f"otel_endpoint is set, but OpenTelemetry is not installed ({error.name}).", fix=fix
            ) from None
        log.warning("no spans: OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed (%s).", fix)
        return None
    return open_telemetry(asked, keys.redactor)
