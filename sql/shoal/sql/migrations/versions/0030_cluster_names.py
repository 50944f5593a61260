"""What the cluster was called before, and from which ids on it has its present name

Revision: 0030, after 0029. A table is added, with the present name as its first row.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cluster_name",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("after_attempt", sa.BigInteger(), nullable=False),
        sa.Column("after_resource", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_cluster_name"),
    )
    op.execute(
        "INSERT INTO cluster_name (number, uid, after_attempt, after_resource) "
        "SELECT 1, uid, 0, 0 FROM cluster WHERE number = 1"
    )


def downgrade() -> None:
    op.drop_table("cluster_name")
