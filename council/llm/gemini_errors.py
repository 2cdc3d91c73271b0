"""Reads a refusal of the Gemini API: its kind, how long it asks to wait, and what to do. Knows the shape of Google's
error bodies, not the SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from council.errors import ModelErrorKind
from council.llm.http_failures import PROXY_VARIABLES, redirect_words, seconds

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

_KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    404: "not_found",
    407: "network",  # not Google: a proxy before it
    408: "timeout",
    409: "server",  # ABORTED: a conflict on the provider's side
    429: "rate",
    499: "server",  # CANCELLED, and not by us
    503: "overload",
    504: "timeout",
    529: "overload",
}

FIX: dict[ModelErrorKind, str] = {
    "auth": "check {key} in .env: the key must exist, be whole and be allowed to use the Gemini API.",
    "billing": "open the billing page of the key's Google project: add credit, raise the cap or change the plan.",
    "not_found": "`council models list gemini` names those that this key can use; the API version matters (v1, v1beta).",
    "request": "this is refused whenever it is sent: shorten the inputs, or check the model's settings.",
    "rate": "wait, lower the number of concurrent runs, or raise the quota of the key's project.",
    "overload": "nothing is wrong here; the model is busy. Try later or name another model.",
    "server": "nothing is wrong here; the provider failed. Try later.",
    "timeout": "try again; if it keeps happening raise the request timeout or shorten the inputs.",
    "network": "check the connection, the proxy variables (HTTPS_PROXY, NO_PROXY) and the base URL.",
    "protocol": "try again; if it keeps happening something between here and the provider alters the answers.",
    "blocked": "reword the task or leave out the input that the provider's filter objects to.",
    "length": "raise max_output_tokens: thinking counts towards it.",
    "empty": "try again; if it keeps happening reword the task or name another model.",
}


@dataclass(frozen=True)
class Refusal:
    """An answer with an error status, or an error object in the middle of a stream. `words` are Google's own, not yet fit to be
    shown; an empty `fix` leaves it to the kind."""

    kind: ModelErrorKind
    words: str
    fix: str = ""
    retry_after_s: float | None = None


def refusal_of(status: int, message: str, body: object, headers: Mapping[str, str]) -> Refusal:
    """`status` 0: none was given. `body` is the error body in whatever shape it came."""
    failure = body.get("error") if isinstance(body, dict) else None
    told = failure.get("details") if isinstance(failure, dict) else None
    details = [detail for detail in told if isinstance(detail, dict)] if isinstance(told, list) else []
    if 300 <= status < 400:
        return Refusal(
            "network", redirect_words(headers.get("location", "")), "write the address that it leads to as base_url."
        )
    if status == 407:
        return Refusal("network", message, f"check the proxy variables ({PROXY_VARIABLES}).")
    kind = _kind_of_refusal(status, f"{message} {json.dumps(details)}")
    # The longer of the provider's two wishes: the Retry-After header (seconds or a date) and RetryInfo
    # (`"2s"`).
    wishes = [seconds(str(headers.get("retry-after") or ""))]
    wishes += [seconds(str(detail.get("retryDelay") or "").removesuffix("s")) for detail in details]
    wait_s = max((wish for wish in wishes if wish is not None), default=None)
    if kind == "rate" and "perday" in json.dumps(details).lower():
        fix = "the daily quota of this key is used up: wait for tomorrow or raise the plan."
        return Refusal(kind, message, fix, max(wait_s or 0.0, _DAILY_QUOTA_WAIT_S))
    return Refusal(kind, message, retry_after_s=wait_s)


def _kind_of_refusal(status: int, words: str) -> ModelErrorKind:
    """`words`: the provider's message and details; they decide where one status means several things."""
    if status in (400, 401, 403) and _BAD_KEY.search(words):
        return "auth"
    if status in (400, 403, 429) and _PAYMENT.search(words):
        return "billing"
    if status in (400, 403) and _NEEDS_BILLING.search(words):
        return "billing"
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    if 400 <= status < 500:
        return "request"
    if 500 <= status < 600:
        return "server"
    return "protocol"
