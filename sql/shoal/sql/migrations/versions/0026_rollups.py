"""Roll-ups of run history

Revision: 0026, after 0025. Three tables are added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "rollup_day",
        sa.Column("job", sa.String(50), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("job", "day", name="pk_rollup_day"),
    )
    op.create_table(
        "rollup_batch",
        sa.Column("id", ID, nullable=False),
        sa.Column("job", sa.String(50), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("touched_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_rollup_batch"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rollup",
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("workflow", sa.String(100), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("batch", "project", "workflow", "place", name="pk_rollup"),
    )


def downgrade() -> None:
    op.drop_table("rollup")
    op.drop_table("rollup_batch")
    op.drop_table("rollup_day")
