"""Where a home lies, what is configured and where each value came from, and the providers' keys.

The only room that reads the environment, `.env` and `council.toml`; all others get values as arguments.
"""

from council.settings.home import Home, builtin_personas_dir, find_home, init_home
from council.settings.keys import BASE_URL_NAME, KEY_NAMES, ProviderKeys, load_provider_keys
from council.settings.model import DEFAULT_MODEL, Settings, allowed_values, council_toml_template
from council.settings.sources import LoadedSettings, load_settings

__all__ = [
    "BASE_URL_NAME",
    "DEFAULT_MODEL",
    "KEY_NAMES",
    "Home",
    "LoadedSettings",
    "ProviderKeys",
    "Settings",
    "allowed_values",
    "builtin_personas_dir",
    "council_toml_template",
    "find_home",
    "init_home",
    "load_provider_keys",
    "load_settings",
]
