"""The audit: its records, and the head of their chain."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_chain",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("chain", sa.String(32), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("mac", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_chain"),
        sa.CheckConstraint("id = 1", name="ck_audit_chain_only_one"),
    )
    op.create_table(
        "audit_records",
        sa.Column("seq", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("actor", sa.String(255), nullable=False),
        sa.Column("run_id", sa.String(64)),
        sa.Column("step", sa.String(200)),
        sa.Column("detail", sa.Text),
        sa.Column("salt", sa.String(32)),
        sa.Column("detail_sha256", sa.String(64), nullable=False),
        sa.Column("kid", sa.String(16), nullable=False),
        sa.Column("mac", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit_records"),
        sa.UniqueConstraint("run_id", "step", name="uq_audit_records_run_id_step"),
    )
