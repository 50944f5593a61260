"""First schema

Revision: 0001, after nothing. Types are written out here, not imported: a revision must not
change when the code does.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
NAME = sa.String(100)
STATE = sa.String(20)
KEY = sa.String(255)


def upgrade() -> None:
    op.create_table(
        "project",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.UniqueConstraint("name", name="uq_project_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workflow",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("deleted_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_workflow"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_workflow_project_id_project"),
        sa.UniqueConstraint("project_id", "name", name="uq_workflow_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workflow_version",
        sa.Column("workflow_id", ID, nullable=False, autoincrement=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "version", name="pk_workflow_version"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_workflow_version_workflow_id_workflow"),
    )
    op.create_table(
        "command",
        sa.Column("id", ID, nullable=False),
        sa.Column("type", STATE, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", KEY, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("instance_id", sa.BigInteger()),
        sa.Column("version", sa.Integer()),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("logical_time", INSTANT),
        sa.Column("timezone", NAME),
        sa.Column("priority", sa.Integer()),
        sa.Column("schedule_id", sa.BigInteger()),
        sa.Column("requested_by", KEY, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("result_instance_id", sa.BigInteger()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("handled_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_command"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_command_workflow_id_workflow"),
        sa.UniqueConstraint("idempotency_key", name="uq_command_idempotency_key"),
        sqlite_autoincrement=True,
    )
    pending = sa.text("state IN ('PENDING')")
    op.create_index("ix_command_pending", "command", ["id", "partition"], sqlite_where=pending, postgresql_where=pending)
    op.create_table(
        "workflow_instance",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("logical_time", INSTANT, nullable=False),
        sa.Column("timezone", NAME, nullable=False),
        sa.Column("command_id", ID, nullable=False),
        sa.Column("rerun_of", sa.BigInteger()),
        sa.Column("run_number", sa.Integer(), nullable=False),
        sa.Column("schedule_id", sa.BigInteger()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_instance"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_workflow_instance_project_id_project"),
        sa.ForeignKeyConstraint(
            ["workflow_id", "version"],
            ["workflow_version.workflow_id", "workflow_version.version"],
            name="fk_workflow_instance_workflow_id_version_workflow_version",
        ),
        sa.ForeignKeyConstraint(["command_id"], ["command.id"], name="fk_workflow_instance_command_id_command"),
        sa.UniqueConstraint("command_id", name="uq_workflow_instance_command_id"),
        sqlite_autoincrement=True,
    )
    open_states = sa.text("state IN ('PAUSING', 'QUEUED', 'RUNNING', 'STOPPING')")
    op.create_index(
        "ix_workflow_instance_open", "workflow_instance", ["partition", "id"],
        sqlite_where=open_states, postgresql_where=open_states,
    )
    op.create_index("ix_workflow_instance_created_at", "workflow_instance", ["created_at"])
    op.create_index("ix_workflow_instance_workflow_id_id", "workflow_instance", ["workflow_id", "id"])
    op.create_index("ix_workflow_instance_project_id_id", "workflow_instance", ["project_id", "id"])
    op.create_index("ix_workflow_instance_state_id", "workflow_instance", ["state", "id"])
    op.create_table(
        "task_instance",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_instance_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("task", NAME, nullable=False),
        sa.Column("type", NAME, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("worker_group", NAME, nullable=False),
        sa.Column("worker", KEY),
        sa.Column("reason", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("due_at", INSTANT),
        sa.Column("queued_at", INSTANT),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_task_instance"),
        sa.ForeignKeyConstraint(
            ["workflow_instance_id"], ["workflow_instance.id"],
            name="fk_task_instance_workflow_instance_id_workflow_instance",
        ),
        sa.UniqueConstraint(
            "workflow_instance_id", "position", "attempt",
            name="uq_task_instance_workflow_instance_id_position_attempt",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_task_instance_state_id", "task_instance", ["state", "id"])
    op.create_index("ix_task_instance_worker_id", "task_instance", ["worker", "id"])
    op.create_table(
        "partition",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("owner", KEY),
        sa.PrimaryKeyConstraint("number", name="pk_partition"),
    )
    op.create_table(
        "schedule",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("cron", KEY, nullable=False),
        sa.Column("timezone", NAME, nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_fire_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_schedule"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_schedule_workflow_id_workflow"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedule_workflow_id", "schedule", ["workflow_id"])
    op.create_index("ix_schedule_next_fire_at_partition", "schedule", ["next_fire_at", "partition"])
    op.create_table(
        "event",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("project", NAME, nullable=False),
        sa.Column("workflow_instance_id", sa.BigInteger()),
        sa.Column("task_instance_id", sa.BigInteger()),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_at", "event", ["at"])
    op.create_index("ix_event_workflow_instance_id_id", "event", ["workflow_instance_id", "id"])


def downgrade() -> None:
    for table in (
        "event", "schedule", "partition", "task_instance", "workflow_instance",
        "command", "workflow_version", "workflow", "project",
    ):
        op.drop_table(table)
