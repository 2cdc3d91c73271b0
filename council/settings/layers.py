"""Finds each setting's value and remembers where it came from: flags, COUNCIL_* variables, `.env`, `council.toml`,
defaults. A value that does not fit is a ConfigError wherever it stands; so is an unknown name, except in `.env`, which
others share."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_origin

from dotenv import dotenv_values
from pydantic import ValidationError

from council.errors import ConfigError
from council.ids import escape_unseen
from council.proposals import nearest
from council.redaction import MASK
from council.settings.home import Home
from council.settings.table import Settings, taken

PREFIX = "COUNCIL_"
FLAG, ENVIRONMENT, DOTENV, TOML, DEFAULT = "flag", "environment", ".env", "council.toml", "default"
PROVIDER_NAMES = (
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "HF_TOKEN",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "OLLAMA_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
)

_TABLES = {key for key, field in Settings.model_fields.items() if get_origin(field.annotation) is dict}
_VARIABLES = frozenset(PREFIX + key.upper() for key in Settings.model_fields)
MAX_FILE_BYTES = 128 << 10  # of settings; python-dotenv takes a second over twice that
_RESERVED = ("COUNCIL_HOME", "COUNCIL_TEST_")  # read elsewhere; the second is a family of names
# What keys of the usual providers look like, URLs with a password, and any long run without a break.
_SECRET_LIKE = re.compile(r"AIza|\bsk-|\bhf_|\bgh[pousr]_|://\S*@|[A-Za-z0-9_\-+/=]{32,}")

Layer = dict[str, Any]


@dataclass(frozen=True)
class LoadedSettings:
    """`sources[key]`: `flag`, `COUNCIL_MODEL (environment)`, `.env`, `council.toml` or `default`, for every key."""

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load_settings(home: Home, *, flags: Mapping[str, object], environ: Mapping[str, str]) -> LoadedSettings:
    """Merge the layers and validate. A flag that is None was not given. Raises ConfigError."""
    dotenv, warnings = read_dotenv(home.root / ".env")
    for name in dotenv:
        if _is_setting_name(name) and name not in _VARIABLES:
            warnings.append(f"skipped: {_unknown(f'{name} in .env', _key(name), spelled=_variable)}")
    toml = _toml_layer(home.root / "council.toml")
    variables = {name: value for name, value in environ.items() if _is_setting_name(name)}
    for name in variables:
        if name not in _VARIABLES:
            raise _unknown(f"{name} (environment)", _key(name), spelled=_variable)
    given = {key: value for key, value in flags.items() if value is not None}
    for key in given:
        if key not in Settings.model_fields:
            raise _unknown(_flag(key), key, spelled=_flag)
    layers = (
        (TOML, toml),
        (DOTENV, _layer_of({name: value for name, value in dotenv.items() if name in _VARIABLES})),
        (ENVIRONMENT, _layer_of(variables)),
        (FLAG, given),
    )
    merged: Layer = {}
    sources = dict.fromkeys(Settings.model_fields, DEFAULT)
    for name, layer in layers:
        merged |= layer
        sources |= {key: f"{_variable(key)} ({name})" if name == ENVIRONMENT else name for key in layer}
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        place = "" if sources[key] == FLAG else f", as {sources[key]} has it"  # an argument is before the person's eyes
        raise _wrong_value(key, merged[key], place, error) from None
    return LoadedSettings(settings, MappingProxyType(sources), tuple(warnings))


def _layer_of(variables: Mapping[str, str]) -> Layer:
    """Variables as settings: an empty one is absent, a table is written as JSON."""
    layer: Layer = {_key(name): value for name, value in variables.items() if value}
    for key in _TABLES & layer.keys():
        with contextlib.suppress(ValueError):  # what is no JSON fits no table
            layer[key] = json.loads(layer[key])
    return layer


class _DotenvWarnings(logging.Handler):
    """Collects what python-dotenv says of lines that it cannot read."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = re.search(r"line (\d+)", record.getMessage())
        self.warnings.append(f".env, line {line[1] if line else '?'}, is skipped: it is not NAME=value.")


