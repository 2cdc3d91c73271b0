"""Adding users, granting and revoking roles; every change is audited in its own transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, insert

from council.audit.log import AuditLog
from council.errors import UsageError
from council.ids import STEWARD, Clock, timestamp
from council.users import statements as sql
from council.users.people import PLAYER_PREFIX, User, require_user, user_in
from council.users.tables import roles, users


class Users:
    """The users of one home."""

    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock

    def add(self, user_id: str, name: str, granted: Sequence[str]) -> User:
        """Raises UsageError for an id that is taken, in whatever case, or the steward's or a player's; StorageFailed."""
        if user_id.casefold() == STEWARD.id:
            raise UsageError(f"{user_id} is the steward's own name.", fix="choose another id")
        if user_id.startswith(PLAYER_PREFIX):
            raise UsageError(f"{user_id} is the name of a player of the world.", fix="choose another id")
        user = User(user_id, name, timestamp(self._clock.now()), tuple(sorted(set(granted))))
        with self._audit.transaction() as transaction:
            tx, connection = transaction.tx, transaction.tx.core
            known = (str(row[0]) for row in tx.execute(sql.USERS).fetchall())
            if alike := [id_ for id_ in known if id_.casefold() == user_id.casefold()]:
                why = "" if user_id in alike else ", and two ids differ in more than their case"
                raise UsageError(f"there is already a user {alike[0]}{why}.", fix="`council users list` shows them")
            connection.execute(insert(users).values(user_id=user_id, name=name, created=user.created))
            for role in user.roles:
                connection.execute(insert(roles).values(user_id=user_id, role=role))
            transaction.record("effect", "user_added", STEWARD.id, {"user": user_id, "roles": list(user.roles)})
        return user

    def change_roles(self, user_id: str, grant: Sequence[str], revoke: Sequence[str]) -> User:
        """Raises UsageError for a user who is not there, StorageFailed."""
        with self._audit.transaction() as transaction:
            tx, connection = transaction.tx, transaction.tx.core
            before = require_user(tx, user_id)
            for role in set(grant) - set(before.roles):
                connection.execute(insert(roles).values(user_id=user_id, role=role))
                transaction.record("effect", "role_granted", STEWARD.id, {"user": user_id, "role": role})
            for role in set(revoke) & set(before.roles):
                connection.execute(delete(roles).where(roles.c.user_id == user_id, roles.c.role == role))
                transaction.record("effect", "role_revoked", STEWARD.id, {"user": user_id, "role": role})
            after = user_in(tx, user_id)
        assert after is not None
        return after
