"""The tables of runs: what they are, what was recorded of them, what they answer for, what they wrote.

Times ending in `_ms` and `_ns` are since the epoch. `header`, `receipt`, `out` and `sha256s` are JSON. `run` numbers runs in
the order in which they were admitted, and keeps `steps` small; everything else names a run by its `run_id`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, String, Table, Text, text

from council.storage.tables import NO_WORDS, SEALED, Words, metadata

runs = Table(
    "runs",
    metadata,
    Column("run", BigInteger, primary_key=True),
    Column("run_id", String(64, collation="C"), nullable=False, unique=True),  # found by its beginning: byte by byte
    Column("status", String(16), nullable=False),
    Column("type", String(64), nullable=False),
    Column("lane", String(64), nullable=False),
    Column("title", Words, nullable=False),
    Column("created", String(32), nullable=False),
    Column("finished", String(32), nullable=False, server_default=""),
    Column("file", Words, nullable=False),
    Column("command_id", Words, nullable=False, server_default=""),
    Column("artifact", Words, nullable=False, server_default=""),
    Column("error", String(64), nullable=False, server_default=""),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("tokens_in", BigInteger, nullable=False, server_default="0"),
    Column("tokens_out", BigInteger, nullable=False, server_default="0"),
    Column("tokens_cached", BigInteger, nullable=False, server_default="0"),
    Column("unknown_calls", Integer, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("model", Text, nullable=False, server_default="", info=NO_WORDS),
    Column("took_ms", BigInteger),
    Column("text_bytes", BigInteger, nullable=False, server_default="0"),
    Column("pruned", Text, nullable=False, server_default="", info=NO_WORDS),
    Column("ended_ns", BigInteger),  # null until its files are in place: then its receipt answers
    Column("open", Integer, nullable=False, server_default="1"),  # 0 when its command file is taken, too
    Column("place", BigInteger, nullable=False),  # in the order of admission
    Column("header", Words),
    Column("receipt", Words),
    Index("ix_runs_open", "place", postgresql_where=text("open = 1")),
    Index("ix_runs_ended_ns", "ended_ns", "text_bytes"),
    Index("ix_runs_kept", "ended_ns", "text_bytes", postgresql_where=text("pruned = ''")),
    Index("ix_runs_created", "created"),
    info={SEALED: True},
)

steps = Table(
    "steps",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("name", Words, nullable=False, server_default=""),
    Column("request", Text, nullable=False, server_default="", info=NO_WORDS),
    Column("at_ms", BigInteger, nullable=False, server_default="0"),
    Column("out", Words, nullable=False, server_default=""),
    info={SEALED: True},
)

ids = Table(  # which run answers for a command's id, by its SHA-256: a `shown` one may be forgotten. Outlives the run
    "ids",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("shown", Words, nullable=False),
    Column("command_hash", String(64), nullable=False),
    Column("run_id", String(64), nullable=False),
    info={SEALED: True},
)

written = Table(  # what we last wrote at a path, and while a write is under way what it replaces
    "written",
    metadata,
    Column("path", Words, primary_key=True),
    Column("run_id", String(64), nullable=False),
    Column("sha256s", Text, nullable=False, info=NO_WORDS),
    info={SEALED: True},
)

kept = Table(  # pages that another one displaced, and agents' last good memories
    "kept",
    metadata,
    Column("owner", Text, primary_key=True, info=NO_WORDS),
    Column("name", Words, primary_key=True),
    Column("data", Words(LargeBinary()), nullable=False),
    info={SEALED: True},
)
