"""The table of the sample system."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, Text

from council.storage.tables import GOES_WITH_RUN, NO_WORDS, Words, metadata

sample_notes = Table(
    "sample_notes",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("about", Text, nullable=False, info=NO_WORDS),
    Column("words", Words, nullable=False),
    info={GOES_WITH_RUN: True},
)
