"""The tables of the audit."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, String, Table, UniqueConstraint

from council.storage.tables import SEALED, Words, metadata

chain = Table(
    "audit_chain",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("chain", String(32), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("mac", String(64), nullable=False),
    CheckConstraint("id = 1", name="only_one"),
)

# `run_id` and `step` are null for what no run did, so that only runs' records are unique by them.
records = Table(
    "audit_records",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("action", String(64), nullable=False),
    Column("actor", String(255), nullable=False),
    Column("run_id", String(64)),
    Column("step", String(200)),
    Column("detail", Words),
    Column("salt", String(32)),
    Column("detail_sha256", String(64), nullable=False),
    Column("kid", String(16), nullable=False),
    Column("mac", String(64), nullable=False),
    UniqueConstraint("run_id", "step"),
    info={SEALED: True},
)
