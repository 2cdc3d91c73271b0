"""The ministers (source: Kingdom, "Minister Council") as guardrails over proposed agents and their code.

The Guardian says whether one is safe, the Validator whether it is well made, the Auditor whether it is any good. All are
deterministic. None of them is a boundary: an agent that all of them approve still runs with an allowlist, in a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import msgspec

from council.redaction import Redactor
from council.safety.authority_claims import claim_of_authority
from council.safety.boundary_table import DECLINED, crossed
from council.safety.host_and_path_risk import Risk, judge_address, judge_host, judge_path
from council.safety.python_code import CodeFinding, judge_python
from council.safety.untrusted import hides_text, plain_line

MIN_PURPOSE_CHARS = 20
_MIN_RULE_CHARS, _MAX_RULE_CHARS, _MAX_RULES = 8, 1_000, 60
_MAX_SCHEMA_DEPTH = 16
MAX_ITEMS = 200  # of any list in a spec; what more there is, is said to be too much
_MAX_DEPTH = 16  # of a whole spec
_RISKS: tuple[Risk, ...] = ("low", "medium", "high")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_POWER_TOOL = re.compile(r"shell|exec|bash|terminal|command|subprocess|eval|sudo|root|deploy|delete|remove|write|upload|http|fetch|browser|network|socket|mail|send|pay", re.I)  # fmt: skip  # noqa: E501
_VAGUE = re.compile(r"\b(?:be (?:good|nice|helpful|smart|careful)|do (?:your|its) best|as needed|as appropriate|somehow|and so on|etc\.?$|whatever)\b")  # fmt: skip  # noqa: E501

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


class GuardianVerdict(msgspec.Struct, frozen=True):
    """`reason` names what was found first, and how much more there is."""

    verdict: Literal["APPROVED", "BLOCKED"]
    risk_level: Risk
    reason: str


class ValidatorVerdict(msgspec.Struct, frozen=True):
    """One suggestion per issue, in the same order."""

    verdict: Literal["VALID", "INVALID"]
    issues: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


class AuditVerdict(msgspec.Struct, frozen=True):
    """Advice that would make a spec better; it stops nothing."""

    verdict: Literal["SOUND", "WEAK"]
    findings: tuple[str, ...] = ()


def guardian(spec: AgentSpec, tools: Sequence[str]) -> GuardianVerdict:
    """Judges the safety of a proposed agent: its code by its tree, its tools, hosts, paths and outside requests, and rules
    that claim authority. `tools` are those of this house that only read. Words alone (token, password) are no reason."""
    found: list[tuple[Risk, str]] = [(finding.risk, f"code, {finding}") for finding in _code(spec.code)]
    for tool in spec.tools:
        shown = plain_line(tool, 60)
        if tool.upper() not in tools and _POWER_TOOL.search(tool):
            found.append(("high", f"tool `{shown}` could change or send something; `requests` declares what is sent"))
        elif tool.upper() not in tools:
            found.append(("medium", f"tool `{shown}` is not one of this house ({', '.join(tools)})"))
    found += [judge_host(host) for host in spec.hosts]
    for request in spec.requests:
        risk, reason = judge_address(request.url)
        found.append((risk, f"`{request.where}`: {reason}"))
        if Redactor().redact(request.texts) != request.texts:
            found.append(("high", f"`{request.where}` holds what looks like a key; let a header name a credential"))
    found += [problem for path in spec.paths if (problem := judge_path(path))]
    found += _words("purpose", spec.purpose)
    for number, rule in enumerate(spec.rules, start=1):
        found += _words(f"rule {number}", rule)
    for where, text in spec.others:
        found += _words(f"`{plain_line(where, 60)}`", text)
    return _guardian(found, "nothing in it asks for more than an agent that only reads has")


def guardian_on_code(code: str) -> GuardianVerdict:
    """The same for Python code alone."""
    return _guardian([(finding.risk, str(finding)) for finding in _code(code)], "nothing dangerous in its syntax tree")


def _guardian(found: list[tuple[Risk, str]], otherwise: str) -> GuardianVerdict:
    if not found:
        return GuardianVerdict("APPROVED", "low", otherwise)
    risk = max((risk for risk, _ in found), key=_RISKS.index)
    first = next(reason for found_risk, reason in found if found_risk == risk)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return GuardianVerdict("APPROVED" if risk == "low" else "BLOCKED", risk, f"{first}{more}")


def _code(code: str) -> Sequence[CodeFinding]:
    return judge_python(code) if code.strip() else ()


def _words(where: str, text: str) -> list[tuple[Risk, str]]:
    found: list[tuple[Risk, str]] = []
    verdict = crossed(text, DECLINED)
    if verdict.blocks:
        found.append(("high", f"{where}: {verdict.reason}"))
    claim = claim_of_authority(text)
    if claim:
        found.append(("high", f"{where} claims authority (“{plain_line(claim, 80)}”)"))
    if hides_text(text):
        found.append(("high", f"{where} carries a message in characters that nobody sees"))
    return found


def validator(spec: AgentSpec, known: Mapping[str, Sequence[str]] | None = None) -> ValidatorVerdict:
    """Judges the make of a spec: its fields, its schema, its rules, and no cycle of dependencies. `known` has the
    dependencies of each agent there is; None where they cannot be looked up."""
    found = [(fault, "correct its type") for fault in spec.faults]
    if not spec.role:
        found.append(("`role` is missing", "name the agent: letters, digits and underscores"))
    elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{1,63}", spec.role):
        found.append((f"`role` is {plain_line(spec.role, 60)!r}", "use letters, digits and underscores, 2 to 64"))
    if len(spec.purpose) < MIN_PURPOSE_CHARS:
        fix = f"say in {MIN_PURPOSE_CHARS} or more what it is for"
        found.append((f"`purpose` has {len(spec.purpose)} characters", fix))
    if not spec.rules:
        found.append(("there are no rules", "say in `rules` what it does, and what it never does"))
    for number, rule in enumerate(spec.rules, start=1):
        if len(rule) < _MIN_RULE_CHARS:
            found.append((f"rule {number} is too short to follow", "write a whole sentence"))
        elif len(rule) > _MAX_RULE_CHARS:
            found.append((f"rule {number} is longer than {_MAX_RULE_CHARS} characters", "split it"))
    if isinstance(spec.output_schema, Mapping):
        found += _schema_faults(spec.output_schema, "output_schema", 0)
    elif spec.output_schema not in (None, "text"):
        found.append(("`output_schema` is not an object", "give a JSON Schema, or `text`"))
    role = spec.role.upper()
    graph = {name.upper(): [other.upper() for other in others] for name, others in (known or {}).items()}
    graph[role] = [other.upper() for other in spec.depends_on]
    for name in graph[role] if known is not None else ():
        if name not in graph:
            words = f"it depends on {plain_line(name, 60)}, which is not known"
            found.append((words, "create that one first, or leave it out"))
    cycle = _cycle(graph, role)
    if cycle:
        found.append((f"its dependencies go in a circle: {' → '.join(cycle)}", f"let {cycle[-2]} not depend on {role}"))
    issues, suggestions = tuple(issue for issue, _ in found), tuple(suggestion for _, suggestion in found)
    return ValidatorVerdict("INVALID" if found else "VALID", issues, suggestions)


def _schema_faults(schema: Mapping[str, Any], where: str, depth: int) -> list[tuple[str, str]]:
    if depth > _MAX_SCHEMA_DEPTH:
        return [(f"`{where}` is nested more than {_MAX_SCHEMA_DEPTH} deep", "make it flatter")]
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    named = not any(key in schema for key in ("enum", "const", "anyOf", "oneOf", "allOf", "$ref"))
    if (kind is not None or named) and (not kinds or not all(isinstance(k, str) and k in _TYPES for k in kinds)):
        return [(f"`{where}.type` is {plain_line(repr(kind), 40)}", f"use one of {', '.join(sorted(_TYPES))}")]
    found: list[tuple[str, str]] = []
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return [(f"`{where}.properties` is not an object", "name each property with its schema")]
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        found.append((f"`{where}.required` is not a list of names", "list the names of properties"))
    elif properties and (missing := [name for name in required if name not in properties]):
        fault = f"`{where}.required` names {plain_line(missing[0], 60)!r}"
        found.append((fault, "it is not a property; add or remove it"))
    parts = [(f"{where}.{name}", part) for name, part in properties.items()]
    parts += [(f"{where}[]", schema["items"])] if isinstance(schema.get("items"), Mapping) else []
    for name, part in parts:
        if isinstance(part, Mapping):
            found += _schema_faults(part, name, depth + 1)
        elif not isinstance(part, bool):
            found.append((f"`{name}` is not a schema", "give it a type"))
    return found


def _cycle(graph: Mapping[str, Sequence[str]], start: str) -> list[str]:
    came_from: dict[str, str] = {}
    queue = [start]
    while queue:
        here = queue.pop(0)
        for there in graph.get(here, ()):
            if there == start:
                way = [start]
                while here != start:
                    way.append(here)
                    here = came_from[here]
                return [start, *reversed(way)]
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return []


def auditor(spec: AgentSpec) -> AuditVerdict:
    """Finds what would make a proposed agent better."""
    found = []
    lines = [" ".join(rule.lower().split()).rstrip(".") for rule in spec.rules]
    twice = [number for number, line in enumerate(lines, start=1) if line in lines[: number - 1]]
    found += [f"rule {number} is there twice" for number in twice]
    found += [f"rule {number} is vague" for number, line in enumerate(lines, start=1) if _VAGUE.search(line)]
    always = {line.removeprefix("always "): n for n, line in enumerate(lines, start=1) if line.startswith("always ")}
    for number, line in enumerate(lines, start=1):
        if line.startswith("never ") and (first := always.get(line.removeprefix("never "))):
            found.append(f"rules {first} and {number} contradict each other")
    if len(lines) > _MAX_RULES:
        found.append(f"it has {len(lines)} rules; nobody follows more than {_MAX_RULES}")
    if lines and not re.search(r"\b(?:uncertain|unsure|not sure|unknown|don't know|do not know|cannot tell|missing|if .* not)\b", " ".join(lines)):  # fmt: skip  # noqa: E501
        found.append("no rule says what it does when it does not know")
    if spec.tools and len(spec.tools) > len(set(map(str.upper, spec.tools))):
        found.append("a tool is named twice")
    return AuditVerdict("WEAK" if found else "SOUND", tuple(found))


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
    faults: tuple[str, ...] = ()


def read_spec(values: Mapping[str, Any]) -> AgentSpec:
    """The spec in a mapping, in the spellings of the source documents and of a persona. What does not fit is a fault."""
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
    templates = proposed[:MAX_ITEMS] if isinstance(proposed, (list, tuple)) else [proposed]
    for number, request in enumerate(templates, start=1):
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
