"""Runs and their steps, command ids, spending, what was written and kept, marks."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_RunId = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("run", _Number, nullable=False),
        sa.Column("run_id", _RunId, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("lane", sa.String(64), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("finished", sa.String(32), nullable=False, server_default=""),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("command_id", sa.Text, nullable=False, server_default=""),
        sa.Column("artifact", sa.Text, nullable=False, server_default=""),
        sa.Column("error", sa.String(64), nullable=False, server_default=""),
        sa.Column("calls", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tokens_in", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("tokens_out", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("tokens_cached", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("unknown_calls", sa.Integer, nullable=False, server_default="0"),
        sa.Column("cost_usd", sa.Float),
        sa.Column("model", sa.Text, nullable=False, server_default=""),
        sa.Column("took_ms", sa.BigInteger),
        sa.Column("text_bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("pruned", sa.Text, nullable=False, server_default=""),
        sa.Column("ended_ns", sa.BigInteger),
        sa.Column("open", sa.Integer, nullable=False, server_default="1"),
        sa.Column("place", sa.BigInteger, nullable=False),
        sa.Column("header", sa.Text),
        sa.Column("receipt", sa.Text),
        sa.PrimaryKeyConstraint("run", name="pk_runs"),
        sa.UniqueConstraint("run_id", name="uq_runs_run_id"),
    )
    is_open, is_kept = sa.text("open = 1"), sa.text("pruned = ''")
    op.create_index("ix_runs_open", "runs", ["place"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_index("ix_runs_ended_ns", "runs", ["ended_ns", "text_bytes"])
    op.create_index("ix_runs_kept", "runs", ["ended_ns", "text_bytes"], sqlite_where=is_kept, postgresql_where=is_kept)
    op.create_index("ix_runs_created", "runs", ["created"])
    op.create_table(
        "steps",
        sa.Column("run", _Number, autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("request", sa.Text, nullable=False, server_default=""),
        sa.Column("at_ms", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("out", sa.Text, nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("run", "seq", name="pk_steps"),
    )
    op.create_table(
        "ids",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("command_hash", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ids"),
    )
    op.create_table(
        "spending",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("call", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("closing", sa.Integer, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Float),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "call", name="pk_spending"),
    )
    op.create_index("ix_spending_day", "spending", ["day"])
    op.create_table(
        "written",
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("sha256s", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("path", name="pk_written"),
    )
    op.create_table(
        "kept",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_kept"),
    )
    op.create_table(
        "marks",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_marks"),
    )
