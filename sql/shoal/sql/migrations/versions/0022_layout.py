"""Layouts of workflows

Revision: 0022, after 0021. A table is added; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "workflow_layout",
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("updated_by", sa.String(201), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", name="pk_workflow_layout"),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_layout_workflow_id_workflow"
        ),
    )


def downgrade() -> None:
    op.drop_table("workflow_layout")
