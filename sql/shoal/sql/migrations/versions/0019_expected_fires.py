"""Since when schedules have had to fire

Revision: 0019, after 0018. What happened before is not known of those that are there: of them
nothing is expected before the migration.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column("schedule", sa.Column("expected_since", INSTANT))
    now = datetime.now(UTC)
    value = now if op.get_bind().dialect.name == "postgresql" else int(now.timestamp() * 1_000_000)
    schedule = sa.table("schedule", sa.column("expected_since", INSTANT))
    op.execute(schedule.update().values(expected_since=value))


def downgrade() -> None:
    op.drop_column("schedule", "expected_since")
