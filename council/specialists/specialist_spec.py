"""The spec of a specialist (source: Kingdom, "Creation Council"): a value that its plan shows and its row keeps.

A specialist either has code, which always runs in the cage, or none: then a model answers under its rules. `spec_of` checks the
form. The ministers judge the content.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import fastjsonschema
import msgspec
from msgspec import Meta

from council.errors import CouncilError
from council.ids import readable_json
from council.safety.ministers import AgentSpec, guardian, read_spec, validator
from council.sandbox.job import MAX_CODE_BYTES
from council.typed_json import convert, decode_json

Kind = Literal["code", "prompt"]
MAX_PARAMETER_CHARS = 200
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]{0,63})\}")
_FORGOTTEN = re.compile(r"\[forgotten [0-9a-f]{12}\]")  # the mark of `forget`, in the place of the words
_MAX_SCHEMA_DEPTH = 16
_KEYWORDS = frozenset(  # not `$ref`, which looks elsewhere, and no `pattern`, which may compute for ever
    """
    type properties required items enum const minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems
    maxItems uniqueItems additionalProperties anyOf oneOf allOf title description default examples format $schema
    """.split()  # noqa: SIM905  words read better than quotation marks
)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")]
_Address = Annotated[str, Meta(pattern=r"^https://[A-Za-z0-9.-]+(?:/[^\s#\\]*)?\Z")]
_Header = Annotated[  # none of the sender's own: they decide where a request ends, and to whom it goes
    str,
    Meta(
        pattern=r"^(?i:(?!(?:accept-encoding|connection|content-length|content-type|cookie|expect|host|te|trailer"
        r"|transfer-encoding|upgrade|user-agent)\Z|proxy-))[A-Za-z][A-Za-z0-9-]{0,63}\Z"
    ),
]

_A_NAME = "1 to 64 lower-case letters, digits and _, first a letter"
_FITS = {  # at each place of a spec whose values a pattern or a list bounds
    "role": "2 to 64 lower-case letters, digits and _, first a letter, and not `none`",
    "kind": "`prompt` or `code`",
    "requests.name": _A_NAME,
    "requests.method": "GET, POST, PUT, PATCH or DELETE",
    "requests.url": "an https address on a named host",
    "requests.parameters.name": _A_NAME,
    "requests.parameters.type": "string, integer, number or boolean",
    "requests.headers.name": "letters, digits and -, first a letter, and no header that the sender sets",
    "requests.headers.credential": "1 to 100 letters, digits and . _ @ -, first a letter or a digit",
    "requests.headers.prefix": "at most 60 printable ASCII characters",
}
_KINDS = {"str": "text", "array": "a list", "object": "an object", "bool": "true or false"}


class SpecRefused(CouncilError):
    """A spec of a wrong form. `where` is the place in it."""

    code = "spec_refused"
    http_status = 422

    def __init__(self, where: str, what: str, *, fix: str) -> None:
        super().__init__(f"The spec's `{where}` {what}.", fix=fix)
        self.where = where


class TestCase(msgspec.Struct, frozen=True):
    """One case of a suite, with the source's keys. A field `{"any": true}` of the expected output matches everything."""

    __test__ = False  # pytest collects by name

    input: dict[str, Any]
    expected_output: dict[str, Any]


class RequestParameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that the model fills in: at most MAX_PARAMETER_CHARS characters."""

    name: _Name
    type: Literal["string", "integer", "number", "boolean"] = "string"
    description: str = ""


class CredentialHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """A header whose value is `prefix` and the asker's credential of that name. The value is put in when it is sent."""

    name: _Header
    credential: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}\Z")]
    prefix: Annotated[str, Meta(pattern=r"^[ -~]{0,60}\Z")] = ""


class RequestTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """An outside request: an https address on a named host, in which `{name}` stands for a parameter. `body` is sent as JSON,
    with parameters in its texts. `mock_reply` answers in training."""

    name: _Name
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: _Address
    parameters: tuple[RequestParameter, ...] = ()
    headers: tuple[CredentialHeader, ...] = ()
    body: dict[str, Any] | None = None
    mock_reply: Any = None

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


