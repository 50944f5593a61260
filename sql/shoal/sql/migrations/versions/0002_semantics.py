"""What runs are about, how they overlap, what tasks give on; backfills, calendars, secrets

Revision: 0002, after 0001. Everything is added: rows written before keep their meaning.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
NAME = sa.String(100)
STATE = sa.String(20)
SHORT = sa.String(10)

def _added() -> dict[str, list[sa.Column[Any]]]:
    """Return the new columns of tables that were there; a column object serves once."""
    return {
        "project": [sa.Column("parameters", sa.Text(), nullable=False, server_default="{}")],
        "command": [
            sa.Column("selection", sa.Text()),
            sa.Column("task", NAME),
            sa.Column("parent", sa.Text()),
            sa.Column("backfill_id", sa.BigInteger()),
            sa.Column("detail", sa.Text()),
        ],
        "workflow_instance": [
            sa.Column("startup", sa.Text()),
            sa.Column("selection", sa.Text()),
            sa.Column("parent", sa.Text()),
            sa.Column("parent_task_id", sa.BigInteger()),
            sa.Column("backfill_id", sa.BigInteger()),
            sa.Column("admitted_at", INSTANT),
            sa.Column("warned_at", INSTANT),
            sa.Column("succeeded_at", INSTANT),
        ],
        "task_instance": [
            sa.Column("skip_cause", STATE),
            sa.Column("forced", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("doomed", STATE),
            sa.Column("warned_at", INSTANT),
            sa.Column("outputs", sa.Text()),
            sa.Column("detail", sa.Text()),
            sa.Column("concurrency_group", sa.String(201)),
            sa.Column("workflow_priority", sa.Integer()),
            sa.Column("task_priority", sa.Integer()),
        ],
        "schedule": [
            sa.Column("priority", sa.Integer()),
            sa.Column("on_gap", SHORT),
            sa.Column("on_overlap", SHORT),
            sa.Column("starts_at", INSTANT),
            sa.Column("ends_at", INSTANT),
            sa.Column("exclude", sa.Text()),
            sa.Column("calendar", NAME),
            sa.Column("missed", SHORT, nullable=False, server_default="last"),
            sa.Column("missed_window", sa.Float()),
        ],
    }


def upgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)
    # Nothing waited for other runs before.
    op.execute("UPDATE workflow_instance SET admitted_at = created_at")
    _index_commands()
    _index_instances()
    _create_shared()
    _create_backfills()


def _index_commands() -> None:
    requests = sa.text(
        "state IN ('PENDING') AND ((type NOT IN ('RERUN', 'START')) OR parent IS NOT NULL)"
    )
    op.create_index(
        "ix_command_pending_requests", "command", ["id", "partition"],
        sqlite_where=requests, postgresql_where=requests,
    )


def _index_instances() -> None:
    waiting = sa.text("state = 'QUEUED' AND admitted_at IS NULL")
    op.create_index(
        "ix_workflow_instance_waiting", "workflow_instance", ["workflow_id", "id"],
        sqlite_where=waiting, postgresql_where=waiting,
    )
    unfinished = sa.text("(state NOT IN ('FAILED', 'STOPPED', 'SUCCEEDED'))")
    op.create_index(
        "ix_workflow_instance_unfinished", "workflow_instance", ["workflow_id", "id"],
        sqlite_where=unfinished, postgresql_where=unfinished,
    )
    for column in ("parent_task_id", "backfill_id"):
        there = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"ix_workflow_instance_{column}", "workflow_instance", [column],
            sqlite_where=there, postgresql_where=there,
        )
    op.create_index(
        "ix_workflow_instance_workflow_id_logical_time", "workflow_instance", ["workflow_id", "logical_time"]
    )
    blocked = sa.text("state IN ('BLOCKED')")
    op.create_index(
        "ix_task_instance_blocked", "task_instance",
        ["concurrency_group", "workflow_priority", "workflow_instance_id", "task_priority", "id"],
        sqlite_where=blocked, postgresql_where=blocked,
    )


def _create_shared() -> None:
    def named(table: str, *columns: sa.Column[Any]) -> None:
        op.create_table(
            table,
            sa.Column("id", ID, nullable=False),
            sa.Column("project_id", ID, nullable=False),
            sa.Column("name", NAME, nullable=False),
            *columns,
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
            sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=f"fk_{table}_project_id_project"),
            sa.UniqueConstraint("project_id", "name", name=f"uq_{table}_project_id_name"),
            sqlite_autoincrement=True,
        )

    named(
        "secret",
        sa.Column("ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    named(
        "calendar",
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("days", sa.Text(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    named(
        "concurrency_group",
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    op.create_table(
        "concurrency_lease",
        sa.Column("task_instance_id", ID, nullable=False, autoincrement=False),
        sa.Column("group_id", ID, nullable=False),
        sa.Column("granted_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("task_instance_id", name="pk_concurrency_lease"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["concurrency_group.id"], name="fk_concurrency_lease_group_id_concurrency_group"
        ),
    )
    op.create_index("ix_concurrency_lease_group_id", "concurrency_lease", ["group_id"])
    op.create_table(
        "dependency_wait",
        sa.Column("task_instance_id", ID, nullable=False, autoincrement=False),
        sa.Column("workflow_id", ID, nullable=False, autoincrement=False),
        sa.Column("workflow_instance_id", sa.BigInteger(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("task_instance_id", "workflow_id", name="pk_dependency_wait"),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_dependency_wait_workflow_id_workflow"
        ),
    )
    op.create_index(
        "ix_dependency_wait_workflow_id_partition", "dependency_wait", ["workflow_id", "partition"]
    )


def _create_backfills() -> None:
    op.create_table(
        "backfill",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("command_id", ID, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.String(255), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_backfill"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_backfill_workflow_id_workflow"),
        sa.ForeignKeyConstraint(["command_id"], ["command.id"], name="fk_backfill_command_id_command"),
        sa.UniqueConstraint("command_id", name="uq_backfill_command_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_backfill_workflow_id", "backfill", ["workflow_id"])
    active = sa.text("finished_at IS NULL")
    op.create_index(
        "ix_backfill_active", "backfill", ["partition", "id"], sqlite_where=active, postgresql_where=active
    )
    op.create_table(
        "backfill_run",
        sa.Column("backfill_id", ID, nullable=False, autoincrement=False),
        sa.Column("position", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("logical_time", INSTANT, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("command_id", sa.BigInteger()),
        sa.Column("instance_id", sa.BigInteger()),
        sa.Column("reason", sa.Text()),
        sa.PrimaryKeyConstraint("backfill_id", "position", name="pk_backfill_run"),
        sa.ForeignKeyConstraint(["backfill_id"], ["backfill.id"], name="fk_backfill_run_backfill_id_backfill"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_backfill_run_workflow_id_workflow"),
        sa.UniqueConstraint(
            "backfill_id", "workflow_id", "logical_time",
            name="uq_backfill_run_backfill_id_workflow_id_logical_time",
        ),
    )


def downgrade() -> None:
    for table in (
        "backfill_run", "backfill", "dependency_wait", "concurrency_lease",
        "concurrency_group", "calendar", "secret",
    ):
        op.drop_table(table)
    op.drop_index("ix_command_pending_requests", table_name="command")
    for index in ("unfinished", "waiting", "parent_task_id", "backfill_id", "workflow_id_logical_time"):
        op.drop_index(f"ix_workflow_instance_{index}", table_name="workflow_instance")
    for table, columns in _added().items():
        for column in columns:
            op.drop_column(table, column.name)
