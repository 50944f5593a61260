"""One quarantine for all consumers

Revision: 0028, after 0027. The table ``quarantine`` names the consumer, and its items need no
partition. Rows of masters are copied; an owner finds the others out anew.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.drop_index("ix_quarantine_partition", "quarantine")
    op.rename_table("quarantine", "quarantine_0006")
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE quarantine_0006 DROP CONSTRAINT pk_quarantine")
    op.create_table(
        "quarantine",
        sa.Column("consumer", sa.String(20), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("item", sa.String(255), nullable=False),
        sa.Column("partition", sa.Integer()),
        sa.Column("project", sa.String(100)),
        sa.Column("workflow", sa.String(100)),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.Column("last_at", INSTANT),
        sa.Column("is_skipped", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("consumer", "kind", "item", name="pk_quarantine"),
    )
    op.create_index("ix_quarantine_partition", "quarantine", ["partition"])
    op.execute(
        "INSERT INTO quarantine (consumer, kind, item, partition, reason, tries, since)"
        " SELECT 'masters', kind, item, partition, reason, tries, since FROM quarantine_0006"
    )
    op.drop_table("quarantine_0006")


def downgrade() -> None:
    op.drop_index("ix_quarantine_partition", "quarantine")
    op.rename_table("quarantine", "quarantine_0028")
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE quarantine_0028 DROP CONSTRAINT pk_quarantine")
    op.create_table(
        "quarantine",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("item", sa.String(255), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "item", name="pk_quarantine"),
    )
    op.create_index("ix_quarantine_partition", "quarantine", ["partition"])
    op.execute(
        "INSERT INTO quarantine (kind, item, partition, reason, tries, since)"
        " SELECT kind, item, partition, reason, tries, since FROM quarantine_0028"
        " WHERE consumer = 'masters' AND partition IS NOT NULL"
    )
    op.drop_table("quarantine_0028")
