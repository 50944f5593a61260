"""Owners of workflows, deadlines of runs

Revision: 0021, after 0020. What is stored has neither: an owner and a deadline come with the next
published version, and a deadline with the next run.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    owner = sa.Column("owner", sa.String(200), nullable=False, server_default=sa.text("''"))
    op.add_column("workflow", owner)
    op.add_column("workflow_instance", sa.Column("deadline_at", INSTANT))
    op.add_column("workflow_instance", sa.Column("late_at", INSTANT))


def downgrade() -> None:
    op.drop_column("workflow_instance", "late_at")
    op.drop_column("workflow_instance", "deadline_at")
    op.drop_column("workflow", "owner")
