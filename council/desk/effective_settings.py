"""The settings as they hold, each with the place that it comes from, and nothing that is secret."""

from __future__ import annotations

import re
from typing import Any

from council.desk.desk import Desk
from council.desk.overview import edited_settings
from council.redaction import MASK
from council.settings import BASE_URL_NAME, KEY_NAMES, left_out
from council.storage.files import FileLock
from council.storage.paths import ALWAYS_DENIED

_USERINFO = re.compile(r"(?<=://)[^/\s@]*@")  # user:password@ in a URL


def effective_settings(desk: Desk) -> dict[str, Any]:
    """Plain values: of each setting its value and source, of each provider's key only if it is set. Raises ConfigError."""
    loaded, keys = desk.loaded, desk.keys
    keys.register(table.key_env for table in loaded.settings.providers.values() if table.key_env)
    values = loaded.settings.model_dump(mode="json")
    told = {
        "home": str(desk.home.root),
        "settings": {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()},
        "keys": {name: {"set": name in keys.sources, "source": keys.sources.get(name)} for name in KEY_NAMES},
        "never_read": list(ALWAYS_DENIED),
        "left_out": list(left_out(desk.home.root, loaded.settings.read_roots)),
        "edited_settings": edited_settings(desk.home, FileLock.holder(desk.home.lock_file)),
        BASE_URL_NAME: {"value": keys.gemini_base_url, "source": keys.sources.get(BASE_URL_NAME)},
    }
    # The keys are never put into it; this catches one that was pasted where it does not belong.
    return {key: _without_users(value) for key, value in keys.redactor.in_texts(told).items()}


def as_cell(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _without_users(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_users(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_users(item) for item in value]
    return _USERINFO.sub(f"{MASK}@", value) if isinstance(value, str) else value
