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
from council.specialists.specialist_spec import MAX_PARAMETER_CHARS, PLACEHOLDER, CredentialHeader, RequestTemplate

Value = str | int | float | bool
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


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
    declared = {parameter.name: parameter.type for parameter in template.parameters}
    values: dict[str, Value] = {}
    for name in sorted({*declared, *parameters}):
        given, type = parameters.get(name), declared.get(name, "")
        is_typed = isinstance(given, _TYPES.get(type, ())) and isinstance(given, bool) == (type == "boolean")
        text = "" if given is None else str(given)
        problem = (
            "is unknown" if name not in declared
            else "is missing" if name not in parameters
            else f"is not of the type {type}" if not is_typed
            else "is not finite" if isinstance(given, float) and not math.isfinite(given)
            else f"has {len(text)} characters, more than {MAX_PARAMETER_CHARS}" if len(text) > MAX_PARAMETER_CHARS
            else "holds a character that cannot be seen"
            if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") for char in text)
            else ""
        )  # fmt: skip
        if problem:
            fix = ", ".join(f"{name} ({kind})" for name, kind in declared.items()) or "none"
            message = f"The parameter `{plain_line(name, 60)}` of the request {template.name} {problem}."
            raise ParameterRefused(message, fix=f"give its parameters on one line each: {fix}")
        values[name] = given  # type: ignore[assignment]

    def in_body(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: in_body(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [in_body(value) for value in part]
        if not isinstance(part, str):
            return part
        alone = PLACEHOLDER.fullmatch(part)
        return values[alone[1]] if alone else PLACEHOLDER.sub(lambda found: _text(values[found[1]]), part)

    url = PLACEHOLDER.sub(lambda found: quote(_text(values[found[1]]), safe=""), template.url)
    path = urlsplit(url).path.split("/")
    if "." in path or ".." in path:
        raise ParameterRefused(f"The request {template.name} would leave its path.", fix="give no `.` or `..` there")
    return FilledRequest(template.name, template.method, url, in_body(template.body), template.headers, values)


def stands_in(words: str, filled: FilledRequest) -> bool:
    """Tells whether every parameter stands in these words, as whole words; spaces and capitals do not count."""
    said = _folded(words)
    sought = [
        {_folded(_text(value)), _folded(_text(int(value))) if isinstance(value, float) and value % 1 == 0 else ""}
        for value in filled.values.values()
    ]
    return all(any(text and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", said) for text in texts) for texts in sought)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
