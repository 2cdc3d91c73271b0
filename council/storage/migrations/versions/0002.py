"""Users and their roles."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_users"),
    )
    op.create_table(
        "roles",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("role", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "role", name="pk_roles"),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_roles_user_id", ondelete="CASCADE"),
    )
