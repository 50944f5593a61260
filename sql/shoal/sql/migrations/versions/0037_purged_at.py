"""When each partition was purged last

Revision: 0037, after 0036. A column is added to the partitions; the next purges fill it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column("partition", sa.Column("purged_at", INSTANT))


def downgrade() -> None:
    op.drop_column("partition", "purged_at")
