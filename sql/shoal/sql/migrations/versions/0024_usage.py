"""What an attempt has used, and its error line

Revision: 0024, after 0023. Columns of attempts and an index are added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

HAS_ONE = sa.text("fingerprint IS NOT NULL")


def upgrade() -> None:
    op.add_column("task_instance", sa.Column("cpu_s", sa.Float()))
    op.add_column("task_instance", sa.Column("max_rss_kb", sa.BigInteger()))
    op.add_column("task_instance", sa.Column("error_line", sa.Text()))
    op.add_column("task_instance", sa.Column("fingerprint", sa.String(16)))
    op.create_index(
        "ix_task_instance_fingerprint",
        "task_instance",
        ["fingerprint", "id"],
        sqlite_where=HAS_ONE,
        postgresql_where=HAS_ONE,
    )


def downgrade() -> None:
    op.drop_index("ix_task_instance_fingerprint", table_name="task_instance")
    for name in ("fingerprint", "error_line", "max_rss_kb", "cpu_s"):
        op.drop_column("task_instance", name)
