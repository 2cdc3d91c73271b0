"""The ways in over HTTP for people: keys of their programs, one-time links, sessions of their browsers.

Only hashes are kept. Every change is audited in its own transaction.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from council.audit.log import AuditLog
from council.errors import CouncilError, UsageError
from council.ids import STEWARD, Clock, sha256_hex, timestamp
from council.storage.reader import Looking
from council.storage.store import Tx
from council.storage.versions import has_table
from council.users import statements as sql
from council.users.api_keys import make_key, owner_of
from council.users.enrolment import PLAYER_PREFIX
from council.users.people import principal_in, user_in

KEY_PREFIX = "council-key-"
_LINK, _SESSION = "council-link-", "council-session-"
LINK_TTL_S = 300.0
_RANDOM_BYTES = 24
_ID_CHARS = 12  # of a key's hash: enough to tell the keys of a home apart


class SignInRefused(CouncilError):
    """A link or a key that lets nobody in."""

    code = "sign_in_refused"
    http_status = 401


@dataclass(frozen=True)
class PersonKey:
    """A key of a person, without the key. `expires` and `revoked` are times, empty for never."""

    key_id: str
    owner: str
    created: str
    expires: str
    revoked: str


def key_holder(tx: Tx, clock: Clock, key: str) -> str | None:
    """The person whose key it is. None for a player's, and for one that is unknown, revoked or expired."""
    return owner_of(tx, clock, key) if key.startswith(KEY_PREFIX) else None


def session_holder(tx: Tx, clock: Clock, session: str) -> str | None:
    """The person of a session. None for one that is unknown or over."""
    if not session.startswith(_SESSION) or not has_table(tx, "sign_ins"):
        return None
    row = tx.execute(sql.SIGN_IN, (_hash(session), timestamp(clock.now()))).fetchone()
    return None if row is None else str(row[0])


def keys_of_people(store: Looking) -> list[PersonKey]:
    """All keys of people, oldest first. Raises StorageFailed."""
    return store.read(lambda tx: [PersonKey(row[0][:_ID_CHARS], *row[1:]) for row in _rows(tx)])


class Access:
    """The keys, links and sessions of one home."""

    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock

    def add_key(self, user_id: str, expires: str = "") -> str:
        """A new key for a person's programs. Raises NoPrincipal, StorageFailed."""
        with self._audit.transaction() as done:
            principal_in(done.tx, user_id)
            key = make_key(done.tx, self._clock, prefix=KEY_PREFIX, owner=user_id, expires=expires)
            detail = {"user": user_id, "key": _hash(key)[:_ID_CHARS], "expires": expires}
            done.record("effect", "key_added", STEWARD.id, detail)
        return key

    def revoke(self, named: str) -> tuple[str, int]:
        """Ends a key, by its id, or all keys of a person. Their sessions end, too, for one may have begun with the key. The
        person, and how many keys were revoked. Raises UsageError for what names neither."""
        with self._audit.transaction() as done:
            rows, now = _rows(done.tx), timestamp(self._clock.now())
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

    def make_link(self, user_id: str) -> str:
        """A word that opens one session, within five minutes. Raises NoPrincipal, StorageFailed."""
        with self._audit.transaction() as done:
            principal_in(done.tx, user_id)
            link = self._added(done.tx, _LINK, user_id, LINK_TTL_S)
            done.record("effect", "sign_in_link_made", STEWARD.id, {"user": user_id})
        return link

    def open_session(self, word: str, ttl_s: float) -> str:
        """A session by a link, which is used up, or by a key. Raises SignInRefused, NoPrincipal, StorageFailed."""
        with self._audit.transaction() as done:
            if word.startswith(_LINK):
                row = done.tx.execute(sql.USE_SIGN_IN, (_hash(word), timestamp(self._clock.now()))).fetchone()
                user_id = None if row is None else str(row[0])
            else:
                user_id = key_holder(done.tx, self._clock, word)
            if user_id is None:
                fix = "`council ui` makes a new link; `council keys add` makes a key"
                raise SignInRefused("this link or key does not work, or not any more.", fix=fix)
            principal_in(done.tx, user_id)
            session = self._added(done.tx, _SESSION, user_id, ttl_s)
            done.record("effect", "signed_in", user_id, {"by": "link" if word.startswith(_LINK) else "key"})
        return session

    def end_session(self, session: str) -> None:
        """Nothing happens to one that is over."""
        with self._audit.transaction() as done:
            row = done.tx.execute(sql.USE_SIGN_IN, (_hash(session), timestamp(self._clock.now()))).fetchone()
            if row is not None:
                done.record("effect", "signed_out", str(row[0]), {})

    def _added(self, tx: Tx, prefix: str, user_id: str, ttl_s: float) -> str:
        now, word = self._clock.now(), prefix + secrets.token_hex(_RANDOM_BYTES)
        tx.execute(sql.SWEEP_SIGN_INS, (timestamp(now),))
        tx.execute(sql.ADD_SIGN_IN, (_hash(word), user_id, timestamp(now + timedelta(seconds=ttl_s))))
        return word


def _rows(tx: Tx) -> list[tuple[str, ...]]:
    """The keys of people; those of players are the world's."""
    rows = tx.execute(sql.KEYS).fetchall() if has_table(tx, "api_keys") else []
    return [row for row in rows if not row[1].startswith(PLAYER_PREFIX)]


def _hash(word: str) -> str:
    return sha256_hex(word.encode("utf-8", "surrogatepass"))
