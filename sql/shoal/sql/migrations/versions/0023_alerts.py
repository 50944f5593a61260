"""Alerts

Revision: 0023, after 0022. Tables are added; nothing else changes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")
IS_OPEN = sa.text("state = 'OPEN'")
IS_UNSENT = sa.text("state IN ('PENDING', 'SENDING')")


def _project(table: str) -> list[Any]:
    return [
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=f"fk_{table}_project_id_project"
        ),
    ]


def upgrade() -> None:
    op.create_table(
        "alert_definition",
        *_project("alert_definition"),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.UniqueConstraint(
            "project_id", "kind", "name", name="uq_alert_definition_project_id_kind_name"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alert_silence",
        *_project("alert_silence"),
        sa.Column("workflow", sa.String(200), nullable=False),
        sa.Column("task", sa.String(200), nullable=False),
        sa.Column("rule", sa.String(200), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.Column("until", INSTANT, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(201), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_silence_project_id_until", "alert_silence", ["project_id", "until"])
    op.create_table(
        "alert",
        *_project("alert"),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("trigger", sa.String(40), nullable=False),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("subject", sa.String(400), nullable=False),
        sa.Column("workflow", sa.String(100), nullable=False),
        sa.Column("instance_id", ID),
        sa.Column("logical_time", INSTANT),
        sa.Column("task", sa.String(100)),
        sa.Column("task_instance_id", ID),
        sa.Column("event_id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("resolved_at", INSTANT),
        sa.Column("acknowledged_at", INSTANT),
        sa.Column("acknowledged_by", sa.String(201)),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("next_at", INSTANT),
        sa.Column("told_at", INSTANT),
        sa.Column("silenced_by", ID),
        sa.UniqueConstraint(
            "event_id", "project_id", "rule", name="uq_alert_event_id_project_id_rule"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_project_id_id", "alert", ["project_id", "id"])
    op.create_index("ix_alert_instance_id", "alert", ["instance_id"])
    op.create_index(
        "ix_alert_open",
        "alert",
        ["project_id", "subject"],
        sqlite_where=IS_OPEN,
        postgresql_where=IS_OPEN,
    )
    op.create_index(
        "ix_alert_next", "alert", ["next_at"], sqlite_where=IS_OPEN, postgresql_where=IS_OPEN
    )
    op.create_table(
        "alert_delivery",
        *_project("alert_delivery"),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("receiver", sa.String(100), nullable=False),
        sa.Column("channel", sa.String(100), nullable=False),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("share", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("sent_at", INSTANT),
        sa.Column("answer", sa.Text()),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_delivery_project_id_id", "alert_delivery", ["project_id", "id"])
    op.create_index(
        "ix_alert_delivery_unsent",
        "alert_delivery",
        ["share", "due_at"],
        sqlite_where=IS_UNSENT,
        postgresql_where=IS_UNSENT,
    )
    op.create_table(
        "alert_mention",
        sa.Column("alert_id", ID, nullable=False),
        sa.Column("delivery_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("alert_id", "delivery_id", name="pk_alert_mention"),
        sa.ForeignKeyConstraint(["alert_id"], ["alert.id"], name="fk_alert_mention_alert_id_alert"),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["alert_delivery.id"],
            name="fk_alert_mention_delivery_id_alert_delivery",
        ),
    )
    op.create_index("ix_alert_mention_delivery_id", "alert_mention", ["delivery_id"])
    op.create_table(
        "alert_try",
        sa.Column("delivery_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("took_s", sa.Float(), nullable=False),
        sa.Column("is_sent", sa.Boolean(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("delivery_id", "number", name="pk_alert_try"),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["alert_delivery.id"], name="fk_alert_try_delivery_id_alert_delivery"
        ),
    )
    op.create_table(
        "alert_job",
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("epoch", ID, nullable=False),
        sa.Column("position", ID),
        sa.PrimaryKeyConstraint("name", name="pk_alert_job"),
    )
    op.create_table(
        "alert_condition",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("subject", sa.String(400), nullable=False),
        sa.Column("trigger", sa.String(40), nullable=False),
        sa.Column("workflow", sa.String(100), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "rule", "subject", name="pk_alert_condition"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_alert_condition_project_id_project"
        ),
    )
    op.create_table(
        "alert_member",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("gone_at", INSTANT),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_alert_member"),
    )


def downgrade() -> None:
    for table in (
        "alert_member",
        "alert_condition",
        "alert_job",
        "alert_try",
        "alert_mention",
        "alert_delivery",
        "alert",
        "alert_silence",
        "alert_definition",
    ):
        op.drop_table(table)
