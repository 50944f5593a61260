"""What has been asked of a run, found by the run

Revision: 0018, after 0017. An index on commands; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

NAMED = sa.text("instance_id IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        "ix_command_of_instance",
        "command",
        ["instance_id", "id"],
        sqlite_where=NAMED,
        postgresql_where=NAMED,
    )


def downgrade() -> None:
    op.drop_index("ix_command_of_instance", table_name="command")
