"""Tasks that look again and again

Revision: 0010, after 0009. Two columns are added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    instant = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
    looks = sa.Column("looks", sa.Integer(), nullable=False, server_default=sa.text("0"))
    op.add_column("task_instance", looks)
    op.add_column("task_instance", sa.Column("waiting_since", instant))


def downgrade() -> None:
    op.drop_column("task_instance", "waiting_since")
    op.drop_column("task_instance", "looks")
