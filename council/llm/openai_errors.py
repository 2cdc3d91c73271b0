"""Reads a refusal of an OpenAI-compatible server: its error object, whatever shape it has, and what to do about it. The
same status says different things at different servers, and some wrap an error in a 200."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from council.errors import ModelErrorKind
from council.llm.http_failures import (
    FIX,
    KIND_OF_STATUS,
    Refusal,
    Rule,
    kind_of_status,
    kind_of_words,
    redirect_words,
    seconds,
)
from council.llm.openai_dialect import Server

_RAW_CHARS = 2_000  # of an upstream provider's own words, passed through by a router

_CODES: dict[ModelErrorKind, str] = {
    "auth": "invalid_api_key invalid_authentication authentication_error account_deactivated permission_error",
    "billing": "insufficient_quota insufficient_balance billing_hard_limit_reached billing_not_active payment_required",
    "rate": "rate_limit_exceeded rate_limit_error too_many_requests",
    "not_found": "model_not_found model_not_supported notfounderror",
    "request": "context_length_exceeded exceed_context_size_error badrequesterror invalid_request_error",
    "blocked": "content_filter content_policy_violation moderation_blocked",
    "overload": "overloaded_error engine_overloaded_error service_unavailable unavailable_error",
    "server": "server_error internal_server_error",
    "timeout": "timeout",
}
_KIND_OF_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
# Words decide before a code that says little: a context that is too small is an `invalid_request_error` as well.
_CONTEXT = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|max_model_len|exceed_context|available context"
    r"|(?:prompt|inputs?|request|messages?)\b.{0,60}\btoo (?:long|large)\b|`inputs` tokens|reduce the length"
    r"|max_tokens must be at least 1\b|maximum (?:input|prompt) length|input token count exceeds",
    re.IGNORECASE | re.DOTALL,
)
_BAD_KEY = re.compile(
    r"(?:incorrect|invalid|expired|missing|unknown|revoked|no)\s+(?:api[ _-]?key|auth\w*|credentials?|bearer)\b"
    r"|api[ _-]?key\s+(?:not valid|is invalid|has expired|expired|not found)|no auth credentials",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model\b.{0,200}?\b(?:not found|does ?n[o']t exist|does not exist|not supported by any|is not available)"
    r"|(?:unknown|invalid|no such) model\b|not a valid model|try pulling it",
    re.IGNORECASE | re.DOTALL,
)
# An ordinary rate limit mentions payment methods too: of a 429 only these words mean that waiting is no help.
_PAYMENT = re.compile(
    r"insufficient[_ ](?:quota|funds|credits?|balance)|exceeded your current quota|out of credits|spend(?:ing)? limit"
    r"|(?:exceeded your monthly included|requires more|not enough) credits|credits? (?:are|is|have been|has been) \w+ed",
    re.IGNORECASE,
)
_BILLING = re.compile(r"\bbilling\b|payment|\bcredits?\b|prepaid", re.IGNORECASE)
_FILTERED = re.compile(
    r"moderation|flagged|content[ _](?:policy|filter|management)|guardrail|safety system", re.IGNORECASE
)
_TRY_AGAIN_IN = re.compile(r"try again in (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)\b", re.IGNORECASE)


_RULES: tuple[Rule, ...] = (
    ((0, 400, 403, 422), _FILTERED, "blocked"),
    ((0, 400, 403, 422), _BAD_KEY, "auth"),
    ((0, 403, 429), _PAYMENT, "billing"),
    ((400, 403), _BILLING, "billing"),  # unless a code says more
    ((0, 400, 422), _NO_MODEL, "not_found"),
)


def _refusal(
    status: int,
    message: str,
    headers: Mapping[str, str],
    *,
    code: str = "",
    type: str = "",
    detail: str = "",
    bare: bool = False,
    reset_ms: float | None = None,
) -> Refusal:
    """`code`, `type` and `detail`: what else an error object says; `headers` know no case."""
    words = " ".join(part for part in (message, code, type, detail) if part)
    about_context = status in (0, 400, 413, 422, 500) and bool(_CONTEXT.search(words))
    kind = "request" if about_context else _kind_of(status, words, code, type, headers)
    # The longest wait that the answer asks for.
    asked_ms = seconds(headers.get("retry-after-ms", ""))
    wishes = [None if asked_ms is None else asked_ms / 1000, seconds(headers.get("retry-after", ""))]
    if kind in ("rate", "overload"):
        if reset_ms is not None:
            wishes.append(max(0.0, reset_ms / 1000 - datetime.now(UTC).timestamp()))
        spelled_out = _TRY_AGAIN_IN.search(message)
        if spelled_out is not None and headers.get("retry-after") is None:
            minutes, amount, unit = spelled_out.groups()
            wishes.append(60 * int(minutes or 0) + float(amount) / (1000 if unit.lower() == "ms" else 1))
    wait_s = max((wish for wish in wishes if wish is not None), default=None)
    said = f"{message} ({detail})" if detail else message
    if 300 <= status < 400:
        said = redirect_words(headers.get("location", ""))
    return Refusal(status, kind, said, words, wait_s, bare, about_context)


def _kind_of(status: int, words: str, code: str, type: str, headers: Mapping[str, str]) -> ModelErrorKind:
    if status == 402 and seconds(headers.get("retry-after", "")) is not None and not _PAYMENT.search(words):
        return "rate"  # a router's budget for calls in flight: it says when to come back
    rules = [rule for rule in _RULES if code not in _KIND_OF_CODE or rule[1] is not _BILLING]
    by_words = kind_of_words(rules, status, words)
    if by_words is not None:
        return by_words
    by_code, by_type = _KIND_OF_CODE.get(code.lower()), _KIND_OF_CODE.get(type.lower())
    if by_code is not None and by_code != "request":
        return by_code
    said = by_code or by_type
    if status not in KIND_OF_STATUS and said is not None and (status < 500 or said != "request"):
        return said
    return kind_of_status(status) if status else "server"


def refusal_of(status: int, body: bytes, headers: Mapping[str, str]) -> Refusal:
    """Reads an answer with an error status; any body will do."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return _refusal(status, body.decode("utf-8", "replace"), headers, bare=True)
    found = _error_object(content, status, headers)
    if found is not None:
        return found
    if isinstance(content, dict):  # FastAPI's own errors, and those of gateways
        told = content.get("detail") or content.get("message")
        if isinstance(told, list):  # a validation error, without the input that it repeats: that is the prompt
            faults = [item for item in told[:5] if isinstance(item, dict)]
            told = "; ".join(
                f"{'.'.join(map(str, fault.get('loc') or ()))}: {_text(fault.get('msg'))}" for fault in faults
            )
        words = _text(told)
        return _refusal(status, words, headers, bare=not words or words == "Not Found")
    return _refusal(status, content if isinstance(content, str) else "", headers, bare=True)


