"""Keys by which programs call over HTTP. Only their hashes are kept: a key is shown once, when it is made.
Every change to a person's keys is audited in its own transaction."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from council.audit.log import AuditLog
from council.errors import UsageError
from council.ids import STEWARD, Clock, sha256_hex, timestamp
from council.storage.reader import Looking
from council.storage.store import Tx
from council.users import statements as sql
from council.users.people import PLAYER_PREFIX, principal_in, user_in

KEY_PREFIX = "council-key-"  # of people; players have their own
_ID_CHARS = 12  # of a key's hash: enough to tell the keys of a home apart
_RANDOM_BYTES = 24


def make_key(tx: Tx, clock: Clock, *, prefix: str, owner: str, expires: str = "") -> str:
    """A new key: `prefix` and 48 hex digits. `expires` is a time as `ids.timestamp` spells it; empty: never."""
    key = prefix + secrets.token_hex(_RANDOM_BYTES)
    tx.execute(sql.ADD_KEY, (sha256_hex(key), owner, timestamp(clock.now()), expires))
    return key


def owner_of(tx: Tx, clock: Clock, key: str) -> str | None:
    """The owner of a key. None for one that is unknown, revoked or expired."""
    row = tx.execute(sql.OWNER, (hash_of(key),)).fetchone()
    if row is None or row[2] or (row[1] and row[1] <= timestamp(clock.now())):
        return None
    return str(row[0])


def hash_of(word: str) -> str:
    """A key, link or session as it is kept."""
    return sha256_hex(word.encode("utf-8", "surrogatepass"))


def key_holder(tx: Tx, clock: Clock, key: str) -> str | None:
    """The person whose key it is. None for a player's, and for one that is unknown, revoked or expired."""
    return owner_of(tx, clock, key) if key.startswith(KEY_PREFIX) else None


@dataclass(frozen=True)
class PersonKey:
    """A key of a person, without the key. `expires` and `revoked` are times, empty for never."""

    key_id: str
    owner: str
    created: str
    expires: str
    revoked: str


def keys_of_people(store: Looking) -> list[PersonKey]:
    """All keys of people, oldest first. Raises StorageFailed."""
    return store.read(lambda tx: [PersonKey(row[0][:_ID_CHARS], *row[1:]) for row in _rows(tx)])


def add_key(audit: AuditLog, user_id: str, expires: str = "") -> str:
    """A new key for a person's programs. Raises NoPrincipal, StorageFailed."""
    with audit.transaction() as done:
        principal_in(done.tx, user_id)
        key = make_key(done.tx, audit.clock, prefix=KEY_PREFIX, owner=user_id, expires=expires)
        detail = {"user": user_id, "key": hash_of(key)[:_ID_CHARS], "expires": expires}
        done.record("effect", "key_added", STEWARD.id, detail)
    return key


def revoke_keys(audit: AuditLog, named: str) -> tuple[str, int]:
    """Ends a key, by its id, or all keys of a person. Their sessions end, too, for one may have begun with the key. The
    person, and how many keys were revoked. Raises UsageError for what names neither."""
    with audit.transaction() as done:
        rows, now = _rows(done.tx), timestamp(audit.clock.now())
        is_person = named == STEWARD.id or user_in(done.tx, named) is not None
        found = [row for row in rows if row[1] == named] if is_person else [
            row for row in rows if named and row[0].startswith(named)
        ]  # fmt: skip
        if not is_person and len(found) != 1:
            told = "several keys begin with" if found else "there is no key and no user"
            raise UsageError(f"{told} {named!r}.", fix="`council keys list` shows the keys")
        owner = named if is_person else found[0][1]
        revoked = [row[0] for row in found if not row[4]]
        for sha256 in revoked:
            done.tx.execute(sql.REVOKE_ONE, (now, sha256))
        done.tx.execute(sql.END_SIGN_INS, (owner,))
        detail = {"user": owner, "keys": [sha256[:_ID_CHARS] for sha256 in revoked]}
        done.record("effect", "key_revoked", STEWARD.id, detail)
    return owner, len(revoked)


def _rows(tx: Tx) -> list[tuple[str, ...]]:
    """The keys of people; those of players are the world's."""
    return [row for row in tx.execute(sql.KEYS).fetchall() if not row[1].startswith(PLAYER_PREFIX)]
