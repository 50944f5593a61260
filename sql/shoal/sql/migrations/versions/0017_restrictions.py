"""Worker groups and environments are restricted to projects

Revision: 0017, after 0016. Nothing is restricted by it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "restriction",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("projects", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_restriction"),
    )


def downgrade() -> None:
    op.drop_table("restriction")
