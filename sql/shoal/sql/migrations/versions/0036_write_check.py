"""Rows that are written to see whether the database stores anything

Revision: 0036, after 0034. A table is added, without rows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "write_check",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("writes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_write_check"),
    )


def downgrade() -> None:
    op.drop_table("write_check")
