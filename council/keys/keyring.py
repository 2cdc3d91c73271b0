"""Several keys of 32 bytes: one that is used for what is new, those that older things still need. Pure.

No key is used as it is: HKDF-SHA-256 (RFC 5869) derives one for each purpose, so that what signs the audit opens no
credential. A key's id is derived as well, and is the same wherever the key is kept.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from council.errors import KeysRefused
from council.redaction import Secret

KEY_BYTES = 32
MAX_KEYS = 400  # a rotation a week for seven years, in less than the 64 KiB that a key file may have
Status = Literal["primary", "active", "retired"]
KeyPurpose = Literal["credentials", "audit", "confirmation"]
KEY_FIX = "a key is 32 random bytes in base64: `openssl rand -base64 32` prints one"


@dataclass(frozen=True)
class Key:
    """`primary`: used for what is new. `active`: opens what it sealed. `retired`: checks old audit records, no more."""

    material: Secret  # base64
    status: Status

    @cached_property
    def kid(self) -> str:
        """Eight hex digits that name the key and tell nothing of it."""
        return self._derived("kid", 4).hex()

    def derive(self, purpose: KeyPurpose) -> bytes:
        """32 bytes for one purpose."""
        return self._derived(purpose, KEY_BYTES)

    def _derived(self, info: str, length: int) -> bytes:
        return hkdf_sha256(decode_key(self.material.reveal()), f"council/v1/{info}".encode(), length)


@dataclass(frozen=True)
class Keyring:
    """Keys with exactly one primary among them."""

    keys: tuple[Key, ...]

    @property
    def primary(self) -> Key:
        return next(key for key in self.keys if key.status == "primary")

    def get(self, kid: str) -> Key | None:
        return next((key for key in self.keys if key.kid == kid), None)

    @property
    def superseded(self) -> tuple[Key, ...]:
        """Those that what they sealed still needs."""
        return tuple(key for key in self.keys if key.status == "active")

    def grown(self) -> Keyring:
        """The keyring with a new primary key; the one before stays active. Raises KeysRefused when there are too many."""
        if len(self.keys) >= MAX_KEYS:
            raise KeysRefused(f"there are {MAX_KEYS} keys already.", fix="start a new home for a new chain of records")
        older = tuple(replace(key, status="active") if key.status == "primary" else key for key in self.keys)
        return Keyring((new_key(), *older))

    def settled(self, used: Collection[str] = ()) -> Keyring:
        """The keyring with every key retired that is neither the primary one nor, by its id, `used`."""
        return Keyring(
            tuple(
                key if key.status == "primary" or key.kid in used else replace(key, status="retired")
                for key in self.keys
            )
        )


def hkdf_sha256(material: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 without a salt, for at most one block. Here, because the package that has it costs a daemon 8 MiB for the
    audit alone."""
    if not 0 < length <= KEY_BYTES:
        raise ValueError(f"one block is {KEY_BYTES} bytes")
    extracted = hmac.digest(bytes(KEY_BYTES), material, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")[:length]


def new_key() -> Key:
    return Key(Secret(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()), "primary")


def keyring_of(keys: tuple[Key, ...], where: str) -> Keyring:
    """Raises KeysRefused unless each is a key and exactly one is the primary."""
    for key in keys:
        decode_key(key.material.reveal(), where)
    if [key.status for key in keys].count("primary") != 1 or len({key.kid for key in keys}) != len(keys):
        raise KeysRefused(f"{where} does not contain one primary key and any others.", fix="restore it from a backup")
    return Keyring(keys)


def listed_keyring(text: str, where: str) -> Keyring:
    """Keys separated by commas, blanks or lines: the first one is the primary. Raises KeysRefused."""
    values = text.replace(",", " ").split()
    if not values:
        raise KeysRefused(f"{where} has no key.", fix=KEY_FIX)
    if len(values) > MAX_KEYS:
        raise KeysRefused(f"{where} has more than {MAX_KEYS} keys.", fix="remove the oldest")
    keys = tuple(Key(Secret(value), "active" if index else "primary") for index, value in enumerate(values))
    return keyring_of(keys, where)


def decode_key(value: str, where: str = "the key") -> bytes:
    """Raises KeysRefused, without the value."""
    try:
        material = base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        material = b""
    if len(material) != KEY_BYTES:
        raise KeysRefused(f"{where} contains something that is not a key.", fix=KEY_FIX)
    return material
