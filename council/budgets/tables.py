"""The table of what was spent."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, String, Table

from council.storage.tables import metadata

spending = Table(  # one row for each call: of its run's log and of its day's
    "spending",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("call", String(16), primary_key=True),
    Column("attempt", Integer, nullable=False),  # a retry begins with the command's whole budget
    Column("day", String(10), nullable=False),
    Column("state", String(8), nullable=False),
    Column("closing", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("usd", Float),
    Column("seconds", Float, nullable=False),
    Index("ix_spending_day", "day"),
)