class SpecialistSpec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A specialist as it was designed. `dna_rules` are its instructions. `input_schema` and `output_schema` are JSON Schemas of
    objects. `examples` are the person's own cases. `credentials` are computed."""

    role: Annotated[str, Meta(pattern=r"^(?!none\Z)[a-z][a-z0-9_]{1,63}\Z")]  # routing says NONE for nobody
    purpose: str
    dna_rules: tuple[str, ...]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    kind: Kind = "prompt"
    code: Annotated[str, Meta(max_length=MAX_CODE_BYTES)] = ""
    depends_on: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    examples: tuple[TestCase, ...] = ()
    requests: Annotated[tuple[RequestTemplate, ...], Meta(max_length=10)] = ()

    @property
    def is_whole(self) -> bool:
        """False for one of which `forget` has taken words: see `stored_spec`."""
        return bool(self.output_schema)

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials that its requests need."""
        return tuple(dict.fromkeys(header.credential for request in self.requests for header in request.headers))

    def lacks(self, there: Iterable[str]) -> list[str]:
        """The agents and tools that it needs and that are not `there`, by any of their names."""
        known = {name.upper() for name in there}
        return [name for name in (*self.depends_on, *self.tools) if name.upper() not in known]

    def request(self, name: str) -> RequestTemplate | None:
        return next((request for request in self.requests if request.name == name), None)


def shown_spec(spec: SpecialistSpec) -> dict[str, str]:
    """The whole spec in words, part by part, as plans show it."""
    parts = {
        "role": spec.role,
        "purpose": spec.purpose,
        "rules": "\n".join(spec.dna_rules),
        "input": readable_json(spec.input_schema),
        "output": readable_json(spec.output_schema),
        "answers by": "code in the sandbox" if spec.kind == "code" else "a model; no code runs",
        "code": spec.code,
        "tools": ", ".join(spec.tools),
        "depends on": ", ".join(spec.depends_on),
        "outside requests": "\n".join(
            f"{one.name}: {one.method} {one.url} {readable_json(msgspec.to_builtins(one))}" for one in spec.requests
        ),
        "credentials": ", ".join(spec.credentials),
        "cases of its person": shown_cases(spec.examples),
    }
    return {name: text for name, text in parts.items() if text}


def shown_cases(cases: Sequence[TestCase]) -> str:
    """Cases as prompts and pages show them, one a line."""
    return "\n".join(f"{readable_json(case.input)} → {readable_json(case.expected_output)}" for case in cases)


def spec_of(values: Mapping[str, Any]) -> SpecialistSpec:
    """The spec in a mapping. Raises SpecRefused for a wrong form: a model wrote it."""
    try:
        spec = convert(dict(values), SpecialistSpec)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        place = place.rstrip("`")
        if fault := re.fullmatch(r"Object (missing required|contains unknown) field `(.+)`", said):
            what, fix = ("is missing", "add it") if fault[1] != "contains unknown" else ("is unknown", "leave it out")
            raise SpecRefused(f"{place}.{fault[2]}".lstrip("."), what, fix=fix) from None
        fits = _FITS.get(re.sub(r"\[\d+\]", "", place), "")
        what = "has a wrong form" if "matching regex" in said else f"has a wrong form: {said}"
        expected = re.match(r"Expected `(\w+)`", said)
        fix = f"give {fits or _KINDS.get(expected[1] if expected else '', 'another value')}"
        raise SpecRefused(place or "spec", what, fix="shorten it" if "of length <=" in said else fix) from None
    if (spec.kind == "code") != bool(spec.code.strip()):
        raise SpecRefused("code", f"does not fit the kind `{spec.kind}`", fix="give `code` only with the kind `code`")
    for where, schema in (("input_schema", spec.input_schema), ("output_schema", spec.output_schema)):
        if schema.get("type") != "object" or not schema.get("properties"):
            fix = "write a JSON Schema with `type: object` and at least one entry in `properties`"
            raise SpecRefused(where, "is not the schema of an object with fields", fix=fix)
        require_plain_schema(where, schema)
        try:
            compiled(schema)
        except Exception as error:  # noqa: BLE001  whatever the library meets in a model's schema
            raise SpecRefused(where, f"is not a JSON Schema ({str(error)[:120]})", fix="correct it") from None
    names = [request.name for request in spec.requests]
    for number, request in enumerate(spec.requests):
        place, declared = f"requests[{number}]", [parameter.name for parameter in request.parameters]
        used = set(PLACEHOLDER.findall(request.url + msgspec.json.encode(request.body).decode()))
        if names.index(request.name) != number:
            raise SpecRefused(f"{place}.name", f"{request.name!r} occurs twice", fix="give each template its own name")
        if used != set(declared) or len(used) != len(declared):
            told = f"are {', '.join(declared) or 'none'}, and it uses {', '.join(sorted(used)) or 'none'}"
            raise SpecRefused(f"{place}.parameters", told, fix="declare each `{name}` of the url and the body once")
        if re.search(r"[{}]", PLACEHOLDER.sub("", request.url)):
            fix = "write `{name}` in lower-case letters"
            raise SpecRefused(f"{place}.url", "has a brace that is no parameter", fix=fix)
        if request.method == "GET" and request.body is not None:
            raise SpecRefused(f"{place}.body", "is not allowed in a GET", fix="put the parameters into the url")
    return spec


def stored_spec(role: str, encoded: str) -> SpecialistSpec:
    """The spec that a row keeps. One that lost words by `forget`, in its examples apart, is not the one that was reviewed and
    tested: an empty one stands for it."""
    with contextlib.suppress(msgspec.ValidationError):
        spec = decode_json(encoded, SpecialistSpec)
        if not _FORGOTTEN.search(encoded):
            return spec
        if not _FORGOTTEN.search(msgspec.json.encode(msgspec.structs.replace(spec, examples=())).decode()):
            return spec
    return SpecialistSpec(role, "Words of its spec were forgotten: it serves nobody.", (), {}, {})


def require_plain_schema(where: str, schema: Any, depth: int = 0) -> None:
    """Raises SpecRefused for a schema with a keyword that is not listed here, or a field whose name is not plain."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping) or depth > _MAX_SCHEMA_DEPTH:
        raise SpecRefused(where, f"is no schema, or nested more than {_MAX_SCHEMA_DEPTH} deep", fix="make it flatter")
    if strange := sorted(set(map(str, schema)) - _KEYWORDS):
        fix = f"use only these keywords: {', '.join(sorted(_KEYWORDS))}"
        raise SpecRefused(where, f"has {strange[0][:60]!r}", fix=fix)
    properties = schema.get("properties", {})
    for name, part in properties.items() if isinstance(properties, Mapping) else [("properties", properties)]:
        if not _FIELD.fullmatch(name):
            raise SpecRefused(where, f"names the field {name[:60]!r}", fix="use letters, digits, - and _")
        require_plain_schema(f"{where}.{name}", part, depth + 1)
    for key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf"):
        parts = schema.get(key, [])
        for part in parts if isinstance(parts, list | tuple) else [parts]:
            require_plain_schema(f"{where}.{key}", part, depth + 1)


def compiled(schema: Mapping[str, Any]) -> Callable[[Any], object]:
    """The check of a schema: raises JsonSchemaException for a value that does not fit. Formats are only told to the model."""
    check: Callable[[Any], object] = fastjsonschema.compile(dict(schema), use_default=False, use_formats=False)
    return check


def as_agent_spec(spec: SpecialistSpec) -> AgentSpec:
    """The spec as the ministers read it."""
    return read_spec(msgspec.to_builtins(spec))


def stopped_by_ministers(spec: SpecialistSpec, tools: Sequence[str]) -> str:
    """The reason why a minister stops this spec; empty where both let it pass. `tools` are those that it may have."""
    read = as_agent_spec(spec)
    judged = guardian(read, tools)
    return judged.reason if judged.verdict == "BLOCKED" else next(iter(validator(read).issues), "")
