"""The tables of plans. Texts that are JSON say so: their words are found inside. Times are milliseconds since the epoch."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table

from council.storage.tables import JsonWords, Words, metadata

plans = Table(
    "plans",
    metadata,
    Column("plan_id", String(64), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("principal", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("scope", JsonWords, nullable=False),
    Column("operations", JsonWords, nullable=False),
    Column("previews", JsonWords, nullable=False),
    Column("advice", JsonWords, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("confirmed_ms", BigInteger),
    Column("handed_ms", BigInteger),
    Column("applied_ms", BigInteger),
    Column("results", JsonWords, nullable=False),
    Column("outcome", Words, nullable=False, server_default=""),
    Column("run_id", String(64), nullable=False, server_default=""),
    Column("revises", String(64), nullable=False, server_default=""),
    Column("last_drop", String(160), nullable=False, server_default=""),
    Index("ix_plans_state", "state"),
    Index("ix_plans_last_drop", "last_drop"),
)

plan_requests = (
    Table(  # `request`: SHA-256 over scope and clientRequestId; `digest`: over the operation that it stood for
        "plan_requests",
        metadata,
        Column("request", String(64), primary_key=True),
        Column("plan_id", String(64), nullable=False),
        Column("digest", String(64), nullable=False),
        Column("text", Words, nullable=False),
    )
)
