"""How far the history was exported

Revision: 0025, after 0024. A table is added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "history_export",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_history_export"),
    )


def downgrade() -> None:
    op.drop_table("history_export")
