"""Alerts: what projects define for them, which messages are to be sent, and how sending went."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    literal_column,
)

from shoal.core.alerts.records import AlertState, DeliveryState
from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import Id, Json, OneLine, Prose, UtcDateTime

# Rules, receivers and channels, each kind with names of its own.
alert_definition = Table(
    "alert_definition",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("kind", OneLine(20), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("spec", Json(dict), nullable=False),
    Column("version", Integer, nullable=False),  # grows with each change
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "kind", "name"),
    sqlite_autoincrement=True,
)

# Patterns as in rules; an empty one fits all.
alert_silence = Table(
    "alert_silence",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("workflow", OneLine(200), nullable=False),
    Column("task", OneLine(200), nullable=False),
    Column("rule", OneLine(200), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("until", UtcDateTime, nullable=False),
    Column("reason", Prose, nullable=False),
    Column("created_by", OneLine(201), nullable=False),
    Index(None, "project_id", "until"),
    sqlite_autoincrement=True,
)

# Names of rules and workflows are those of when it happened; what they name may be gone since.
alert = Table(
    "alert",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("rule", OneLine(100), nullable=False),
    Column("trigger", OneLine(40), nullable=False),
    Column("severity", OneLine(20), nullable=False),
    Column("subject", OneLine(400), nullable=False),
    Column("workflow", OneLine(100), nullable=False),
    Column("instance_id", Id),
    Column("logical_time", UtcDateTime),
    Column("task", OneLine(100)),
    Column("task_instance_id", Id),
    Column("event_id", Id, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("reason", Prose),
    Column("state", OneLine(20), nullable=False),
    Column("resolved_at", UtcDateTime),
    Column("acknowledged_at", UtcDateTime),
    Column("acknowledged_by", OneLine(201)),
    Column("steps", Integer, nullable=False),
    Column("next_at", UtcDateTime),
    Column("told_at", UtcDateTime),
    Column("silenced_by", Id),
    # However often an event is looked at, a rule makes one alert of it.
    UniqueConstraint("event_id", "project_id", "rule"),
    Index(None, "project_id", "id"),
    Index(None, "instance_id"),
    sqlite_autoincrement=True,
)

IS_OPEN_ALERT = literal_column(f"state = '{AlertState.OPEN}'", type_=Boolean())
Index(
    "ix_alert_open",
    alert.c.project_id,
    alert.c.subject,
    sqlite_where=IS_OPEN_ALERT,
    postgresql_where=IS_OPEN_ALERT,
)
Index(
    "ix_alert_next",
    alert.c.next_at,
    sqlite_where=IS_OPEN_ALERT,
    postgresql_where=IS_OPEN_ALERT,
)

# A message to one place; ``share`` says which alert server sends it.
alert_delivery = Table(
    "alert_delivery",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("rule", OneLine(100), nullable=False),
    Column("receiver", OneLine(100), nullable=False),
    Column("channel", OneLine(100), nullable=False),
    Column("recipients", Json(list, texts=True), nullable=False),
    Column("kind", OneLine(20), nullable=False),
    Column("share", Integer, nullable=False),
    Column("state", OneLine(20), nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("sent_at", UtcDateTime),
    Column("answer", Prose),
    Index(None, "project_id", "id"),
    sqlite_autoincrement=True,
)

IS_UNSENT = literal_column(
    f"state IN ('{DeliveryState.PENDING}', '{DeliveryState.SENDING}')", type_=Boolean()
)
Index(
    "ix_alert_delivery_unsent",
    alert_delivery.c.share,
    alert_delivery.c.due_at,
    sqlite_where=IS_UNSENT,
    postgresql_where=IS_UNSENT,
)

# Which alerts a message is about.
alert_mention = Table(
    "alert_mention",
    metadata,
    Column("alert_id", ForeignKey("alert.id"), primary_key=True),
    Column("delivery_id", ForeignKey("alert_delivery.id"), primary_key=True),
    Index(None, "delivery_id"),
)

# Every attempt to send a message.
alert_try = Table(
    "alert_try",
    metadata,
    Column("delivery_id", ForeignKey("alert_delivery.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("took_s", Float, nullable=False),
    Column("is_sent", Boolean, nullable=False),
    Column("answer", Prose, nullable=False),
)

# Conditions that hold: of the rule, and about what. ``since``: when it was found.
alert_condition = Table(
    "alert_condition",
    metadata,
    Column("project_id", ForeignKey("project.id"), primary_key=True),
    Column("rule", OneLine(100), primary_key=True),
    Column("subject", OneLine(400), primary_key=True),
    Column("trigger", OneLine(40), nullable=False),
    Column("workflow", OneLine(100), nullable=False),
    Column("since", UtcDateTime, nullable=False),
)

# Masters and workers that alert servers have seen, by the names that they come back with.
alert_member = Table(
    "alert_member",
    metadata,
    Column("kind", OneLine(20), primary_key=True),
    Column("name", OneLine(300), primary_key=True),
    Column("gone_at", UtcDateTime),  # NULL: it is there
)

# The jobs of alert servers: who is late with an epoch writes nothing. ``position``: of the job
# that reads events the last one that it has dealt with; of ``definitions`` how often they changed.
alert_job = Table(
    "alert_job",
    metadata,
    Column("name", OneLine(50), primary_key=True),
    Column("epoch", Id, nullable=False),
    Column("position", Id),
)
