"""Files that attempts hand over

Revision: 0012, after 0011. Resources know the run that has made them, and no two share an object.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

OF_RUN = sa.text("instance_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("resource", sa.Column("instance_id", sa.BigInteger()))
    op.create_index("ix_resource_object", "resource", ["object"], unique=True)
    op.create_index(
        "ix_resource_instance_id",
        "resource",
        ["instance_id"],
        sqlite_where=OF_RUN,
        postgresql_where=OF_RUN,
    )


def downgrade() -> None:
    op.drop_index("ix_resource_instance_id", table_name="resource")
    op.drop_index("ix_resource_object", table_name="resource")
    op.drop_column("resource", "instance_id")
