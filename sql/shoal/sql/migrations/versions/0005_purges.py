"""Retention: requests for purges, and what a pending command is about

Revision: 0005, after 0004. Everything is added.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
COUNTS = ("instances", "attempts", "events", "commands", "backfills")
PENDING_REQUEST = sa.text("state IN ('PENDING') AND instance_id IS NOT NULL")
OPEN = sa.text("finished_at IS NULL")


def upgrade() -> None:
    op.create_index(
        "ix_command_pending_of_instance",
        "command",
        ["instance_id"],
        sqlite_where=PENDING_REQUEST,
        postgresql_where=PENDING_REQUEST,
    )
    op.create_table(
        "purge",
        sa.Column("id", ID, nullable=False),
        sa.Column("is_rehearsal", sa.Boolean(), nullable=False),
        sa.Column("before", INSTANT),
        sa.Column("project", sa.String(100)),
        sa.Column("workflow_id", sa.BigInteger()),
        sa.Column("requested_by", sa.String(255), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_purge"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "purge_part",
        sa.Column("purge_id", ID, nullable=False, autoincrement=False),
        sa.Column("partition", sa.Integer(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        sa.Column("oldest", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.PrimaryKeyConstraint("purge_id", "partition", name="pk_purge_part"),
        sa.ForeignKeyConstraint(["purge_id"], ["purge.id"], name="fk_purge_part_purge_id_purge"),
    )
    op.create_index(
        "ix_purge_part_open",
        "purge_part",
        ["partition", "purge_id"],
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )


def downgrade() -> None:
    op.drop_table("purge_part")
    op.drop_table("purge")
    op.drop_index("ix_command_pending_of_instance", table_name="command")
