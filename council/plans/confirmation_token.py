"""The confirmation token: the proof that a person confirmed this plan as it stands.

Signed with a key that HKDF derives from the home's, so nobody without that key can make one. It is derived when it is
needed and kept nowhere: record 0 of an apply holds its SHA-256, and the redactor knows its shape.
"""

from __future__ import annotations

import base64
import hmac

from council.ids import canonical_json, sha256_hex
from council.keys.keyring import Key, Keyring
from council.plans.plan import Plan

TOKEN_PREFIX = "council-plan-1."  # noqa: S105  the shape in `issued_keys`, and its version


def confirmation_token(plan: Plan, key: Key) -> str:
    """The token of a confirmed plan: user, plan, hash and expiry, and a signature over them."""
    told = {"userId": plan.principal, "draftId": plan.plan_id, "planHash": plan.hash}
    claims = canonical_json({**told, "expiresAt": plan.confirmed_until_ms})
    signature = hmac.digest(key.derive("confirmation"), claims, "sha256")
    return f"{TOKEN_PREFIX}{_base64(claims)}.{_base64(signature)}"


def is_token_of(plan: Plan, token_sha256: str, keys: Keyring) -> bool:
    """True for the SHA-256 of this plan's token. Keys may have been rotated since it was made."""
    usable = [key for key in keys.keys if key.status != "retired"]
    return any(hmac.compare_digest(token_sha256, sha256_hex(confirmation_token(plan, key))) for key in usable)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
