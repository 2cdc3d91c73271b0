"""Keys by which programs call over HTTP. Only their hashes are kept: a key is shown once, when it is made."""

from __future__ import annotations

import secrets

from council.ids import Clock, sha256_hex, timestamp
from council.storage.store import Tx
from council.users import statements as sql

_RANDOM_BYTES = 24


def make_key(tx: Tx, clock: Clock, *, prefix: str, owner: str, expires: str = "") -> str:
    """A new key: `prefix` and 48 hex digits. `expires` is a time as `ids.timestamp` spells it; empty: never."""
    key = prefix + secrets.token_hex(_RANDOM_BYTES)
    tx.execute(sql.ADD_KEY, (sha256_hex(key), owner, timestamp(clock.now()), expires))
    return key


def owner_of(tx: Tx, clock: Clock, key: str) -> str | None:
    """The owner of a key. None for one that is unknown, revoked or expired."""
    row = tx.execute(sql.OWNER, (sha256_hex(key.encode("utf-8", "surrogatepass")),)).fetchone()
    if row is None or row[2] or (row[1] and row[1] <= timestamp(clock.now())):
        return None
    return str(row[0])
