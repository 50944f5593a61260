"""Data sources of projects, and what this cluster is called

Revision: 0007, after 0006. Two tables are added; nothing else changes.
"""

import uuid

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "data_source",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("port", sa.Integer()),
        sa.Column("database", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("shared_with", sa.Text(), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("password_secret", sa.String(100)),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_data_source"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_data_source_project_id_project"
        ),
        sa.UniqueConstraint("project_id", "name", name="uq_data_source_project_id_name"),
        sqlite_autoincrement=True,
    )
    cluster = op.create_table(
        "cluster",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_cluster"),
    )
    op.bulk_insert(cluster, [{"number": 1, "uid": str(uuid.uuid4())}])


def downgrade() -> None:
    op.drop_table("cluster")
    op.drop_table("data_source")
