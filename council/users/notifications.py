"""Notifications: one line for one person, by whichever system. Who sends one adds the statement to its own transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from council.users.tables import notifications

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable


def notice(notification_id: str, user_id: str, text: str, now_ms: int) -> Executable:
    """The statement that tells a user, or the steward, of something."""
    values = {"notification_id": notification_id, "user_id": user_id, "text": text, "created_ms": now_ms}
    return insert(notifications).values(values)


def notifications_of(connection: Connection, user_id: str, limit: int) -> Iterable[dict[str, Any]]:
    """The newest first."""
    columns = (notifications.c.text, notifications.c.created_ms, notifications.c.read_ms)
    rows = select(*columns).where(notifications.c.user_id == user_id).order_by(notifications.c.notification_id.desc())
    return (dict(row) for row in connection.execute(rows.limit(limit)).mappings())


def read_by(user_id: str, now_ms: int) -> Executable:
    """The statement after which the user has read all."""
    unread = (notifications.c.user_id == user_id, notifications.c.read_ms.is_(None))
    return update(notifications).where(*unread).values(read_ms=now_ms)
