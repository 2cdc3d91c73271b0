"""The ways in for a person's browser: one-time links, and the sessions that they open. Only hashes are kept, and every
change is audited in its own transaction."""

from __future__ import annotations

import secrets
from datetime import timedelta

from council.audit.log import AuditLog
from council.errors import CouncilError
from council.ids import STEWARD, Clock, timestamp
from council.storage.store import Tx
from council.users import statements as sql
from council.users.api_keys import hash_of, key_holder
from council.users.people import principal_in

_LINK, _SESSION = "council-link-", "council-session-"
LINK_TTL_S = 300.0
_RANDOM_BYTES = 24


class SignInRefused(CouncilError):
    """A link or a key that lets nobody in."""

    code = "sign_in_refused"
    http_status = 401


def session_holder(tx: Tx, clock: Clock, session: str) -> str | None:
    """The person of a session. None for one that is unknown or over."""
    if not session.startswith(_SESSION):
        return None
    row = tx.execute(sql.SIGN_IN, (hash_of(session), timestamp(clock.now()))).fetchone()
    return None if row is None else str(row[0])


def make_link(audit: AuditLog, user_id: str) -> str:
    """A word that opens one session, within five minutes. Raises NoPrincipal, StorageFailed."""
    with audit.transaction() as done:
        principal_in(done.tx, user_id)
        link = _added(done.tx, audit.clock, _LINK, user_id, LINK_TTL_S)
        done.record("effect", "sign_in_link_made", STEWARD.id, {"user": user_id})
    return link


def open_session(audit: AuditLog, word: str, ttl_s: float) -> str:
    """A session by a link, which is used up, or by a key. Raises SignInRefused, NoPrincipal, StorageFailed."""
    with audit.transaction() as done:
        if word.startswith(_LINK):
            row = done.tx.execute(sql.USE_SIGN_IN, (hash_of(word), timestamp(audit.clock.now()))).fetchone()
            user_id = None if row is None else str(row[0])
        else:
            user_id = key_holder(done.tx, audit.clock, word)
        if user_id is None:
            fix = "`council ui` makes a new link; `council keys add` makes a key"
            raise SignInRefused("this link or key does not work, or not any more.", fix=fix)
        principal_in(done.tx, user_id)
        session = _added(done.tx, audit.clock, _SESSION, user_id, ttl_s)
        done.record("effect", "signed_in", user_id, {"by": "link" if word.startswith(_LINK) else "key"})
    return session


def end_session(audit: AuditLog, session: str) -> None:
    """Nothing happens to one that is over."""
    with audit.transaction() as done:
        row = done.tx.execute(sql.USE_SIGN_IN, (hash_of(session), timestamp(audit.clock.now()))).fetchone()
        if row is not None:
            done.record("effect", "signed_out", str(row[0]), {})


def _added(tx: Tx, clock: Clock, prefix: str, user_id: str, ttl_s: float) -> str:
    now, word = clock.now(), prefix + secrets.token_hex(_RANDOM_BYTES)
    tx.execute(sql.SWEEP_SIGN_INS, (timestamp(now),))
    tx.execute(sql.ADD_SIGN_IN, (hash_of(word), user_id, timestamp(now + timedelta(seconds=ttl_s))))
    return word
