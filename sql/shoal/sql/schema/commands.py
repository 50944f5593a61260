"""What is asked of the masters: commands, and backfills, which are many of them."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    and_,
    or_,
)

from shoal.core.runs.commands import CommandState, CommandType
from shoal.sql.schema.metadata import literals, metadata, row_id
from shoal.sql.schema.types import Json, OneLine, Prose, UtcDateTime

# ``instance_id``, ``result_instance_id`` and ``schedule_id`` are not foreign keys: a command is
# history and outlives what it speaks of.
command = Table(
    "command",
    metadata,
    row_id(),
    Column("type", OneLine(20), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("idempotency_key", OneLine(255), nullable=False, unique=True),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False),
    Column("instance_id", BigInteger),
    Column("version", Integer),
    Column("parameters", Json(dict), nullable=False),
    Column("logical_time", UtcDateTime),
    Column("timezone", OneLine(100)),
    Column("priority", Integer),
    Column("schedule_id", BigInteger),
    Column("requested_by", OneLine(255), nullable=False),
    Column("selection", Json(dict)),
    Column("labels", Json(dict)),
    Column("task", OneLine(100)),
    Column("parent", Json(dict)),
    Column("backfill_id", BigInteger),
    Column("detail", Json(dict)),
    Column("state", OneLine(20), nullable=False),
    Column("reason", Prose),
    Column("result_instance_id", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    Column("handled_at", UtcDateTime),
    sqlite_autoincrement=True,
)
IS_PENDING = command.c.state.in_(literals(frozenset({CommandState.PENDING})))
# In order of id, so that a long backlog is read from its start and no further than needed.
Index(
    "ix_command_pending",
    command.c.id,
    command.c.partition,
    sqlite_where=IS_PENDING,
    postgresql_where=IS_PENDING,
)
# Commands that create an instance, of which a master takes no more than it may hold. Those of
# sub-workflows are never held back.
IS_START = and_(
    command.c.type.in_(literals(frozenset({CommandType.START, CommandType.RERUN}))),
    command.c.parent.is_(None),
)
IS_NO_START = or_(
    command.c.type.not_in(literals(frozenset({CommandType.START, CommandType.RERUN}))),
    command.c.parent.is_not(None),
)
# However many starts are pending, the others are found at once.
Index(
    "ix_command_pending_requests",
    command.c.id,
    command.c.partition,
    sqlite_where=IS_PENDING & IS_NO_START,
    postgresql_where=IS_PENDING & IS_NO_START,
)

# What is asked of an instance keeps it from being purged.
IS_PENDING_REQUEST = IS_PENDING & command.c.instance_id.is_not(None)
Index(
    "ix_command_pending_of_instance",
    command.c.instance_id,
    sqlite_where=IS_PENDING_REQUEST,
    postgresql_where=IS_PENDING_REQUEST,
)

# What has been asked of an instance, for its history.
IS_OF_INSTANCE = command.c.instance_id.is_not(None)
Index(
    "ix_command_of_instance",
    command.c.instance_id,
    command.c.id,
    sqlite_where=IS_OF_INSTANCE,
    postgresql_where=IS_OF_INSTANCE,
)

# What lets an instance go on: from then on its tasks use the resources of that moment.
IS_RESTART = command.c.type.in_(
    literals(frozenset({CommandType.RESUME, CommandType.RECOVER, CommandType.RERUN_TASKS}))
)
Index(
    "ix_command_restarts",
    command.c.instance_id,
    sqlite_where=IS_RESTART,
    postgresql_where=IS_RESTART,
)

# ``command_id`` is unique: a command can never end as two backfills.
backfill = Table(
    "backfill",
    metadata,
    row_id(),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False, index=True),
    Column("partition", Integer, nullable=False),
    Column("command_id", ForeignKey("command.id"), unique=True, nullable=False),
    Column("state", OneLine(20), nullable=False),
    Column("reason", Prose),
    Column("request", Json(dict), nullable=False),  # as it was asked for: range, order, parallel …
    Column("requested_by", OneLine(255), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    sqlite_autoincrement=True,
)
IS_ACTIVE_BACKFILL = backfill.c.finished_at.is_(None)
Index(
    "ix_backfill_active",
    backfill.c.partition,
    backfill.c.id,
    sqlite_where=IS_ACTIVE_BACKFILL,
    postgresql_where=IS_ACTIVE_BACKFILL,
)

# One row for each date and workflow: each runs once, however often it is tried.
backfill_run = Table(
    "backfill_run",
    metadata,
    Column("backfill_id", ForeignKey("backfill.id"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False),
    Column("logical_time", UtcDateTime, nullable=False),
    Column("state", OneLine(20), nullable=False),
    Column("tries", Integer, nullable=False),  # runs started for it
    Column("command_id", BigInteger),  # of the newest try
    Column("instance_id", BigInteger),  # of the newest try
    Column("reason", Prose),
    UniqueConstraint("backfill_id", "workflow_id", "logical_time"),
)
