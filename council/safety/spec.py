"""A proposed agent as the ministers read it: whatever its file says, in one shape. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

MAX_ITEMS = 200  # of any list in a spec; what more there is, is said to be too much
_MAX_DEPTH = 16


@dataclass(frozen=True)
class RequestLine:
    """A template of an outside request as it was proposed: where it stands, its address, and all its texts in one."""

    where: str
    url: str
    texts: str


@dataclass(frozen=True)
class AgentSpec:
    """The declarations of a proposal. `requests` are templates that code fills in and sends. `others` are the texts of all its
    other fields, each with its place: a model may be shown them too. `faults` are places of a wrong shape."""

    role: str = ""
    purpose: str = ""
    rules: tuple[str, ...] = ()
    output_schema: Any = None
    tools: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    code: str = ""
    requests: tuple[RequestLine, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    faults: tuple[str, ...] = field(default=())


_SPELLINGS = {
    "role": ("role", "id", "name"),
    "purpose": ("purpose", "description"),
    "rules": ("rules", "dna_rules", "instructions"),
    "output_schema": ("output_schema", "schema", "output"),
    "tools": ("tools",),
    "hosts": ("hosts", "network", "domains"),
    "paths": ("paths", "files", "read_roots"),
    "depends_on": ("depends_on", "dependencies"),
    "code": ("code", "source"),
}


def read_spec(values: Mapping[str, Any]) -> AgentSpec:
    """The spec in a mapping, in the spellings of the source documents and of a persona. Never raises: what does not fit is
    a fault."""
    faults: list[str] = []

    def value(name: str) -> Any:
        return next((values[key] for key in _SPELLINGS[name] if values.get(key) is not None), None)

    def text(name: str) -> str:
        found = value(name)
        if found is None or isinstance(found, str):
            return (found or "").strip()
        faults.append(f"`{name}` is not text")
        return ""

    def texts(name: str) -> tuple[str, ...]:
        found = value(name)
        if isinstance(found, str):
            found = [part for part in (line.strip(" -*\t") for line in found.splitlines()) if part]
        if found is None:
            return ()
        if not isinstance(found, (list, tuple)) or not all(isinstance(item, str) for item in found):
            faults.append(f"`{name}` is not a list of texts")
            return tuple(str(item)[:1000] for item in found[:MAX_ITEMS]) if isinstance(found, (list, tuple)) else ()
        if len(found) > MAX_ITEMS:
            faults.append(f"`{name}` holds more than {MAX_ITEMS} entries")
        return tuple(item.strip() for item in found[:MAX_ITEMS] if item.strip())

    requests, proposed = [], values.get("requests") or []
    for number, request in enumerate(
        proposed[:MAX_ITEMS] if isinstance(proposed, (list, tuple)) else [proposed], start=1
    ):
        if isinstance(request, Mapping) and isinstance(request.get("url"), str):
            words = "\n".join(found or "" for _, found in _texts_of(request))
            requests.append(RequestLine(f"requests[{number}]", request["url"], words))
        else:
            faults.append(f"`requests[{number}]` is no template with a `url`")
    judged = {key for name in ("role", "purpose", "rules", "code") for key in _SPELLINGS[name]}
    others = list(islice(_texts_of({key: kept for key, kept in values.items() if key not in judged}), MAX_ITEMS + 1))
    faults += [f"`{where}` is nested more than {_MAX_DEPTH} deep" for where, found in others if found is None]
    if len(others) > MAX_ITEMS:
        faults.append(f"it holds more than {MAX_ITEMS} texts")
    return AgentSpec(
        role=text("role"),
        purpose=text("purpose"),
        rules=texts("rules"),
        output_schema=value("output_schema"),
        tools=texts("tools"),
        hosts=texts("hosts"),
        paths=texts("paths"),
        depends_on=texts("depends_on"),
        code=text("code"),
        requests=tuple(requests),
        others=tuple((where, found) for where, found in others[:MAX_ITEMS] if found is not None),
        faults=tuple(faults),
    )


def _texts_of(value: Any, where: str = "", depth: int = 0) -> Iterator[tuple[str, str | None]]:
    """Every string in a value, with its place; None for what lies deeper than `_MAX_DEPTH`."""
    if isinstance(value, str):
        yield where, value
    elif depth == _MAX_DEPTH and isinstance(value, (Mapping, list, tuple)):
        yield where, None
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts_of(part, f"{where}.{key}" if where else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value, start=1):
            yield from _texts_of(part, f"{where}[{number}]", depth + 1)


def looks_like_spec(values: Mapping[str, Any]) -> bool:
    """Tells whether a mapping proposes an agent: it has a role, and something that makes one of it."""
    makes_one = ("purpose", "dna_rules", "rules", "instructions", "output_schema", "tools", "code")
    return any(key in values for key in ("role", "dna_rules")) and any(key in values for key in makes_one)
