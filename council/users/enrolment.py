"""Adding users, granting and revoking roles; every change is audited in its own transaction."""

from __future__ import annotations

from collections.abc import Sequence

from council.audit.log import AuditLog
from council.errors import UsageError
from council.ids import STEWARD, timestamp
from council.users import statements as sql
from council.users.people import PLAYER_PREFIX, User, require_user, user_in


def add_user(audit: AuditLog, user_id: str, name: str, granted: Sequence[str]) -> User:
    """Raises UsageError for an id that is taken, in whatever case, or the steward's or a player's; StorageFailed."""
    if user_id.casefold() == STEWARD.id:
        raise UsageError(f"{user_id} is the steward's own name.", fix="choose another id")
    if user_id.startswith(PLAYER_PREFIX):
        raise UsageError(f"{user_id} is the name of a player of the world.", fix="choose another id")
    name = audit.redactor.redact(name)
    user = User(user_id, name, timestamp(audit.clock.now()), tuple(sorted(set(granted))))
    with audit.transaction() as done:
        known = (str(row[0]) for row in done.tx.execute(sql.USERS).fetchall())
        if alike := [id_ for id_ in known if id_.casefold() == user_id.casefold()]:
            why = "" if user_id in alike else ", and two ids differ in more than their case"
            raise UsageError(f"there is already a user {alike[0]}{why}.", fix="`council users list` shows them")
        done.tx.execute(sql.ADD_USER, (user_id, name, user.created))
        for role in user.roles:
            done.tx.execute(sql.GRANT, (user_id, role))
        done.record("effect", "user_added", STEWARD.id, {"user": user_id, "roles": list(user.roles)})
    return user


def change_roles(audit: AuditLog, user_id: str, grant: Sequence[str], revoke: Sequence[str]) -> User:
    """Raises UsageError for a user who is not there, StorageFailed."""
    with audit.transaction() as done:
        before = require_user(done.tx, user_id)
        for role in set(grant) - set(before.roles):
            done.tx.execute(sql.GRANT, (user_id, role))
            done.record("effect", "role_granted", STEWARD.id, {"user": user_id, "role": role})
        for role in set(revoke) & set(before.roles):
            done.tx.execute(sql.REVOKE, (user_id, role))
            done.record("effect", "role_revoked", STEWARD.id, {"user": user_id, "role": role})
        after = user_in(done.tx, user_id)
    assert after is not None
    return after
