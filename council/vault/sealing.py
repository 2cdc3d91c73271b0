"""A secret sealed for one place: AES-256-GCM whose associated data name the place. Pure.

The associated data are length-prefixed, so that no two places spell the same bytes: schema, key id, user, role, key,
version and expiry. A record that is copied to another place, or whose expiry is edited, does not open.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from council.errors import CredentialRefused, UsageError
from council.keys.keyring import Key
from council.redaction import Secret

SCHEMA = b"council.cred.v1"
MAX_SECRET_BYTES = 65_536
_NONCE_BYTES = 12  # drawn anew each time; 2^32 of them under one key keep a collision below 2^-32
_TAG_BYTES = 16
_MARKS = str.maketrans("", "", "._@-")


@dataclass(frozen=True)
class CredentialPlace:
    """A user's secret, for a role, under a name. The steward's own have the user `steward`, the role empty."""

    user: str
    role: str
    key: str

    def __str__(self) -> str:
        return "/".join(filter(None, self.parts))

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.user, self.role, self.key


def place_of(user: str, role: str, key: str) -> CredentialPlace:
    """Raises UsageError for what is no name."""
    for what, value, limit in (("user", user, 255), ("role", role, 100), ("name", key, 100)):
        plain = value.isascii() and value.translate(_MARKS).isalnum()
        if len(value) > limit or not (plain or (what == "role" and not value)):
            fix = "use letters, digits, . _ @ and -"
            raise UsageError(f"{value[:40]!r} is not a valid {what} of a credential.", fix=fix)
    return CredentialPlace(user, role, key)


def seal(value: Secret, place: CredentialPlace, version: int, expires_at: str, key: Key) -> bytes:
    """Nonce and ciphertext. `version` counts from 1; `expires_at` is RFC 3339, empty for never."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    bound = associated(place, version, expires_at, key.kid)
    return nonce + AESGCM(key.derive("credentials")).encrypt(nonce, value.reveal().encode(), bound)


def unseal(sealed: bytes, place: CredentialPlace, version: int, expires_at: str, key: Key) -> Secret:
    """Raises CredentialRefused (`tampered`) for everything but what `seal` made for exactly this place."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    if len(rest) < _TAG_BYTES:
        raise _tampered(place)
    try:
        opened = AESGCM(key.derive("credentials")).decrypt(nonce, rest, associated(place, version, expires_at, key.kid))
    except InvalidTag:
        raise _tampered(place) from None
    return Secret(opened.decode())


def associated(place: CredentialPlace, version: int, expires_at: str, kid: str) -> bytes:
    """Each part with its length in eight bytes before it."""
    texts = (kid, place.user, place.role, place.key, str(version), expires_at)
    parts = (SCHEMA, *(text.encode() for text in texts))
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _tampered(place: CredentialPlace) -> CredentialRefused:
    return CredentialRefused(
        f"the credential {place} cannot be decrypted: it was changed, or encrypted for another place.",
        reason="tampered",
        fix="set it again with `council vault set`, and look at `council audit verify`",
    )