def refusal_in(content: object, headers: Mapping[str, str] | None = None) -> Refusal | None:
    """The error object in an answer of 200, or in an event of a stream; None where there is none."""
    if not isinstance(content, dict):
        return None
    found = _error_object(content, 0, headers or {})
    if found is not None:
        return found
    choices = content.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _error_object(first, 0, {}) if isinstance(first, dict) and "error" in first else None


def _error_object(content: object, status: int, headers: Mapping[str, str]) -> Refusal | None:
    if not isinstance(content, dict):
        return None
    error = content if content.get("object") == "error" else content.get("error")
    if isinstance(error, str) and error:
        return _refusal(status, error, headers)
    if not isinstance(error, dict) or not error:
        return None
    code, routed = error.get("code"), error.get("metadata")
    routed = routed if isinstance(routed, dict) else {}
    # What a router passes on: the words of the provider behind it, and when its limit is reset.
    raw, reasons, upstream = routed.get("raw"), routed.get("reasons"), routed.get("headers")
    said = raw if isinstance(raw, str) else json.dumps(raw) if raw else ""
    details = [_text(routed.get("provider_name")), said[:_RAW_CHARS]]
    details += [str(reason)[:100] for reason in reasons[:5]] if isinstance(reasons, list) else []
    own_status = _status(code) or _status(error.get("status"))
    return _refusal(
        status or own_status or 0,
        _text(error.get("message")),
        headers,
        code=code if isinstance(code, str) and not _status(code) else "",
        type=_text(error.get("type")),
        detail=" ".join(part for part in details if part),
        reset_ms=seconds(_text(upstream.get("X-RateLimit-Reset"))) if isinstance(upstream, dict) else None,
    )


def _status(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 300 <= value < 600 else 0


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


_FIX: dict[ModelErrorKind, str] = {
    **FIX,
    "billing": "open the billing page of the account that the key belongs to: add credit, or change the plan.",
    "rate": "wait, lower the number of concurrent runs, or raise the quota of the account.",
    "overload": "the fault is not yours: the model is busy or still loading. Try later or name another model.",
    "protocol": "try again; if it keeps happening, something between here and the server alters the answers.",
}


def fix_of_refusal(refusal: Refusal, server: Server, *, base_url: str, endpoint: str) -> str:
    table = f"[providers.{server.name}]"
    if refusal.about_context:
        return (
            "prompt and answer do not fit into the model's context: shorten the inputs, or lower max_output_tokens. "
            f"You can also serve the model with a larger context, and set context_tokens in {table} to what it holds."
        )
    if 300 <= refusal.status < 400:
        return f"write the address that it leads to, up to {endpoint}, as base_url into {table}."
    if refusal.kind == "not_found" and refusal.bare:
        usual = "" if base_url.endswith("/v1") else ", which usually ends in /v1"
        return f"the server has nothing at {base_url}{endpoint}: check base_url in {table}{usual}."
    if refusal.kind == "request" and "temperature" in refusal.words:
        return f"this model does not let you set the temperature: leave `temperature` unset, also in {table}."
    return ""


def fix_of_kind(server: Server, model_id: str, base_url: str, kind: ModelErrorKind) -> str:
    if kind == "auth" and server.key_env is None:
        return (
            f"the server wants a key: name its variable, [providers.{server.name}] key_env = …, and put it into .env."
        )
    if kind == "auth":
        return f"check {server.key_env} in .env: the key must exist, be whole and be allowed to use this model."
    if kind == "not_found":
        fetch = f"`{server.fetch.format(model=model_id)}`, or " if server.fetch else ""
        return f"{fetch}choose a model that is there: `council models list` names them."
    if kind in ("network", "unreachable"):
        start = f"is the server running ({server.start})? " if server.start else ""
        return f"{start}check the connection, the proxy variables (HTTPS_PROXY, NO_PROXY) and base_url ({base_url})."
    return _FIX[kind]
