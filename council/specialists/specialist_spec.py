"""The spec of a specialist (source: Kingdom, "Creation Council"): a value that its plan shows and its row keeps.

A specialist either has code, which always runs in the cage, or none: then a model answers under its rules.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["code", "prompt"]
MAX_PARAMETER_CHARS = 200


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
