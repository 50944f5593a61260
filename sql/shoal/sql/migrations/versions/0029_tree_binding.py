"""The database knows which ZooKeeper tree it is served from

Revision: 0029, after 0028. Columns are added to the cluster's row; the first role that starts fills
them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cluster", sa.Column("tree", sa.String(36)))
    op.add_column("cluster", sa.Column("tree_address", sa.Text()))
    op.add_column(
        "cluster", sa.Column("tree_beats", sa.BigInteger(), nullable=False, server_default="0")
    )


def downgrade() -> None:
    op.drop_column("cluster", "tree_beats")
    op.drop_column("cluster", "tree_address")
    op.drop_column("cluster", "tree")
