"""What has been asked of a run, found by the run

Revision: 0020, after 0019. An index on commands; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
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
