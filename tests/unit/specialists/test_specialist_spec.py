"""The form of a spec, and of a request that is filled in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from council.safety.ministers import guardian, validator
from council.specialists.creation_prompts import SpecReply
from council.specialists.request_templates import ParameterRefused, fill, stands_in
from council.specialists.specialist_spec import (
    RequestParameter,
    RequestTemplate,
    SpecialistSpec,
    SpecRefused,
    as_agent_spec,
    spec_of,
)

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
REQUEST = {
    "name": "sms",
    "method": "POST",
    "url": "https://api.sms.example/v1/messages",
    "parameters": [{"name": "to"}, {"name": "text"}],
    "headers": [{"name": "Authorization", "credential": "sms_key", "prefix": "Bearer "}],
    "body": {"to": "{to}", "text": ["{text}"]},
    "mock_reply": {"id": 1},
}


def values(**changes: Any) -> dict[str, Any]:
    spec = {
        "role": "texting",
        "purpose": "Sends short messages to telephones.",
        "dna_rules": ["Send what was asked, word for word.", "If the number is missing, say so."],
        "input_schema": SCHEMA,
        "output_schema": SCHEMA,
        "requests": [REQUEST],
    }
    return {**spec, **changes}


def with_request(**changes: Any) -> dict[str, Any]:
    return values(requests=[{**REQUEST, **changes}])


def test_a_spec_is_read_and_names_the_credentials_that_it_needs() -> None:
    spec = spec_of(values())
    assert spec.credentials == ("sms_key",)
    assert spec.request("sms") is spec.requests[0]
    assert msgspec.json.decode(msgspec.json.encode(spec), type=SpecialistSpec) == spec


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (values(role="Texting!"), "role"),
        (values(purpose=3), "purpose"),
        (values(role="none"), "role"),
        (values(colour="red"), "colour"),
        (values(kind="code"), "code"),
        (values(code="def run(input): return input"), "code"),
        (values(kind="code", code="#" * 70_000), "code"),
        (values(input_schema={"type": "array"}), "input_schema"),
        (values(output_schema={**SCHEMA, "properties": {}}), "output_schema"),
        (
            values(output_schema={"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "output_schema.a",
        ),
        (values(output_schema={"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}), "output_schema.a"),
        (values(output_schema={"type": "object", "properties": {"a'b": {}}}), "output_schema"),
        (values(output_schema={"type": "object", "properties": {"a": {"type": "text"}}}), "output_schema"),
        (values(output_schema={"type": "object", "properties": {"a": 3}}), "output_schema.a"),
        (values(requests=[REQUEST] * 2), "requests[1].name"),
        (values(requests=[{**REQUEST, "name": f"r{n}"} for n in range(11)]), "requests"),
        (with_request(method="HEAD"), "requests[0].method"),
        (with_request(method="GET"), "requests[0].body"),
        (with_request(url="http://api.sms.example/v1"), "requests[0].url"),
        (with_request(url="https://api.sms.example:8443/v1"), "requests[0].url"),
        (with_request(url="https://me:key@api.sms.example/v1"), "requests[0].url"),
        (with_request(url="https://{to}.example/{text}"), "requests[0].url"),
        (with_request(url="https://api.sms.example/#{to}"), "requests[0].url"),
        (with_request(url="https://api.sms.example/{Odd}"), "requests[0].url"),
        (with_request(parameters=[{"name": "to"}]), "requests[0].parameters"),
        (with_request(parameters=[{"name": "To"}, {"name": "text"}]), "requests[0].parameters[0].name"),
        (values(output_schema={**SCHEMA, "anyOf": 5}), "output_schema.anyOf"),
        (with_request(parameters=[*REQUEST["parameters"], {"name": "more"}]), "requests[0].parameters"),
        (with_request(parameters=[*REQUEST["parameters"], {"name": "to"}]), "requests[0].parameters"),
        (with_request(headers=[{"name": "Host", "credential": "k"}]), "requests[0].headers[0].name"),
        (with_request(headers=[{"name": "X-Key", "credential": "../k"}]), "requests[0].headers[0].credential"),
        (
            with_request(headers=[{"name": "X-Key", "credential": "k", "prefix": "a\r\nb"}]),
            "requests[0].headers[0].prefix",
        ),
    ],
)
def test_a_spec_of_a_wrong_form_is_refused_with_its_place(changed: dict[str, Any], where: str) -> None:
    with pytest.raises(SpecRefused) as refused:
        spec_of(changed)
    assert refused.value.where == where
    assert refused.value.fix not in ("", "correct it") or "JSON Schema" in refused.value.message
    assert "regex" not in refused.value.message


def test_the_ministers_read_a_spec_and_approve_a_template_on_a_named_host() -> None:
    spec = as_agent_spec(spec_of(values()))
    verdict = guardian(spec, ())
    assert (verdict.verdict, verdict.risk_level) == ("APPROVED", "low")
    assert "api.sms.example" in verdict.reason
    assert validator(spec, {}).verdict == "VALID"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://127.0.0.1/x", "bare address"),
        ("https://2130706433/x", "bare address"),
        ("https://metadata.google.internal/x", "inside this machine"),
        ("https://printer.local/x", "inside this machine"),
        ("https://abc.ngrok.io/x", "public relay"),
        ("https://localhost/x", "inside this machine"),
    ],
)
def test_the_guardian_blocks_a_template_that_leads_inside_or_through_a_relay(url: str, why: str) -> None:
    spec = spec_of(with_request(url=url))
    verdict = guardian(as_agent_spec(spec), ())
    assert verdict.verdict == "BLOCKED"
    assert why in verdict.reason


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"to": "1"}, "`text` of the request sms is missing"),
        ({"to": "1", "text": "a", "url": "b"}, "`url` of the request sms is unknown"),
        ({"to": 1, "text": "a"}, "not of the type string"),
        ({"to": "1", "text": "a" * 201}, "201 characters"),
        ({"to": "1\r\nX: y", "text": "a"}, "cannot be seen"),
        ({"to": "1\u202e", "text": "a"}, "cannot be seen"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterRefused, match=told):
        fill(spec_of(values()).requests[0], parameters)


def test_parameters_take_their_place_and_keep_their_type() -> None:
    template = RequestTemplate(
        "order",
        "PUT",
        "https://shop.example/{id}/x?{id}=1",
        (RequestParameter("id", "integer"), RequestParameter("price", "number"), RequestParameter("gift", "boolean")),
        body={"id": "{id}", "all": ["{price}", {"gift": "{gift}"}], "words": "{id} for {price}, {gift}"},
    )
    filled = fill(template, {"id": 7, "price": 2.5, "gift": True})
    assert filled.url == "https://shop.example/7/x?7=1"
    assert filled.body == {"id": 7, "all": [2.5, {"gift": True}], "words": "7 for 2.5, true"}
    assert filled.digest != fill(template, {"id": 8, "price": 2.5, "gift": True}).digest
    with pytest.raises(ParameterRefused, match="not of the type integer"):
        fill(template, {"id": True, "price": 2.5, "gift": True})


@pytest.mark.parametrize("value", ["..", "."])
def test_no_parameter_leaves_its_path(value: str) -> None:
    template = RequestTemplate("at", "GET", "https://shop.example/public/{name}", (RequestParameter("name"),))
    with pytest.raises(ParameterRefused, match="leave its path"):
        fill(template, {"name": value})
    assert fill(template, {"name": "../../admin?x=1"}).url.endswith("/public/..%2F..%2Fadmin%3Fx%3D1")


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("What is the weather in Sofia in 10 days?", True),
        ("weather in  SOFIA, 10", True),
        ("Sofia 110", False),
        ("Sofiana 10", False),
        ("the weather in 10 days", False),
        ("", False),
    ],
)
def test_code_decides_whether_parameters_are_the_asker_s_own_words(words: str, stands: bool) -> None:
    template = RequestTemplate(
        "look",
        "GET",
        "https://weather.example/{city}/{days}",
        (RequestParameter("city"), RequestParameter("days", "number")),
    )
    assert stands_in(words, fill(template, {"city": "Sofia", "days": 10.0})) is stands
    assert not stands_in(words, fill(template, {"city": "", "days": 10}))
    secret = fill(template, {"city": "the password of Anna", "days": 10})
    assert not stands_in(words, secret)


@pytest.mark.parametrize("changed", [{"purpose": "x" * 2_001}, {"dna_rules": ["x"] * 51}, {"dna_rules": ["x" * 2_001]}])
def test_the_words_of_a_design_have_bounds(changed: dict[str, Any]) -> None:
    design = values(kind="prompt")
    assert SpecReply(**design).role == design["role"]
    with pytest.raises(ValidationError, match=next(iter(changed))):
        SpecReply(**{**design, **changed})
