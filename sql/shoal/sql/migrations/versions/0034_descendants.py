"""Which run a sub-workflow's run descends from

Revision: 0034, after 0031. A column and a partial index are added to ``workflow_instance``. Runs
that exist have no root, and are not counted as descendants.
"""

import sqlalchemy as sa
from alembic import op

from shoal.sql.schema.migrate import may_create_index

revision = "0034"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workflow_instance", sa.Column("root_id", sa.BigInteger()))
    if may_create_index(op.get_bind(), "workflow_instance"):
        op.create_index(
            "ix_workflow_instance_root_id",
            "workflow_instance",
            ["root_id"],
            sqlite_where=sa.text("root_id IS NOT NULL"),
            postgresql_where=sa.text("root_id IS NOT NULL"),
        )


def downgrade() -> None:
    op.drop_index("ix_workflow_instance_root_id", "workflow_instance", if_exists=True)
    op.drop_column("workflow_instance", "root_id")
