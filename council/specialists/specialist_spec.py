"""The spec of a specialist (source: Kingdom, "Creation Council"): a value that its plan shows and its row keeps.

A specialist either has code, which always runs in the cage, or none: then a model answers under its rules. `spec_of` checks the
form. The ministers judge the content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from council.errors import CouncilError, UsageError
from council.ids import STEWARD
from council.safety.spec import AgentSpec, read_spec
from council.sandbox.job import MAX_CODE_BYTES
from council.vault.sealing import place_of

Kind = Literal["code", "prompt"]
MAX_PARAMETER_CHARS = 200
MAX_REQUESTS = 10
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]{0,63})\}")
_ROLE = re.compile(r"[a-z][a-z0-9_]{1,63}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_URL = re.compile(r"https://(?P<host>[a-z0-9.-]+)(?:/[^\s#\\]*)?", re.IGNORECASE)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_MAX_SCHEMA_DEPTH = 16
_KEYWORDS = frozenset(
    """
    type properties required items enum const minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems
    maxItems uniqueItems additionalProperties anyOf oneOf allOf title description default examples format $schema
    """.split()  # noqa: SIM905  words read better than quotation marks
)
_OWN_HEADERS = frozenset(  # the sender's: they decide where a request ends, and to whom it goes
    ("accept-encoding", "connection", "content-length", "content-type", "cookie", "expect", "host", "te", "trailer",
     "transfer-encoding", "upgrade", "user-agent")
)  # fmt: skip


class SpecRefused(CouncilError):
    """A spec of a wrong form. `where` is the place in it."""

    code = "spec_refused"
    http_status = 422

    def __init__(self, message: str, *, where: str, fix: str) -> None:
        super().__init__(message, fix=fix)
        self.where = where


class TestCase(msgspec.Struct, frozen=True):
    """One case of a suite, with the source's keys. A field `{"any": true}` of the expected output matches everything."""

    __test__ = False  # pytest collects by name

    input: dict[str, Any]
    expected_output: dict[str, Any]


class RequestParameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that the model fills in: at most MAX_PARAMETER_CHARS characters."""

    name: str
    type: Literal["string", "integer", "number", "boolean"] = "string"
    description: str = ""


class CredentialHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """A header whose value is `prefix` and the asker's credential of that name. The value is put in when it is sent."""

    name: str
    credential: str
    prefix: str = ""


class RequestTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """An outside request: an https address on a named host, in which `{name}` stands for a parameter. `body` is sent as JSON,
    with parameters in its texts. `mock_reply` answers in training."""

    name: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: str
    parameters: tuple[RequestParameter, ...] = ()
    headers: tuple[CredentialHeader, ...] = ()
    body: dict[str, Any] | None = None
    mock_reply: Any = None

    @property
    def host(self) -> str:
        found = _URL.fullmatch(self.url)
        return found["host"].lower().rstrip(".") if found else ""


class SpecialistSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A specialist as it was designed. `role` is `[a-z][a-z0-9_]{1,63}`. `dna_rules` are its instructions. `input_schema` and
    `output_schema` are JSON Schemas of objects. `examples` are the person's own cases. `credentials` are computed."""

    role: str
    purpose: str
    dna_rules: tuple[str, ...]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    kind: Kind = "prompt"
    code: str = ""
    depends_on: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    examples: tuple[TestCase, ...] = ()
    requests: tuple[RequestTemplate, ...] = ()

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials that its requests need."""
        return tuple(dict.fromkeys(header.credential for request in self.requests for header in request.headers))

    def request(self, name: str) -> RequestTemplate | None:
        """The template of that name."""
        return next((request for request in self.requests if request.name == name), None)


def spec_of(values: Mapping[str, Any]) -> SpecialistSpec:
    """The spec in a mapping. Raises SpecRefused for a wrong form: a model wrote it."""
    unknown = sorted(set(values) - set(SpecialistSpec.__struct_fields__))
    if unknown:
        known = ", ".join(SpecialistSpec.__struct_fields__)
        raise _refused(unknown[0], "is not a key of a spec", f"use only these keys: {known}")
    try:
        spec = msgspec.convert(dict(values), SpecialistSpec)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$.")
        raise _refused(where.rstrip("`") or "spec", f"has a wrong form: {said}", "correct its type") from None
    if not _ROLE.fullmatch(spec.role):
        raise _refused("role", f"is {spec.role[:80]!r}", "use lower-case letters, digits and _, 2 to 64")
    for where, schema in (("input_schema", spec.input_schema), ("output_schema", spec.output_schema)):
        _require_schema(where, schema)
    if (spec.kind == "code") != bool(spec.code.strip()):
        has = "has no code" if spec.kind == "code" else "has code, and its kind is `prompt`"
        raise _refused("code", has, "give `code` with the kind `code`, and only then")
    if len(spec.code.encode("utf-8", "surrogatepass")) > MAX_CODE_BYTES:
        raise _refused("code", f"is longer than {MAX_CODE_BYTES:,} bytes", "make it shorter")
    if len(spec.requests) > MAX_REQUESTS:
        raise _refused("requests", f"holds more than {MAX_REQUESTS} templates", "leave out those it can do without")
    names = [request.name for request in spec.requests]
    for number, request in enumerate(spec.requests):
        if names.index(request.name) != number:
            raise _refused(f"requests[{number}].name", f"{request.name!r} stands twice", "name each template otherwise")
        _require_template(f"requests[{number}]", request)
    return spec


def compiled(schema: Mapping[str, Any]) -> Callable[[Any], object]:
    """The check of a schema: raises JsonSchemaException for a value that does not fit. Formats are only told to the model."""
    from fastjsonschema import compile  # not at the top: few commands need it

    check: Callable[[Any], object] = compile(dict(schema), use_default=False, use_formats=False)
    return check


def as_agent_spec(spec: SpecialistSpec) -> AgentSpec:
    """The spec as the ministers read it."""
    return read_spec(msgspec.to_builtins(spec))


def _require_schema(where: str, schema: Mapping[str, Any]) -> None:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or not properties:
        fix = "write a JSON Schema with `type: object` and at least one entry in `properties`"
        raise _refused(where, "is not the schema of an object with fields", fix)
    _require_plain_schema(where, schema, 0)
    try:
        compiled(schema)
    except Exception as error:  # noqa: BLE001  whatever the library meets in a model's schema
        raise _refused(where, f"is not a JSON Schema ({str(error)[:120]})", "correct it") from None


def _require_plain_schema(where: str, schema: Any, depth: int) -> None:
    """Nothing that looks elsewhere (`$ref`) or may compute for ever (`pattern`), and names that are plain."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping) or depth > _MAX_SCHEMA_DEPTH:
        raise _refused(where, f"is no schema, or nested more than {_MAX_SCHEMA_DEPTH} deep", "make it a flat object")
    if strange := sorted(set(map(str, schema)) - _KEYWORDS):
        raise _refused(where, f"has {strange[0][:60]!r}", f"use only these keywords: {', '.join(sorted(_KEYWORDS))}")
    parts = schema.get("properties", {})
    for name, part in parts.items() if isinstance(parts, Mapping) else [("properties", parts)]:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
            raise _refused(where, f"names the field {name[:60]!r}", "use letters, digits, - and _")
        _require_plain_schema(f"{where}.{name}", part, depth + 1)
    for key in ("items", "additionalProperties"):
        if key in schema:
            _require_plain_schema(f"{where}.{key}", schema[key], depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            _require_plain_schema(f"{where}.{key}", part, depth + 1)


def _require_template(where: str, request: RequestTemplate) -> None:
    if not _NAME.fullmatch(request.name):
        raise _refused(f"{where}.name", f"is {request.name[:80]!r}", "use lower-case letters, digits and _")
    if not request.host or "{" in request.host:
        fix = "write https://, the host by its name without user and port, and a path; parameters only behind the host"
        raise _refused(f"{where}.url", f"is {request.url[:120]!r}", fix)
    declared = [parameter.name for parameter in request.parameters]
    for name in declared:
        if not _NAME.fullmatch(name) or declared.count(name) > 1:
            raise _refused(f"{where}.parameters", f"has {name[:80]!r}, or has it twice", "name each parameter once")
    used = set(PLACEHOLDER.findall(request.url)) | set(PLACEHOLDER.findall(_all_texts(request.body)))
    for name in sorted(used ^ set(declared)):
        state = "is used, and not declared" if name in used else "is declared, and not used"
        raise _refused(f"{where}.parameters", f"`{name}` {state}", "declare each `{name}` of the url and the body")
    if re.search(r"[{}]", PLACEHOLDER.sub("", request.url)):
        raise _refused(f"{where}.url", "has a brace that is no parameter", "write `{name}` in lower-case letters")
    if request.method == "GET" and request.body is not None:
        raise _refused(f"{where}.body", "stands in a GET", "put the parameters into the url")
    for header in request.headers:
        lower = header.name.lower()
        if not _HEADER.fullmatch(header.name) or lower in _OWN_HEADERS or lower.startswith("proxy-"):
            raise _refused(f"{where}.headers", f"has {header.name[:80]!r}", "name a header for the credential alone")
        if not (header.prefix.isascii() and (header.prefix.isprintable() or not header.prefix)):
            raise _refused(f"{where}.headers", "has a prefix that no header can hold", "use plain letters")
        try:
            place_of(STEWARD.id, "", header.credential)
        except UsageError as error:
            raise _refused(f"{where}.headers", error.message, error.fix) from None


def _all_texts(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(_all_texts(part) for part in value.values())
    if isinstance(value, list | tuple):
        return "\n".join(map(_all_texts, value))
    return value if isinstance(value, str) else ""


def _refused(where: str, what: str, fix: str) -> SpecRefused:
    return SpecRefused(f"The spec's `{where}` {what}.", where=where, fix=fix)
