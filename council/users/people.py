"""A person, as known here. Imports no SQLAlchemy: a daemon asks at every command that acts on somebody's behalf."""

from __future__ import annotations

from dataclasses import dataclass

from council.errors import EXIT_REFUSED, CouncilError, UsageError
from council.ids import STEWARD, Principal
from council.proposals import nearest
from council.storage.reader import Looking
from council.storage.store import Tx
from council.users import statements as sql


class NoPrincipal(CouncilError):
    """Nobody of that name has a role here."""

    code = "no_principal"
    exit_code = EXIT_REFUSED
    http_status = 403


@dataclass(frozen=True)
class User:
    """`roles`: what the steward granted; nobody has more authority than the steward."""

    user_id: str
    name: str
    created: str
    roles: tuple[str, ...]

    @property
    def principal(self) -> Principal:
        return Principal(self.user_id, "administrator" if "administrator" in self.roles else "user")


def user_of(store: Looking, user_id: str) -> User | None:
    """The user of that id. None when nobody has it. Raises StorageFailed."""
    return store.read(lambda tx: user_in(tx, user_id))


def all_users(store: Looking) -> list[User]:
    """All users, by their ids. Raises StorageFailed."""
    return store.read(lambda tx: [_user(tx, row) for row in sorted(tx.execute(sql.USERS).fetchall())])


def user_in(tx: Tx, user_id: str) -> User | None:
    """Looks like `user_of`, within a transaction."""
    row = tx.execute(sql.USER, (user_id,)).fetchone()
    return None if row is None else _user(tx, row)


def require_user(tx: Tx, user_id: str) -> User:
    """The user of that id. Raises UsageError where nobody has it."""
    user = user_in(tx, user_id)
    if user is None:
        near = nearest(user_id, (row[0] for row in tx.execute(sql.USERS).fetchall()))
        meant = f"did you mean {near}? " if near else ""
        raise UsageError(f"there is no user {user_id}.", fix=f"{meant}`council users add {user_id}` makes one")
    return user


def principal_in(tx: Tx, user_id: str) -> Principal:
    """The principal of that id with the roles of this moment. Raises NoPrincipal."""
    if user_id == STEWARD.id:
        return STEWARD
    user = user_in(tx, user_id)
    if user is None or not user.roles:
        fix = f"`council users add {user_id}` adds a user, `council users roles {user_id} --grant user` gives a role"
        raise NoPrincipal(f"{user_id or 'nobody'} has no role here.", fix=fix)
    return user.principal


def seen_by(tx: Tx, user_id: str | None) -> str | None:
    """The one whose runs and plans a command on behalf of this user may name; None for everybody's, as the steward's may."""
    if user_id in (None, STEWARD.id):
        return None
    user = user_in(tx, user_id)
    return user_id if user is None else user.principal.sees


def _user(tx: Tx, row: tuple[str, str, str]) -> User:
    return User(*row, tuple(held[0] for held in tx.execute(sql.ROLES, (row[0],)).fetchall()))


PLAYER_PREFIX = "player-"  # of the owners of players' keys
