"""Requests to try quarantined items again

Revision: 0031, after 0030. A column is added to ``quarantine``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column("quarantine", sa.Column("retry_at", INSTANT))


def downgrade() -> None:
    op.drop_column("quarantine", "retry_at")
