"""The schema of version 0.2.0

Revision: 0027, the first. Types are written out here, not imported: a revision must not change when
the code does. Databases of revision 0027 that development versions made have the same schema.
"""

import uuid
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0027"
down_revision = None
branch_labels = None
depends_on = None

# SQLite gives out row ids only for a column of exactly this type.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")

# When an entry of the audit may be deleted. Nothing may be changed.
PRUNED = "(SELECT pruned FROM audit_state)"
MAY_GO = {
    "audit_entry": (
        "OLD.id IN (SELECT entry_id FROM audit_link"  # noqa: S608 - no user input
        f" WHERE entry_id = OLD.id AND position <= {PRUNED})"
    ),
    "audit_link": f"OLD.position <= {PRUNED}",
}


def _where(condition: str) -> dict[str, Any]:
    """Return the arguments of a partial index."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    access_state = op.create_table(
        "access_state",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_access_state"),
    )
    op.create_table(
        "alert_job",
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("epoch", ID, nullable=False),
        sa.Column("position", ID),
        sa.PrimaryKeyConstraint("name", name="pk_alert_job"),
    )
    op.create_table(
        "alert_member",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("gone_at", INSTANT),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_alert_member"),
    )
    op.create_table(
        "audit_entry",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("principal_id", sa.BigInteger()),
        sa.Column("principal", sa.String(201), nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("request_id", sa.String(200), nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entry"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_entry_at", "audit_entry", ["at"])
    op.create_index("ix_audit_entry_project", "audit_entry", ["project"])
    op.create_table(
        "audit_link",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entry_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_link"),
        sa.UniqueConstraint("entry_id", name="uq_audit_link_entry_id"),
    )
    audit_state = op.create_table(
        "audit_state",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("pruned", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_state"),
    )
    cluster = op.create_table(
        "cluster",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_cluster"),
    )
    op.create_table(
        "environment",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("variables", sa.Text(), nullable=False),
        sa.Column("python", sa.Text(), nullable=False),
        sa.Column("setup", sa.Text(), nullable=False),
        sa.Column("worker_groups", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
        sa.UniqueConstraint("name", name="uq_environment_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "event",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("workflow_instance_id", sa.BigInteger()),
        sa.Column("task_instance_id", sa.BigInteger()),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_at", "event", ["at"])
    op.create_index("ix_event_workflow_instance_id_id", "event", ["workflow_instance_id", "id"])
    op.create_table(
        "history_export",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_history_export"),
    )
    op.create_table(
        "history_verified",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.BigInteger(), nullable=False),
        sa.Column("instances", sa.BigInteger(), nullable=False),
        sa.Column("instances_end", sa.BigInteger(), nullable=False),
        sa.Column("command", sa.BigInteger(), nullable=False),
        sa.Column("open_commands", sa.Text(), nullable=False),
        sa.Column("takeover", sa.BigInteger(), nullable=False),
        sa.Column("verified_at", INSTANT),
        sa.Column("checked", sa.String(255), nullable=False),
        sa.Column("trouble", sa.Text()),
        sa.Column("trouble_since", INSTANT),
        sa.PrimaryKeyConstraint("number", name="pk_history_verified"),
    )
    op.create_table(
        "partition",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.PrimaryKeyConstraint("number", name="pk_partition"),
    )
    op.create_table(
        "principal_group",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_principal_group"),
        sa.UniqueConstraint("key", name="uq_principal_group_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "project",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), server_default="{}", nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.UniqueConstraint("name", name="uq_project_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "purge",
        sa.Column("id", ID, nullable=False),
        sa.Column("is_rehearsal", sa.Boolean(), nullable=False),
        sa.Column("before", INSTANT),
        sa.Column("project", sa.String(100)),
        sa.Column("workflow_id", sa.BigInteger()),
        sa.Column("requested_by", sa.String(255), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("even_if_not_exported", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_purge"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "quarantine",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("item", sa.String(255), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "item", name="pk_quarantine"),
    )
    op.create_index("ix_quarantine_partition", "quarantine", ["partition"])
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
        "rollup",
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("workflow", sa.String(100), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("batch", "project", "workflow", "place", name="pk_rollup"),
    )
    op.create_table(
        "rollup_batch",
        sa.Column("id", ID, nullable=False),
        sa.Column("job", sa.String(50), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("touched_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_rollup_batch"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rollup_day",
        sa.Column("job", sa.String(50), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("job", "day", name="pk_rollup_day"),
    )
    sealing = op.create_table(
        "sealing",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("primary_key", sa.String(20)),
        sa.Column("next_key", sa.String(20)),
        sa.Column("old", sa.Text(), nullable=False),
        sa.Column("retired", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_sealing"),
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
    op.create_table(
        "alert",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
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
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_alert_project_id_project"),
        sa.PrimaryKeyConstraint("id", name="pk_alert"),
        sa.UniqueConstraint(
            "event_id", "project_id", "rule", name="uq_alert_event_id_project_id_rule"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_instance_id", "alert", ["instance_id"])
    op.create_index("ix_alert_next", "alert", ["next_at"], **_where("state = 'OPEN'"))
    op.create_index("ix_alert_open", "alert", ["project_id", "subject"], **_where("state = 'OPEN'"))
    op.create_index("ix_alert_project_id_id", "alert", ["project_id", "id"])
    op.create_table(
        "alert_condition",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("rule", sa.String(100), nullable=False),
        sa.Column("subject", sa.String(400), nullable=False),
        sa.Column("trigger", sa.String(40), nullable=False),
        sa.Column("workflow", sa.String(100), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_alert_condition_project_id_project"
        ),
        sa.PrimaryKeyConstraint("project_id", "rule", "subject", name="pk_alert_condition"),
    )
    op.create_table(
        "alert_definition",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_alert_definition_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_definition"),
        sa.UniqueConstraint(
            "project_id", "kind", "name", name="uq_alert_definition_project_id_kind_name"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alert_delivery",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
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
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_alert_delivery_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_delivery"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_delivery_project_id_id", "alert_delivery", ["project_id", "id"])
    op.create_index(
        "ix_alert_delivery_unsent",
        "alert_delivery",
        ["share", "due_at"],
        **_where("state IN ('PENDING', 'SENDING')"),
    )
    op.create_table(
        "alert_silence",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("workflow", sa.String(200), nullable=False),
        sa.Column("task", sa.String(200), nullable=False),
        sa.Column("rule", sa.String(200), nullable=False),
        sa.Column("since", INSTANT, nullable=False),
        sa.Column("until", INSTANT, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(201), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_alert_silence_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_silence"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_silence_project_id_until", "alert_silence", ["project_id", "until"])
    op.create_table(
        "calendar",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("days", sa.Text(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_calendar_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_calendar"),
        sa.UniqueConstraint("project_id", "name", name="uq_calendar_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "concurrency_group",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_concurrency_group_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_concurrency_group"),
        sa.UniqueConstraint("project_id", "name", name="uq_concurrency_group_project_id_name"),
        sqlite_autoincrement=True,
    )
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
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_data_source_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_data_source"),
        sa.UniqueConstraint("project_id", "name", name="uq_data_source_project_id_name"),
        sqlite_autoincrement=True,
    )
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
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_draft_project_id_project"),
        sa.PrimaryKeyConstraint("id", name="pk_draft"),
        sa.UniqueConstraint("project_id", "name", "editor", name="uq_draft_project_id_name_editor"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "principal",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(201), nullable=False),
        sa.Column("key", sa.String(201), nullable=False),
        sa.Column("full_name", sa.String(200), nullable=False),
        sa.Column("project_id", ID),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("must_change_password", sa.Boolean(), nullable=False),
        sa.Column("issuer", sa.String(500)),
        sa.Column("subject", sa.String(255)),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("disabled_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_principal_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_principal"),
        sa.UniqueConstraint("issuer", "subject", name="uq_principal_issuer_subject"),
        sa.UniqueConstraint("key", name="uq_principal_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_principal_project_id", "principal", ["project_id"])
    op.create_table(
        "project_grant",
        sa.Column("project_id", ID, autoincrement=False, nullable=False),
        sa.Column("taker", sa.String(100), nullable=False),
        sa.Column("what", sa.String(20), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_grant_project_id_project"
        ),
        sa.PrimaryKeyConstraint("project_id", "taker", name="pk_project_grant"),
    )
    op.create_table(
        "purge_part",
        sa.Column("purge_id", ID, autoincrement=False, nullable=False),
        sa.Column("partition", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("instances", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("commands", sa.BigInteger(), nullable=False),
        sa.Column("backfills", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("oldest", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.ForeignKeyConstraint(["purge_id"], ["purge.id"], name="fk_purge_part_purge_id_purge"),
        sa.PrimaryKeyConstraint("purge_id", "partition", name="pk_purge_part"),
    )
    op.create_index(
        "ix_purge_part_open",
        "purge_part",
        ["partition", "purge_id"],
        **_where("finished_at IS NULL"),
    )
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
        sa.Column("instance_id", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_resource_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resource"),
        sa.UniqueConstraint(
            "project_id", "path", "version", name="uq_resource_project_id_path_version"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_resource_current",
        "resource",
        ["project_id", "path"],
        unique=True,
        **_where("version IS NOT NULL AND ended_at IS NULL"),
    )
    op.create_index(
        "ix_resource_ended_at", "resource", ["ended_at"], **_where("ended_at IS NOT NULL")
    )
    op.create_index(
        "ix_resource_instance_id", "resource", ["instance_id"], **_where("instance_id IS NOT NULL")
    )
    op.create_index("ix_resource_object", "resource", ["object"], unique=True)
    op.create_index("ix_resource_uploads", "resource", ["started_at"], **_where("version IS NULL"))
    op.create_table(
        "resource_grant",
        sa.Column("project_id", ID, autoincrement=False, nullable=False),
        sa.Column("taker", sa.String(100), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_resource_grant_project_id_project"
        ),
        sa.PrimaryKeyConstraint("project_id", "taker", name="pk_resource_grant"),
    )
    op.create_table(
        "secret",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("reference", sa.Text()),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_secret_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_secret"),
        sa.UniqueConstraint("project_id", "name", name="uq_secret_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workflow",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(200), server_default="", nullable=False),
        sa.Column("labels", sa.Text(), server_default="{}", nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("archived_at", INSTANT),
        sa.Column("deleted_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_workflow_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow"),
        sa.UniqueConstraint("project_id", "name", name="uq_workflow_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alert_mention",
        sa.Column("alert_id", ID, nullable=False),
        sa.Column("delivery_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["alert_id"], ["alert.id"], name="fk_alert_mention_alert_id_alert"),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["alert_delivery.id"],
            name="fk_alert_mention_delivery_id_alert_delivery",
        ),
        sa.PrimaryKeyConstraint("alert_id", "delivery_id", name="pk_alert_mention"),
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
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["alert_delivery.id"], name="fk_alert_try_delivery_id_alert_delivery"
        ),
        sa.PrimaryKeyConstraint("delivery_id", "number", name="pk_alert_try"),
    )
    op.create_table(
        "api_token",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("permissions", sa.Text()),
        sa.Column("projects", sa.Text()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("used_at", INSTANT),
        sa.Column("expires_at", INSTANT),
        sa.Column("revoked_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_api_token_principal_id_principal"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        sa.UniqueConstraint("digest", name="uq_api_token_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_token_principal_id", "api_token", ["principal_id"])
    op.create_table(
        "command",
        sa.Column("id", ID, nullable=False),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("instance_id", sa.BigInteger()),
        sa.Column("version", sa.Integer()),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("logical_time", INSTANT),
        sa.Column("timezone", sa.String(100)),
        sa.Column("priority", sa.Integer()),
        sa.Column("schedule_id", sa.BigInteger()),
        sa.Column("requested_by", sa.String(255), nullable=False),
        sa.Column("selection", sa.Text()),
        sa.Column("labels", sa.Text()),
        sa.Column("task", sa.String(100)),
        sa.Column("parent", sa.Text()),
        sa.Column("backfill_id", sa.BigInteger()),
        sa.Column("detail", sa.Text()),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("result_instance_id", sa.BigInteger()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("handled_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_command_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_command"),
        sa.UniqueConstraint("idempotency_key", name="uq_command_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_command_of_instance",
        "command",
        ["instance_id", "id"],
        **_where("instance_id IS NOT NULL"),
    )
    op.create_index(
        "ix_command_pending", "command", ["id", "partition"], **_where("state IN ('PENDING')")
    )
    op.create_index(
        "ix_command_pending_of_instance",
        "command",
        ["instance_id"],
        **_where("state IN ('PENDING') AND instance_id IS NOT NULL"),
    )
    op.create_index(
        "ix_command_pending_requests",
        "command",
        ["id", "partition"],
        **_where(
            "state IN ('PENDING') AND ((type NOT IN ('RERUN', 'START')) OR parent IS NOT NULL)"
        ),
    )
    op.create_index(
        "ix_command_restarts",
        "command",
        ["instance_id"],
        **_where("type IN ('RECOVER', 'RERUN_TASKS', 'RESUME')"),
    )
    op.create_table(
        "concurrency_lease",
        sa.Column("task_instance_id", ID, autoincrement=False, nullable=False),
        sa.Column("group_id", ID, nullable=False),
        sa.Column("granted_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["concurrency_group.id"],
            name="fk_concurrency_lease_group_id_concurrency_group",
        ),
        sa.PrimaryKeyConstraint("task_instance_id", name="pk_concurrency_lease"),
    )
    op.create_index("ix_concurrency_lease_group_id", "concurrency_lease", ["group_id"])
    op.create_table(
        "dependency_wait",
        sa.Column("task_instance_id", ID, autoincrement=False, nullable=False),
        sa.Column("workflow_id", ID, autoincrement=False, nullable=False),
        sa.Column("workflow_instance_id", sa.BigInteger(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_dependency_wait_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("task_instance_id", "workflow_id", name="pk_dependency_wait"),
    )
    op.create_index(
        "ix_dependency_wait_workflow_id_partition", "dependency_wait", ["workflow_id", "partition"]
    )
    op.create_table(
        "group_member",
        sa.Column("group_id", ID, autoincrement=False, nullable=False),
        sa.Column("principal_id", ID, autoincrement=False, nullable=False),
        sa.Column("of_issuer", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["principal_group.id"], name="fk_group_member_group_id_principal_group"
        ),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_group_member_principal_id_principal"
        ),
        sa.PrimaryKeyConstraint("group_id", "principal_id", name="pk_group_member"),
    )
    op.create_index("ix_group_member_principal_id", "group_member", ["principal_id"])
    op.create_table(
        "login_session",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("used_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_login_session_principal_id_principal"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_login_session"),
        sa.UniqueConstraint("digest", name="uq_login_session_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_login_session_expires_at", "login_session", ["expires_at"])
    op.create_index("ix_login_session_principal_id", "login_session", ["principal_id"])
    op.create_table(
        "project_role",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("principal_id", ID),
        sa.Column("group_id", ID),
        sa.Column("role", sa.String(20), nullable=False),
        sa.CheckConstraint(
            "(principal_id IS NULL) <> (group_id IS NULL)", name="one_holder"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["principal_group.id"], name="fk_project_role_group_id_principal_group"
        ),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_project_role_principal_id_principal"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_role_project_id_project"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_project_role"),
        sa.UniqueConstraint("project_id", "group_id", name="uq_project_role_project_id_group_id"),
        sa.UniqueConstraint(
            "project_id", "principal_id", name="uq_project_role_project_id_principal_id"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_role_group_id", "project_role", ["group_id"])
    op.create_index("ix_project_role_principal_id", "project_role", ["principal_id"])
    op.create_table(
        "schedule",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("cron", sa.String(255), nullable=False),
        sa.Column("timezone", sa.String(100), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer()),
        sa.Column("on_gap", sa.String(10)),
        sa.Column("on_overlap", sa.String(10)),
        sa.Column("starts_at", INSTANT),
        sa.Column("ends_at", INSTANT),
        sa.Column("exclude", sa.Text()),
        sa.Column("calendar", sa.String(100)),
        sa.Column("missed", sa.String(10), server_default="last", nullable=False),
        sa.Column("missed_window", sa.Float()),
        sa.Column("next_fire_at", INSTANT),
        sa.Column("paused_at", INSTANT),
        sa.Column("expected_since", INSTANT),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_schedule_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_schedule"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedule_next_fire_at_partition", "schedule", ["next_fire_at", "partition"])
    op.create_index("ix_schedule_workflow_id", "schedule", ["workflow_id"])
    op.create_table(
        "sign_in",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("code", sa.String(64)),
        sa.Column("challenge", sa.String(43)),
        sa.Column("code_expires_at", INSTANT),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_sign_in_principal_id_principal"
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_sign_in"),
        sa.UniqueConstraint("code", name="uq_sign_in_code"),
    )
    op.create_index("ix_sign_in_expires_at", "sign_in", ["expires_at"])
    op.create_index("ix_sign_in_principal_id", "sign_in", ["principal_id"])
    op.create_table(
        "workflow_layout",
        sa.Column("workflow_id", ID, autoincrement=False, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("updated_by", sa.String(201), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_layout_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("workflow_id", name="pk_workflow_layout"),
    )
    op.create_table(
        "workflow_version",
        sa.Column("workflow_id", ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("source", sa.Text()),
        sa.Column("published_by", sa.String(201)),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_version_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("workflow_id", "version", name="pk_workflow_version"),
    )
    op.create_table(
        "backfill",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("command_id", ID, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.String(255), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["command_id"], ["command.id"], name="fk_backfill_command_id_command"
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_backfill_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_backfill"),
        sa.UniqueConstraint("command_id", name="uq_backfill_command_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_backfill_active", "backfill", ["partition", "id"], **_where("finished_at IS NULL")
    )
    op.create_index("ix_backfill_workflow_id", "backfill", ["workflow_id"])
    op.create_table(
        "workflow_instance",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("logical_time", INSTANT, nullable=False),
        sa.Column("timezone", sa.String(100), nullable=False),
        sa.Column("command_id", ID, nullable=False),
        sa.Column("rerun_of", sa.BigInteger()),
        sa.Column("run_number", sa.Integer(), nullable=False),
        sa.Column("schedule_id", sa.BigInteger()),
        sa.Column("startup", sa.Text()),
        sa.Column("selection", sa.Text()),
        sa.Column("parent", sa.Text()),
        sa.Column("parent_task_id", sa.BigInteger()),
        sa.Column("backfill_id", sa.BigInteger()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("admitted_at", INSTANT),
        sa.Column("warned_at", INSTANT),
        sa.Column("deadline_at", INSTANT),
        sa.Column("late_at", INSTANT),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("succeeded_at", INSTANT),
        sa.ForeignKeyConstraint(
            ["command_id"], ["command.id"], name="fk_workflow_instance_command_id_command"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_workflow_instance_project_id_project"
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id", "version"],
            ["workflow_version.workflow_id", "workflow_version.version"],
            name="fk_workflow_instance_workflow_id_version_workflow_version",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_instance"),
        sa.UniqueConstraint("command_id", name="uq_workflow_instance_command_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_workflow_instance_backfill_id",
        "workflow_instance",
        ["backfill_id", "created_at", "id"],
        **_where("backfill_id IS NOT NULL"),
    )
    op.create_index("ix_workflow_instance_created_at_id", "workflow_instance", ["created_at", "id"])
    op.create_index(
        "ix_workflow_instance_open",
        "workflow_instance",
        ["partition", "id"],
        **_where("state IN ('PAUSING', 'QUEUED', 'RUNNING', 'STOPPING')"),
    )
    op.create_index(
        "ix_workflow_instance_parent_task_id",
        "workflow_instance",
        ["parent_task_id", "created_at", "id"],
        **_where("parent_task_id IS NOT NULL"),
    )
    op.create_index(
        "ix_workflow_instance_project_id_state_created_at_id",
        "workflow_instance",
        ["project_id", "state", "created_at", "id"],
    )
    op.create_index(
        "ix_workflow_instance_schedule_id",
        "workflow_instance",
        ["schedule_id", "created_at", "id"],
        **_where("schedule_id IS NOT NULL"),
    )
    op.create_index(
        "ix_workflow_instance_state_created_at_id",
        "workflow_instance",
        ["state", "created_at", "id"],
    )
    op.create_index(
        "ix_workflow_instance_unfinished",
        "workflow_instance",
        ["workflow_id", "id"],
        **_where("(state NOT IN ('FAILED', 'STOPPED', 'SUCCEEDED'))"),
    )
    op.create_index(
        "ix_workflow_instance_waiting",
        "workflow_instance",
        ["workflow_id", "id"],
        **_where("state = 'QUEUED' AND admitted_at IS NULL"),
    )
    op.create_index(
        "ix_workflow_instance_workflow_id_logical_time",
        "workflow_instance",
        ["workflow_id", "logical_time", "id"],
    )
    op.create_index(
        "ix_workflow_instance_workflow_id_state_created_at_id",
        "workflow_instance",
        ["workflow_id", "state", "created_at", "id"],
    )
    op.create_table(
        "backfill_run",
        sa.Column("backfill_id", ID, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("logical_time", INSTANT, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("command_id", sa.BigInteger()),
        sa.Column("instance_id", sa.BigInteger()),
        sa.Column("reason", sa.Text()),
        sa.ForeignKeyConstraint(
            ["backfill_id"], ["backfill.id"], name="fk_backfill_run_backfill_id_backfill"
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_backfill_run_workflow_id_workflow"
        ),
        sa.PrimaryKeyConstraint("backfill_id", "position", name="pk_backfill_run"),
        sa.UniqueConstraint(
            "backfill_id",
            "workflow_id",
            "logical_time",
            name="uq_backfill_run_backfill_id_workflow_id_logical_time",
        ),
    )
    op.create_table(
        "instance_label",
        sa.Column("workflow_instance_id", ID, autoincrement=False, nullable=False),
        sa.Column("key", sa.String(63), nullable=False),
        sa.Column("value", sa.String(63), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_instance_id"],
            ["workflow_instance.id"],
            name="fk_instance_label_workflow_instance_id_workflow_instance",
        ),
        sa.PrimaryKeyConstraint("workflow_instance_id", "key", name="pk_instance_label"),
    )
    op.create_index(
        "ix_instance_label_listed",
        "instance_label",
        ["project_id", "key", "value", "created_at", "workflow_instance_id"],
    )
    op.create_table(
        "task_instance",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_instance_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(100), nullable=False),
        sa.Column("type", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("worker_group", sa.String(100), nullable=False),
        sa.Column("worker", sa.String(255)),
        sa.Column("reason", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("waiting_since", INSTANT),
        sa.Column("due_at", INSTANT),
        sa.Column("queued_at", INSTANT),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("skip_cause", sa.String(20)),
        sa.Column("forced", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("doomed", sa.String(20)),
        sa.Column("warned_at", INSTANT),
        sa.Column("outputs", sa.Text()),
        sa.Column("detail", sa.Text()),
        sa.Column("environment", sa.String(120)),
        sa.Column("cpu_s", sa.Float()),
        sa.Column("max_rss_kb", sa.BigInteger()),
        sa.Column("error_line", sa.Text()),
        sa.Column("fingerprint", sa.String(16)),
        sa.Column("concurrency_group", sa.String(201)),
        sa.Column("workflow_priority", sa.Integer()),
        sa.Column("task_priority", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["workflow_instance_id"],
            ["workflow_instance.id"],
            name="fk_task_instance_workflow_instance_id_workflow_instance",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_task_instance"),
        sa.UniqueConstraint(
            "workflow_instance_id",
            "position",
            "attempt",
            name="uq_task_instance_workflow_instance_id_position_attempt",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_task_instance_blocked",
        "task_instance",
        ["concurrency_group", "workflow_priority", "workflow_instance_id", "task_priority", "id"],
        **_where("state IN ('BLOCKED')"),
    )
    op.create_index(
        "ix_task_instance_fingerprint",
        "task_instance",
        ["fingerprint", "id"],
        **_where("fingerprint IS NOT NULL"),
    )
    op.create_index("ix_task_instance_state_id", "task_instance", ["state", "id"])
    op.create_index("ix_task_instance_worker_id", "task_instance", ["worker", "id"])
    op.bulk_insert(cluster, [{"number": 1, "uid": str(uuid.uuid4())}])
    op.bulk_insert(access_state, [{"number": 1, "version": 1}])
    op.bulk_insert(audit_state, [{"number": 1, "pruned": 0, "hash": "0" * 64}])
    op.bulk_insert(sealing, [{"number": 1, "old": "[]", "retired": "[]"}])
    guard = _guard_sqlite if op.get_bind().dialect.name == "sqlite" else _guard_postgresql
    for name in MAY_GO:
        guard(name)


def _guard_sqlite(name: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name}_is_not_changed BEFORE UPDATE ON {name}"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not changed'); END"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_kept BEFORE DELETE ON {name} WHEN NOT ({MAY_GO[name]})"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not deleted'); END"
    )


def _guard_postgresql(name: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}_guard() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF TG_OP = 'DELETE' THEN IF {MAY_GO[name]} THEN RETURN OLD; END IF; END IF;"
        f" RAISE EXCEPTION '{name} is not changed'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_kept BEFORE UPDATE OR DELETE ON {name}"
        f" FOR EACH ROW EXECUTE FUNCTION {name}_guard()"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_not_emptied BEFORE TRUNCATE ON {name}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {name}_guard()"
    )
