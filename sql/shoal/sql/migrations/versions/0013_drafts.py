"""Drafts, labels, archived workflows and paused schedules

Revision: 0013, after 0012. A table and columns are added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    labels = sa.Column("labels", sa.Text(), nullable=False, server_default=sa.text("'{}'"))
    op.add_column("workflow", labels)
    op.add_column("workflow", sa.Column("archived_at", INSTANT))
    op.add_column("schedule", sa.Column("paused_at", INSTANT))
    op.add_column("workflow_version", sa.Column("source", sa.Text()))
    op.add_column("workflow_version", sa.Column("published_by", sa.String(201)))
    op.create_table(
        "draft",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("editor", sa.String(201), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("base_version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_draft"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_draft_project_id_project"),
        sa.UniqueConstraint("project_id", "name", "editor", name="uq_draft_project_id_name_editor"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("draft")
    op.drop_column("workflow_version", "published_by")
    op.drop_column("workflow_version", "source")
    op.drop_column("schedule", "paused_at")
    op.drop_column("workflow", "archived_at")
    op.drop_column("workflow", "labels")