def read_dotenv(path: Path) -> tuple[dict[str, str], list[str]]:
    """The variables, without interpolation, and what went wrong. Raises ConfigError for a file that is too large."""
    try:
        if not path.is_file():
            return {}, []
        _require_small(path, "keep the lines NAME=value that Council needs")
        told = _DotenvWarnings()
        parser_log = logging.getLogger("dotenv.main")
        parser_log.addHandler(told)
        parser_log.propagate = False  # what it says goes into our own warnings, with the name of the file
        try:
            variables = dotenv_values(path, interpolate=False, encoding="utf-8-sig")  # -sig: Notepad's mark
        finally:
            parser_log.removeHandler(told)
        return {name: value for name, value in variables.items() if value}, told.warnings
    except (OSError, ValueError) as error:
        return {}, [f".env is skipped: it cannot be read ({type(error).__name__})."]


def _require_small(path: Path, fix: str) -> None:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{path} has {size:,} bytes, and at most {MAX_FILE_BYTES:,} are read.", fix=fix)


def _toml_layer(path: Path) -> Layer:
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is not a file.", fix="move it away, or replace it with a file of settings")
    try:
        if path.exists():
            _require_small(path, "keep the settings, and move the rest elsewhere")
        values = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        lines = path.read_text("utf-8").split("\n")  # else "(at end of document)"
        line, column = (int(at[1]), int(at[2])) if at else (len(lines), len(lines[-1]) + 1)
        said = str(error).partition(" (at ")[0]
        raise ConfigError(
            f"{path} is not valid TOML: {said} at line {line}, column {column}.",
            fix="correct that line; text values need quotation marks.",
            line=line,
            column=column,
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read ({type(error).__name__}).", fix="make it readable UTF-8 text, or remove it."
        ) from error
    for key in values:
        if key not in Settings.model_fields:
            raise _unknown(f"`{key}` in council.toml", key, spelled=str)
    return values


def _unknown(what: str, key: str, *, spelled: Any) -> ConfigError:
    if key.upper() in PROVIDER_NAMES:
        fix = f"{key.upper()} is not a setting: put it into the environment or .env under that name."
    else:
        near = nearest(key.replace("-", "_"), Settings.model_fields)
        fix = f"did you mean {spelled(near)}?" if near else "`council config show` lists every setting."
    return ConfigError(f"{what} is not a setting.", fix=fix, key=key)


def _wrong_value(key: str, value: Any, place: str, error: ValidationError) -> ConfigError:
    """Says what it is and what it takes, never in pydantic's words."""
    fault = error.errors()[0]
    path, reason, advice = fault["loc"], "", ""
    match fault["type"]:
        case "value_error":
            reason, _, advice = fault["msg"].removeprefix("Value error, ").partition("; ")
        case "missing":
            path, reason = path[:-1], f"it lacks {path[-1]}"
        case "extra_forbidden":
            path, reason = path[:-1], f"{path[-1]} is not among its keys"
    for part in path[1:]:
        is_nested = isinstance(value, (dict, list))
        value = value[part] if is_nested else None
    shown = escape_unseen(json.dumps(value, ensure_ascii=False, default=str))  # TOML has dates
    does_not_fit = f"cannot be {MASK if _SECRET_LIKE.search(shown) else shown}"
    if isinstance(value, dict) or (len(path) > 1 and value is None):  # a table is not repeated: it may hold a key
        does_not_fit = "does not fit"
    told = f"{'.'.join(map(str, path))} {does_not_fit}{place}{f': {reason}' if reason else ''}."
    return ConfigError(told, fix=advice or f"{taken(path)}.", key=key)


def _is_setting_name(name: str) -> bool:
    return name.startswith(PREFIX) and name != _RESERVED[0] and not name.startswith(_RESERVED[1])


def _key(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _variable(key: str) -> str:
    return PREFIX + key.upper()


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")
