"""The tables of the world. `state`, `receipt`, `action`, `payload` and `report` are JSON; times are RFC 3339, UTC."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint

from council.storage.tables import NO_WORDS, Words, metadata

world = Table(  # one row: the world as it is now
    "world",
    metadata,
    Column("world_id", String(64), primary_key=True),
    Column("seed", BigInteger, nullable=False),
    Column("pace_s", Integer, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("deadline_ms", BigInteger, nullable=False),
    Column("round_id", Integer, nullable=False),  # the one that is settled
    Column("state", Text, nullable=False, info=NO_WORDS),
    Column("next_agent_id", Integer, nullable=False),
    Column("next_event_id", Integer, nullable=False),
)
world_rounds = Table(
    "world_rounds",
    metadata,
    Column("round_id", Integer, primary_key=True, autoincrement=False),
    Column("rollback_to", Integer),
    Column("receipt", Text, nullable=False, info=NO_WORDS),
    Column("state", Text, nullable=False, info=NO_WORDS),  # after it; empty between the rounds that are kept whole
)
world_actions = Table(  # the log: what was asked in each round, in the order in which it was asked
    "world_actions",
    metadata,
    Column("round_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", Words, nullable=False),
)
world_players = Table(
    "world_players",
    metadata,
    Column("agent_id", Integer, primary_key=True, autoincrement=False),
    Column("name", Words, nullable=False),
    Column("description", Words, nullable=False),
    Column("member_id", Integer, nullable=False),
    Column("registered_at", String(32), nullable=False),
    Column("banned", Integer, nullable=False, server_default="0"),
    Index("ix_world_players_member_id", "member_id"),
)
world_submissions = Table(
    "world_submissions",
    metadata,
    Column("submission_id", String(64), primary_key=True),
    Column("round_id", Integer, nullable=False),
    Column("agent_id", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("idempotency_key", Words, nullable=False),  # its digest; of an older version, the key itself
    Column("body_sha256", String(64), nullable=False),
    Column("code", Words, nullable=False),  # emptied when its round is settled
    Column("error", Words, nullable=False, server_default=""),
    UniqueConstraint("agent_id", "round_id", "kind", "idempotency_key"),
    Index("ix_world_submissions_round_id", "round_id"),
)
world_letters = Table(
    "world_letters",
    metadata,
    Column("round_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("from_id", Integer, nullable=False),
    Column("to_id", Integer, nullable=False),
    Column("text", Words, nullable=False),
    Index("ix_world_letters_to_id", "to_id", "round_id"),
)
world_events = Table(
    "world_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=False),
    Column("event_type", String(32), nullable=False),
    Column("round_id", Integer, nullable=False),
    Column("timestamp", String(32), nullable=False),
    Column("payload", Text, nullable=False, info=NO_WORDS),
)
world_mechanisms = Table(  # proposals of players; the state holds those that are voted on
    "world_mechanisms",
    metadata,
    Column("mechanism_id", String(64), primary_key=True),  # its submission
    Column("agent_id", Integer, nullable=False),
    Column("round_id", Integer, nullable=False),
    Column("description", Words, nullable=False),
    Column("status", String(16), nullable=False),
    Column("rules", Text, nullable=False, info=NO_WORDS),
    Column("report", Text, nullable=False, info=NO_WORDS),
)
