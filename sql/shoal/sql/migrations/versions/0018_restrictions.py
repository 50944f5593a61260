"""Worker groups and environments are restricted to projects, files are shared with others

Revision: 0018, after 0017. Nothing is restricted or shared by it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "restriction",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("projects", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_restriction"),
    )
    op.create_table(
        "resource_grant",
        sa.Column("project_id", ID, nullable=False, autoincrement=False),
        sa.Column("taker", sa.String(100), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "taker", name="pk_resource_grant"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_resource_grant_project_id_project"
        ),
    )


def downgrade() -> None:
    op.drop_table("resource_grant")
    op.drop_table("restriction")
