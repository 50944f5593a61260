"""Labels of runs, lists by more filters, takeovers

Revision: 0014, after 0013. Changes of owners are kept. Runs have labels; lists by schedule, backfill and parent are walks along
an index, and those of a workflow come by logical time as well.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
WIDER = {
    "parent_task_id": (["parent_task_id"], ["parent_task_id", "created_at", "id"]),
    "backfill_id": (["backfill_id"], ["backfill_id", "created_at", "id"]),
    "workflow_id_logical_time": (
        ["workflow_id", "logical_time"],
        ["workflow_id", "logical_time", "id"],
    ),
}


def upgrade() -> None:
    op.add_column("command", sa.Column("labels", sa.Text()))
    op.create_table(
        "instance_label",
        sa.Column("workflow_instance_id", ID, nullable=False, autoincrement=False),
        sa.Column("key", sa.String(63), nullable=False),
        sa.Column("value", sa.String(63), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("workflow_instance_id", "key", name="pk_instance_label"),
        sa.ForeignKeyConstraint(
            ["workflow_instance_id"],
            ["workflow_instance.id"],
            name="fk_instance_label_workflow_instance_id_workflow_instance",
        ),
    )
    op.create_index(
        "ix_instance_label_listed",
        "instance_label",
        ["project_id", "key", "value", "created_at", "workflow_instance_id"],
    )
    op.create_table(
        "takeover",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("previous_owner", sa.String(255)),
        sa.PrimaryKeyConstraint("id", name="pk_takeover"),
        sqlite_autoincrement=True,
    )
    for name, (_, wide) in WIDER.items():
        _replace(name, wide)
    _create("schedule_id", ["schedule_id", "created_at", "id"])


def downgrade() -> None:
    op.drop_index("ix_workflow_instance_schedule_id", table_name="workflow_instance")
    for name, (narrow, _) in WIDER.items():
        _replace(name, narrow)
    op.drop_table("takeover")
    op.drop_table("instance_label")
    op.drop_column("command", "labels")


def _replace(name: str, columns: list[str]) -> None:
    op.drop_index(f"ix_workflow_instance_{name}", table_name="workflow_instance")
    _create(name, columns)


def _create(name: str, columns: list[str]) -> None:
    where = None if name.startswith("workflow_id") else sa.text(f"{columns[0]} IS NOT NULL")
    op.create_index(
        f"ix_workflow_instance_{name}",
        "workflow_instance",
        columns,
        sqlite_where=where,
        postgresql_where=where,
    )
