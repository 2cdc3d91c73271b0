"""The tables of the conductor: where agents' purposes lie by meaning, what a person prefers, what a conversation keeps."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, String, Table, Text

from council.storage.tables import NO_WORDS, Words, metadata

agent_embeddings = Table(
    "agent_embeddings",
    metadata,
    Column("agent", String(64), primary_key=True),
    Column("model", Text, primary_key=True, info=NO_WORDS),
    Column("version", String(64), nullable=False),  # a hash of purpose, name and trust
    Column("vector", LargeBinary, nullable=False, info=NO_WORDS),
)
preferences = Table(
    "preferences",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("value", Words, nullable=False),
)
kept_facts = Table(  # that a person let an agent remember, by a plan
    "kept_facts",
    metadata,
    Column("fact_id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("fact", Words, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
conversation_agents = Table(  # temporary agents: gone with their conversation
    "conversation_agents",
    metadata,
    Column("lane", String(64), primary_key=True),
    Column("agent", String(64), primary_key=True),
    Column("profile", Words, nullable=False),
)
