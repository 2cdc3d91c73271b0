"""The table of credentials: the source document's columns (section 4), and a version."""

from __future__ import annotations

from sqlalchemy import Column, Integer, LargeBinary, String, Table, UniqueConstraint

from council.storage.tables import NO_WORDS, metadata

credentials = Table(
    "user_credentials",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("user_id", String(255), nullable=False),
    Column("specialist_role", String(100), nullable=False),
    Column("credential_key", String(100), nullable=False),
    Column("encrypted_value", LargeBinary, nullable=False, info=NO_WORDS),
    Column("encryption_key_id", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("expires_at", String(32)),
    UniqueConstraint("user_id", "specialist_role", "credential_key"),
)
