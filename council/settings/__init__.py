"""The home, its settings, and the providers' keys: the only room that reads the environment, `.env` and `council.toml`.
Names are loaded when they are asked for: finding a home (`council status`) must not wait for pydantic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from council.settings.home import Home, builtin_personas_dir, find_home, home_files, init_home, left_out
    from council.settings.layers import LoadedSettings, load_settings
    from council.settings.model_names import DEFAULT_MODEL
    from council.settings.provider_keys import BASE_URL_NAME, KEY_NAMES, ProviderKeys, load_provider_keys
    from council.settings.table import Settings, allowed_values, council_toml_template

__all__ = [
    "BASE_URL_NAME", "DEFAULT_MODEL", "KEY_NAMES", "Home", "LoadedSettings", "ProviderKeys", "Settings", "allowed_values",
    "builtin_personas_dir", "council_toml_template", "find_home", "home_files", "init_home", "left_out", "load_provider_keys",
    "load_settings",
]  # fmt: skip

_MODULES = ("home", "model_names", "provider_keys", "table", "layers")  # those that load pydantic last


def __getattr__(name: str) -> Any:
    modules = map(import_module, (f"{__name__}.{module}" for module in _MODULES if name in __all__))
    for module in modules:
        if name in vars(module):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
