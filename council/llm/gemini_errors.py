"""Reads a refusal of the Gemini API: its kind, how long it asks to wait, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from council.errors import ModelErrorKind
from council.llm.http_failures import (
    FIX,
    Refusal,
    Rule,
    kind_of_status,
    kind_of_words,
    redirect_words,
    seconds,
)

# A daily quota comes with a retryDelay of seconds, which only burns calls; ask again once an hour.
_DAILY_QUOTA_WAIT_S = 3600.0

# The ordinary rate limit says "check your plan and billing details" too: only these words mean that waiting is no help.
# `limit: 0` is a plan that does not include the model at all.
_PAYMENT = re.compile(
    r"prepa(?:y|id)|insufficient\s+(?:funds|credits?)|spend(?:ing)?[\s-]+(?:cap|limit)|\blimit:\s*0(?![\d.])"
    r"|credits?\s+(?:are|is|have\s+been|has\s+been)\s+(?:depleted|exhausted|used\s+up)"
    r"|billing\s+(?:account\s+)?(?:is\s+|has\s+been\s+)?(?:disabled|not\s+enabled|not\s+active|inactive|closed|suspended)",
    re.IGNORECASE,
)
# In a refusal that is not about rates these are clear as well.
_NEEDS_BILLING = re.compile(
    r"billing_disabled|(?:enable|requires|set\s+up)\s+billing|billing\s+(?:account|must|is|has|to\s+be)\b",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"api_key_(?:invalid|expired)|api key (?:not valid|not found|expired|was reported)", re.IGNORECASE
)

_RULES: tuple[Rule, ...] = (
    ((400, 401, 403), _BAD_KEY, "auth"),
    ((400, 403, 429), _PAYMENT, "billing"),
    ((400, 403), _NEEDS_BILLING, "billing"),
)
_CONNECTION = "check the connection, the proxy variables (HTTPS_PROXY, NO_PROXY) and the base URL."
_FIX: dict[ModelErrorKind, str] = {
    **FIX,
    "auth": "check {key} in .env: the key must exist, be whole and be allowed to use the Gemini API.",
    "billing": "open the billing page of the key's Google project: add credit, raise the cap or change the plan.",
    "not_found": "`council models list gemini` names those that this key can use; the API version matters (v1, v1beta).",
    "rate": "wait, lower the number of concurrent runs, or raise the quota of the key's project.",
    "overload": "the fault is not yours: the model is busy. Try later or name another model.",
    "network": _CONNECTION,
    "unreachable": _CONNECTION,
    "protocol": "try again; if it keeps happening, something between here and the provider alters the answers.",
}


def fix_of_kind(key_name: str, kind: ModelErrorKind) -> str:
    return _FIX[kind].format(key=key_name)


def refusal_of(status: int, message: str, body: object, headers: Mapping[str, str]) -> tuple[Refusal, str]:
    """A refusal and what to do about it, empty where its kind says that. `status` 0: none was given."""
    if 300 <= status < 400:
        to = redirect_words(headers.get("location", ""))
        return Refusal(status, "network", to), "write the address that it leads to as base_url."
    failure = body.get("error") if isinstance(body, dict) else None
    told = failure.get("details") if isinstance(failure, dict) else None
    details = [detail for detail in told if isinstance(detail, dict)] if isinstance(told, list) else []
    kind = kind_of_words(_RULES, status, f"{message} {json.dumps(details)}") or kind_of_status(status)
    # The longer of the provider's two wishes: the Retry-After header (seconds or a date) and RetryInfo
    # (`"2s"`).
    wishes = [seconds(str(headers.get("retry-after") or ""))]
    wishes += [seconds(str(detail.get("retryDelay") or "").removesuffix("s")) for detail in details]
    wait_s = max((wish for wish in wishes if wish is not None), default=None)
    if kind == "rate" and "perday" in json.dumps(details).lower():
        wait_s = max(wait_s or 0.0, _DAILY_QUOTA_WAIT_S)
        fix = "the daily quota of this key is used up: wait for tomorrow or raise the plan."
        return Refusal(status, kind, message, retry_after_s=wait_s), fix
    return Refusal(status, kind, message, retry_after_s=wait_s), ""
