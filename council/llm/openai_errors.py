"""Reads a refusal of an OpenAI-compatible server: its error object, whatever shape it has, as a `ModelErrorKind`.
Pure.

The same status says different things at different servers, and some wrap an error in a 200. Words decide only where the
status does not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from council.errors import ModelErrorKind
from council.llm.http_failures import seconds

_RAW_CHARS = 2_000  # of an upstream provider's own words, passed through by a router

_KIND_OF_CODE: dict[str, ModelErrorKind] = {
    "invalid_api_key": "auth",
    "invalid_authentication": "auth",
    "authentication_error": "auth",
    "account_deactivated": "auth",
    "permission_error": "auth",
    "insufficient_quota": "billing",
    "insufficient_balance": "billing",
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "payment_required": "billing",
    "rate_limit_exceeded": "rate",
    "rate_limit_error": "rate",
    "too_many_requests": "rate",
    "model_not_found": "not_found",
    "model_not_supported": "not_found",
    "notfounderror": "not_found",
    "context_length_exceeded": "request",
    "exceed_context_size_error": "request",
    "badrequesterror": "request",
    "invalid_request_error": "request",
    "content_filter": "blocked",
    "content_policy_violation": "blocked",
    "moderation_blocked": "blocked",
    "overloaded_error": "overload",
    "engine_overloaded_error": "overload",
    "service_unavailable": "overload",
    "unavailable_error": "overload",
    "server_error": "server",
    "internal_server_error": "server",
    "timeout": "timeout",
}
_KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    404: "not_found",
    407: "network",  # not the server: a proxy before it
    405: "not_found",  # the address answers, and not to this: as good as absent
    408: "timeout",
    409: "server",
    424: "server",  # the router's own provider failed
    425: "overload",
    429: "rate",
    498: "overload",
    499: "server",
    503: "overload",
    504: "timeout",
    524: "timeout",
    529: "overload",
}
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


@dataclass(frozen=True)
class Refusal:
    """An error object. `status` is its own where it has one, else that of the answer; 0 means an answer of 200.

    `bare`: there was no error object, so that whoever answered may be no such server at all.
    """

    status: int
    message: str
    code: str = ""
    type: str = ""
    detail: str = ""
    bare: bool = False
    estimated_wait_s: float | None = None
    reset_ms: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """All it says, for looking into."""
        return " ".join(part for part in (self.message, self.code, self.type, self.detail) if part)

    @property
    def about_context(self) -> bool:
        """Tells whether prompt and answer do not fit into the model's window."""
        return self.status in (0, 400, 413, 422, 500) and bool(_CONTEXT.search(self.words))

    @property
    def kind(self) -> ModelErrorKind:
        if self.about_context:
            return "request"
        status, words = self.status, self.words
        if status == 402 and seconds(self.headers.get("retry-after", "")) is not None and not _PAYMENT.search(words):
            return "rate"  # a router's budget for calls in flight: it says when to come back
        if status in (0, 400, 403, 422) and _FILTERED.search(words):
            return "blocked"
        if status in (0, 400, 403, 422) and _BAD_KEY.search(words):
            return "auth"
        if status in (0, 403, 429) and _PAYMENT.search(words):
            return "billing"
        if status in (400, 403) and _BILLING.search(words) and self.code not in _KIND_OF_CODE:
            return "billing"
        if status in (0, 400, 422) and _NO_MODEL.search(words):
            return "not_found"
        by_code = _KIND_OF_CODE.get(self.code.lower())
        by_type = _KIND_OF_CODE.get(self.type.lower())
        if by_code is not None and by_code != "request":
            return by_code
        if status in _KIND_OF_STATUS:
            return _KIND_OF_STATUS[status]
        said = by_code or by_type
        if said is not None and (status < 500 or said != "request"):
            return said
        if status == 0:
            return "server"
        if 400 <= status < 500:
            return "request"
        if 500 <= status < 600:
            return "server"
        return "network" if 300 <= status < 400 else "protocol"

    @property
    def retry_after_s(self) -> float | None:
        """The longest wait that the answer asks for."""
        text = self.headers.get("retry-after-ms", "")
        value = seconds(text) if text else None
        wishes = [None if value is None else value / 1000, seconds(self.headers.get("retry-after", ""))]
        wishes.append(self.estimated_wait_s)
        if self.kind in ("rate", "overload"):
            wishes.append(
                None if self.reset_ms is None else max(0.0, self.reset_ms / 1000 - datetime.now(UTC).timestamp())
            )
            spelled_out = _TRY_AGAIN_IN.search(self.message)
            if spelled_out is not None and self.headers.get("retry-after") is None:
                minutes, amount, unit = spelled_out.groups()
                wishes.append(60 * int(minutes or 0) + float(amount) / (1000 if unit.lower() == "ms" else 1))
        return max((wish for wish in wishes if wish is not None), default=None)


def refusal_of(status: int, body: bytes, headers: Mapping[str, str]) -> Refusal:
    """Reads an answer with an error status; any body will do."""
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(status, body.decode("utf-8", "replace"), bare=True, headers=lowered)
    found = _error_object(content, status, lowered)
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
        return Refusal(status, words, bare=not words or words == "Not Found", headers=lowered)
    return Refusal(status, content if isinstance(content, str) else "", bare=True, headers=lowered)


def refusal_in(content: object, headers: Mapping[str, str] | None = None) -> Refusal | None:
    """The error object in an answer of 200, or in an event of a stream; None where there is none."""
    if not isinstance(content, dict):
        return None
    found = _error_object(content, 0, {name.lower(): value for name, value in (headers or {}).items()})
    if found is not None:
        return found
    choices = content.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _error_object(first, 0, {}) if isinstance(first, dict) and "error" in first else None


def _error_object(content: object, status: int, headers: Mapping[str, str]) -> Refusal | None:
    if not isinstance(content, dict):
        return None
    error = content if content.get("object") == "error" else content.get("error")
    wait_s = _number(content.get("estimated_time"))
    if isinstance(error, list):
        error = "; ".join(_text(item.get("message") if isinstance(item, dict) else item) for item in error[:5])
    if isinstance(error, str) and error:
        return Refusal(status, error, estimated_wait_s=wait_s, headers=headers)
    if not isinstance(error, dict) or not error:
        return None
    code, routed = error.get("code"), error.get("metadata")
    routed = routed if isinstance(routed, dict) else {}
    # What a router passes on: the words of the provider behind it, and when its limit is reset.
    raw, reasons, upstream = routed.get("raw"), routed.get("reasons"), routed.get("headers")
    said = raw if isinstance(raw, str) else json.dumps(raw) if raw else ""
    details = [_text(routed.get("provider_name")), said[:_RAW_CHARS]]
    details += [str(reason)[:100] for reason in reasons[:5]] if isinstance(reasons, list) else []
    own_status = _status(code) or _status(error.get("status")) or _status(error.get("http_status"))
    return Refusal(
        status or own_status or 0,
        _text(error.get("message")),
        code=code if isinstance(code, str) and not _status(code) else "",
        type=_text(error.get("type")),
        detail=" ".join(part for part in details if part),
        estimated_wait_s=wait_s if wait_s is not None else _number(error.get("estimated_time")),
        reset_ms=_number(upstream.get("X-RateLimit-Reset") if isinstance(upstream, dict) else None),
        headers=headers,
    )


def _status(value: object) -> int:
    """An HTTP status of an error, given as a number or in digits; else 0."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 300 <= value < 600 else 0


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return seconds(value)
    ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if ok else None  # type: ignore[arg-type]
