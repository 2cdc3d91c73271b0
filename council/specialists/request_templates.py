"""Outside requests with their parameters filled in. Pure: no value of a credential is here.

The model fills in parameters and nothing else. Whether they stand in the asker's own words is decided by code.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from council.errors import CouncilError
from council.ids import canonical_json, sha256_hex
from council.safety.untrusted import plain_line
from council.specialists.specialist_spec import (
    MAX_PARAMETER_CHARS,
    PLACEHOLDER,
    CredentialHeader,
    RequestParameter,
    RequestTemplate,
)

Value = str | int | float | bool
_TYPES: Mapping[str, Any] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class ParameterRefused(CouncilError):
    """A parameter that does not fit its template."""

    code = "parameter_refused"
    http_status = 422


class FilledRequest(msgspec.Struct, frozen=True):
    """A request as it is sent, but for its credentials. `values` are the parameters."""

    name: str
    method: str
    url: str
    body: Any
    headers: tuple[CredentialHeader, ...]
    values: dict[str, Value]

    @property
    def host(self) -> str:
        return (urlsplit(self.url).hostname or "").rstrip(".")

    @property
    def digest(self) -> str:
        """Another one for each request that differs in anything."""
        return sha256_hex(canonical_json(msgspec.to_builtins(self)))


def fill(template: RequestTemplate, parameters: Mapping[str, Any]) -> FilledRequest:
    """The request with these parameters. Raises ParameterRefused for one that is missing, unknown or unfit."""
    declared = {parameter.name: parameter for parameter in template.parameters}
    for name in sorted(set(declared) ^ set(parameters)):
        state = "is missing" if name in declared else "is unknown"
        fix = f"its parameters: {', '.join(declared) or 'none'}"
        raise ParameterRefused(f"The request {template.name}: the parameter `{plain_line(name, 60)}` {state}.", fix=fix)
    values = {name: _fit(template.name, parameter, parameters[name]) for name, parameter in declared.items()}

    def escaped(found: re.Match[str]) -> str:
        return quote(_text(values[found[1]]), safe="")

    def in_body(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: in_body(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [in_body(value) for value in part]
        if not isinstance(part, str):
            return part
        alone = PLACEHOLDER.fullmatch(part)
        return values[alone[1]] if alone else PLACEHOLDER.sub(lambda found: _text(values[found[1]]), part)

    url = PLACEHOLDER.sub(escaped, template.url)
    path = urlsplit(url).path.split("/")
    if "." in path or ".." in path:
        raise ParameterRefused(f"The request {template.name} would leave its path.", fix="give no `.` or `..` there")
    return FilledRequest(template.name, template.method, url, in_body(template.body), template.headers, values)


def stands_in(words: str, filled: FilledRequest) -> bool:
    """Tells whether every parameter stands in these words, as whole words; spaces and capitals do not count."""
    said = _folded(words)

    def stands(value: Value) -> bool:
        texts = [_text(value)] if not isinstance(value, float) or value % 1 else [_text(value), _text(int(value))]
        return any(
            (sought := _folded(text)) and re.search(rf"(?<!\w){re.escape(sought)}(?!\w)", said) is not None
            for text in texts
        )

    return all(map(stands, filled.values.values()))


def _fit(request: str, parameter: RequestParameter, given: Any) -> Value:
    """The value, if it has the parameter's type and length."""
    where, is_bool = f"The request {request}: the parameter `{parameter.name}`", isinstance(given, bool)
    if not isinstance(given, _TYPES[parameter.type]) or is_bool != (parameter.type == "boolean"):
        raise ParameterRefused(f"{where} is not of the type {parameter.type}.", fix=f"give one {parameter.type}")
    value: Value = given
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterRefused(f"{where} is not a finite number.", fix="give a number")
    text = _text(value)
    if len(text) > MAX_PARAMETER_CHARS:
        raise ParameterRefused(
            f"{where} has {len(text)} characters.", fix=f"give at most {MAX_PARAMETER_CHARS} characters"
        )
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") for char in text):
        raise ParameterRefused(f"{where} holds a character that cannot be seen.", fix="give plain text on one line")
    return value


def _text(value: Value) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
