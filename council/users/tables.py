"""The tables of users, their roles, notifications, keys and sign-ins."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String, Table

from council.storage.tables import Words, metadata

users = Table(
    "users",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("name", Words(String(200)), nullable=False),
    Column("created", String(32), nullable=False),
)

roles = Table(
    "roles",
    metadata,
    Column("user_id", String(64), ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("role", String(64), primary_key=True),
)

notifications = Table(  # times are milliseconds since the epoch; `read_ms` NULL: not read yet
    "notifications",
    metadata,
    Column("notification_id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),  # no row of `users` where it is the steward
    Column("text", Words, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("read_ms", BigInteger),
    Index("ix_notifications_user_id", "user_id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("sha256", String(64), primary_key=True),  # of a key of 192 random bits: nobody finds it by guessing
    Column("owner", String(64), nullable=False),
    Column("created", String(32), nullable=False),
    Column("expires", String(32), nullable=False, server_default=""),
    Column("revoked", String(32), nullable=False, server_default=""),
)

sign_ins = Table(  # one-time links and sessions of browsers; a row goes when its time is over or somebody ends it
    "sign_ins",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("expires", String(32), nullable=False),
)
