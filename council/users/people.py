"""A person, as known here. Imports no SQLAlchemy: a daemon asks at every command that acts on somebody's behalf."""

from __future__ import annotations

from dataclasses import dataclass

from council.ids import Principal
from council.storage.reader import Looking
from council.storage.store import Tx
from council.users import statements as sql


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

    def look(tx: Tx) -> list[User]:
        return [_user(tx, row) for row in sorted(tx.execute(sql.USERS).fetchall())]

    return store.read(look)


def user_in(tx: Tx, user_id: str) -> User | None:
    """Looks like `user_of`, within a transaction."""
    row = tx.execute(sql.USER, (user_id,)).fetchone()
    return None if row is None else _user(tx, row)


def _user(tx: Tx, row: tuple[str, str, str]) -> User:
    return User(*row, tuple(held[0] for held in tx.execute(sql.ROLES, (row[0],)).fetchall()))
