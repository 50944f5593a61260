"""What a master cannot work with and has set aside

Revision: 0006, after 0005. A table is added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quarantine",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("item", sa.String(255), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column(
            "since",
            sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("kind", "item", name="pk_quarantine"),
    )
    op.create_index("ix_quarantine_partition", "quarantine", ["partition"])


def downgrade() -> None:
    op.drop_table("quarantine")
