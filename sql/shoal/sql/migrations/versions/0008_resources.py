"""Resources of projects

Revision: 0008, after 0007. A table is added, and an index on commands; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
RESTARTS = sa.text("type IN ('RECOVER', 'RERUN_TASKS', 'RESUME')")
CURRENT = sa.text("version IS NOT NULL AND ended_at IS NULL")
UPLOAD = sa.text("version IS NULL")
ENDED = sa.text("ended_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "resource",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("path", sa.String(500), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("version", sa.Integer()),
        sa.Column("sha256", sa.String(64)),
        sa.Column("size", sa.BigInteger()),
        sa.Column("created_at", INSTANT),
        sa.Column("ended_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_resource"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_resource_project_id_project"
        ),
        sa.UniqueConstraint(
            "project_id", "path", "version", name="uq_resource_project_id_path_version"
        ),
        sqlite_autoincrement=True,
    )
    _index("ix_resource_current", "resource", ["project_id", "path"], CURRENT, unique=True)
    _index("ix_resource_uploads", "resource", ["started_at"], UPLOAD)
    _index("ix_resource_ended_at", "resource", ["ended_at"], ENDED)
    _index("ix_command_restarts", "command", ["instance_id"], RESTARTS)


def _index(
    name: str, table: str, columns: list[str], where: sa.TextClause, unique: bool = False
) -> None:
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    op.drop_index("ix_command_restarts", table_name="command")
    op.drop_table("resource")
