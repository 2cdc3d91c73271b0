"""The tables of users and their roles."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table

from council.storage.tables import metadata

users = Table(
    "users",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("created", String(32), nullable=False),
)

roles = Table(
    "roles",
    metadata,
    Column("user_id", String(64), ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("role", String(64), primary_key=True),
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
