"""The tables of plans. Texts that are JSON say so: their words are found inside. Times are milliseconds since the epoch."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table, Text

from council.storage.tables import JSON_WORDS, WORDS, metadata

plans = Table(
    "plans",
    metadata,
    Column("plan_id", String(64), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("principal", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("scope", Text, nullable=False, info=JSON_WORDS),
    Column("operations", Text, nullable=False, info=JSON_WORDS),
    Column("previews", Text, nullable=False, info=JSON_WORDS),
    Column("advice", Text, nullable=False, info=JSON_WORDS),
    Column("hash", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("confirmed_ms", BigInteger),
    Column("handed_ms", BigInteger),
    Column("applied_ms", BigInteger),
    Column("results", Text, nullable=False, info=JSON_WORDS),
    Column("outcome", Text, nullable=False, server_default="", info=WORDS),
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
        Column("text", Text, nullable=False, info=WORDS),
    )
)
