"""The purge waits for the export

Revision: 0027, after 0026. A table is added, and columns to the requests to purge.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "history_verified",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.BigInteger(), nullable=False),
        sa.Column("instances", sa.BigInteger(), nullable=False),
        sa.Column("instances_end", sa.BigInteger(), nullable=False),
        sa.Column("command", sa.BigInteger(), nullable=False),
        sa.Column("open_commands", sa.Text(), nullable=False),
        sa.Column("takeover", sa.BigInteger(), nullable=False),
        sa.Column("verified_at", INSTANT),
        sa.Column("checked", sa.String(255), nullable=False),
        sa.Column("trouble", sa.Text()),
        sa.Column("trouble_since", INSTANT),
        sa.PrimaryKeyConstraint("number", name="pk_history_verified"),
    )
    op.add_column(
        "purge",
        sa.Column("even_if_not_exported", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column(
        "purge_part", sa.Column("held", sa.BigInteger(), nullable=False, server_default="0")
    )


def downgrade() -> None:
    op.drop_column("purge_part", "held")
    op.drop_column("purge", "even_if_not_exported")
    op.drop_table("history_verified")
