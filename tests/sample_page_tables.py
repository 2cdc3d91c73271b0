"""The table of the system of pages."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, UniqueConstraint

from council.storage.tables import Words, metadata

sample_pages = Table(
    "sample_pages",
    metadata,
    Column("page_id", String(64), primary_key=True),
    Column("shelf", String(64), nullable=False),
    Column("title", Words, nullable=False),
    Column("content", Words, nullable=False),
    UniqueConstraint("shelf", "title"),
)
