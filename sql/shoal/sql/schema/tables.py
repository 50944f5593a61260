"""The schema. ``migrations/`` makes exactly these tables; a test compares the two.

Conditions of partial indices stand here once, as literal text, and are used by the queries too:
a prepared statement with a placeholder instead could not rely on the index.
"""

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
    and_,
    false,
    literal_column,
    or_,
    text,
)

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.states import (
    FINISHED_TASK,
    FINISHED_WORKFLOW,
    OPEN_WORKFLOW,
    TaskState,
    WorkflowState,
)
from shoal.sql.schema.types import Id, Json, Line, Prose, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def row_id() -> Column[int]:
    """Return the column of a table that numbers its rows."""
    return Column("id", Id, primary_key=True)


def literals(values: frozenset[StrEnum] | frozenset[Any]) -> list[ColumnElement[str]]:
    """Return state names as literal SQL, in a fixed order."""
    return [literal_column(f"'{value}'") for value in sorted(values)]


project = Table(
    "project",
    metadata,
    row_id(),
    Column("name", Line(100), nullable=False, unique=True),
    Column("description", Prose, nullable=False),
    Column("parameters", Json(dict), nullable=False, server_default="{}"),  # the outermost of all
    Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

# What a project's workflows share, each by its name.
secret = Table(
    "secret",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", Line(100), nullable=False),
    Column("ciphertext", Prose, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# One row, whose number is 1: ids of keys. ``primary_key`` encrypts secrets and passwords, NULL: the
# first key of the file; ``next_key`` is to take its place; ``old`` may still be in use, ``retired``
# never again.
sealing = Table(
    "sealing",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("primary_key", Line(20)),
    Column("next_key", Line(20)),
    Column("old", Json(list, texts=True), nullable=False),
    Column("retired", Json(list, texts=True), nullable=False),
)

# Of ``password`` and ``password_secret`` at most one is there: a ciphertext, or the name of a
# secret of the same project.
data_source = Table(
    "data_source",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", Line(100), nullable=False),
    Column("kind", Line(20), nullable=False),
    Column("host", Prose, nullable=False),
    Column("port", Integer),
    Column("database", Prose, nullable=False),
    Column("user_name", Prose, nullable=False),
    Column("options", Json(dict), nullable=False),
    Column("shared_with", Json(list, texts=True), nullable=False),  # names of projects, or "*"
    Column("password", Prose),
    Column("password_secret", Line(100)),
    Column("version", Integer, nullable=False),  # grows with each change
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# Of the cluster, not of a project. ``worker_groups``: whose workers have it; none: all.
environment = Table(
    "environment",
    metadata,
    row_id(),
    Column("name", Line(100), nullable=False, unique=True),
    Column("description", Prose, nullable=False),
    Column("variables", Json(dict, texts=True), nullable=False),
    Column("python", Prose, nullable=False),
    Column("setup", Prose, nullable=False),
    Column("worker_groups", Json(list, texts=True), nullable=False),
    Column("version", Integer, nullable=False),  # grows with each change
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

# A version of a file. It is an upload until ``version`` is there; it counts from ``created_at``
# until ``ended_at``: it has been replaced or deleted then. ``object``: its name in the storage.
# ``instance_id``: the run whose attempt makes it, which may have been purged; None: a person does.
resource = Table(
    "resource",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("path", Line(500), nullable=False),
    Column("object", Line(200), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("version", Integer),
    Column("sha256", Line(64)),
    Column("size", BigInteger),  # bytes
    Column("created_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("instance_id", BigInteger),
    UniqueConstraint("project_id", "path", "version"),
    sqlite_autoincrement=True,
)
IS_UPLOAD = resource.c.version.is_(None)
IS_CURRENT = and_(resource.c.version.is_not(None), resource.c.ended_at.is_(None))
Index(
    "ix_resource_current",
    resource.c.project_id,
    resource.c.path,
    unique=True,
    sqlite_where=IS_CURRENT,
    postgresql_where=IS_CURRENT,
)
Index("ix_resource_object", resource.c.object, unique=True)
IS_OF_RUN = resource.c.instance_id.is_not(None)
Index(
    "ix_resource_instance_id",
    resource.c.instance_id,
    sqlite_where=IS_OF_RUN,
    postgresql_where=IS_OF_RUN,
)
Index(
    "ix_resource_uploads",
    resource.c.started_at,
    sqlite_where=IS_UPLOAD,
    postgresql_where=IS_UPLOAD,
)
Index(
    "ix_resource_ended_at",
    resource.c.ended_at,
    sqlite_where=resource.c.ended_at.is_not(None),
    postgresql_where=resource.c.ended_at.is_not(None),
)

calendar = Table(
    "calendar",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", Line(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column(
        "days", Json(list, texts=True), nullable=False
    ),  # YYYY-MM-DD, ascending: days without fire times
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

concurrency_group = Table(
    "concurrency_group",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", Line(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# A slot is taken while the attempt of its lease may run: see ``slots.py``.
concurrency_lease = Table(
    "concurrency_lease",
    metadata,
    Column("task_instance_id", Id, primary_key=True, autoincrement=False),
    Column("group_id", ForeignKey("concurrency_group.id"), nullable=False, index=True),
    Column("granted_at", UtcDateTime, nullable=False),
)

# The newest version's number, digest and size are repeated here: lists need nothing else.
workflow = Table(
    "workflow",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", Line(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column("version", Integer, nullable=False),  # 0 only inside the transaction that creates it
    Column("digest", Line(64), nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

workflow_version = Table(
    "workflow_version",
    metadata,
    Column("workflow_id", ForeignKey("workflow.id"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("spec", Json(dict), nullable=False),
    Column("digest", Line(64), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# ``instance_id``, ``result_instance_id`` and ``schedule_id`` are no foreign keys: a command is
# history and outlives what it speaks of.
command = Table(
    "command",
    metadata,
    row_id(),
    Column("type", Line(20), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("idempotency_key", Line(255), nullable=False, unique=True),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False),
    Column("instance_id", BigInteger),
    Column("version", Integer),
    Column("parameters", Json(dict), nullable=False),
    Column("logical_time", UtcDateTime),
    Column("timezone", Line(100)),
    Column("priority", Integer),
    Column("schedule_id", BigInteger),
    Column("requested_by", Line(255), nullable=False),
    Column("selection", Json(dict)),
    Column("task", Line(100)),
    Column("parent", Json(dict)),
    Column("backfill_id", BigInteger),
    Column("detail", Json(dict)),
    Column("state", Line(20), nullable=False),
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

# ``command_id`` is unique: a command can never end as two instances.
workflow_instance = Table(
    "workflow_instance",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("workflow_id", Id, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", Line(20), nullable=False),
    Column("reason", Prose),
    Column("partition", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("parameters", Json(dict), nullable=False),
    Column("logical_time", UtcDateTime, nullable=False),
    Column("timezone", Line(100), nullable=False),
    Column("command_id", ForeignKey("command.id"), nullable=False, unique=True),
    Column("rerun_of", BigInteger),
    Column("run_number", Integer, nullable=False),
    Column("schedule_id", BigInteger),
    Column("startup", Json(dict)),  # the parameters given at the launch, among ``parameters``
    Column("selection", Json(dict)),
    Column("parent", Json(dict)),
    Column("parent_task_id", BigInteger),  # of ``parent``, to find it by
    Column("backfill_id", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    # Written under the lock on the workflow's row; all else by the partition's owner.
    Column("admitted_at", UtcDateTime),
    Column("warned_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("succeeded_at", UtcDateTime),  # for the first time: a later rerun does not undo that
    ForeignKeyConstraint(
        ["workflow_id", "version"], ["workflow_version.workflow_id", "workflow_version.version"]
    ),
    sqlite_autoincrement=True,
)
IS_OPEN = workflow_instance.c.state.in_(literals(OPEN_WORKFLOW))
# Until others of its workflow have ended; see core/runs/overlap.py.
IS_WAITING = and_(
    workflow_instance.c.state == literal_column(f"'{WorkflowState.QUEUED}'"),
    workflow_instance.c.admitted_at.is_(None),
)
HAS_NOT_ENDED = workflow_instance.c.state.not_in(literals(FINISHED_WORKFLOW))
Index(
    "ix_workflow_instance_open",
    workflow_instance.c.partition,
    workflow_instance.c.id,
    sqlite_where=IS_OPEN,
    postgresql_where=IS_OPEN,
)
Index(
    "ix_workflow_instance_unfinished",
    workflow_instance.c.workflow_id,
    workflow_instance.c.id,
    sqlite_where=HAS_NOT_ENDED,
    postgresql_where=HAS_NOT_ENDED,
)
Index(
    "ix_workflow_instance_waiting",
    workflow_instance.c.workflow_id,
    workflow_instance.c.id,
    sqlite_where=IS_WAITING,
    postgresql_where=IS_WAITING,
)
Index(
    "ix_workflow_instance_parent_task_id",
    workflow_instance.c.parent_task_id,
    sqlite_where=workflow_instance.c.parent_task_id.is_not(None),
    postgresql_where=workflow_instance.c.parent_task_id.is_not(None),
)
Index(
    "ix_workflow_instance_backfill_id",
    workflow_instance.c.backfill_id,
    sqlite_where=workflow_instance.c.backfill_id.is_not(None),
    postgresql_where=workflow_instance.c.backfill_id.is_not(None),
)
# What a DEPENDENT task waits for: the runs of a workflow in an interval of logical time.
Index(None, workflow_instance.c.workflow_id, workflow_instance.c.logical_time)
# Every filter of lists is one or several walks along these: see ``walks.py``.
_NEWEST = (workflow_instance.c.created_at, workflow_instance.c.id)
Index(None, *_NEWEST)
Index(None, workflow_instance.c.state, *_NEWEST)
Index(None, workflow_instance.c.workflow_id, workflow_instance.c.state, *_NEWEST)
Index(None, workflow_instance.c.project_id, workflow_instance.c.state, *_NEWEST)

# One row per attempt. ``position`` is the task's place in its definition.
task_instance = Table(
    "task_instance",
    metadata,
    row_id(),
    Column("workflow_instance_id", ForeignKey("workflow_instance.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("task", Line(100), nullable=False),
    Column("type", Line(100), nullable=False),
    Column("state", Line(20), nullable=False),
    Column("worker_group", Line(100), nullable=False),
    Column("worker", Line(255)),
    Column("reason", Prose),
    Column("exit_code", Integer),
    Column("failures", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("looks", Integer, nullable=False, server_default=text("0")),
    Column("waiting_since", UtcDateTime),
    Column("due_at", UtcDateTime),
    Column("queued_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("skip_cause", Line(20)),
    Column("forced", Boolean, nullable=False, server_default=false()),
    Column("doomed", Line(20)),  # a Termination
    Column("warned_at", UtcDateTime),
    Column("outputs", Json(dict, texts=True)),
    Column("detail", Json(dict)),
    Column("environment", Line(120)),  # NAME@VERSION
    # Only of tasks that need a slot: PROJECT/NAME of the group, and the place in its line.
    Column("concurrency_group", Line(201)),
    Column("workflow_priority", Integer),
    Column("task_priority", Integer),
    UniqueConstraint("workflow_instance_id", "position", "attempt"),
    sqlite_autoincrement=True,
)
IS_FINAL = task_instance.c.state.in_(literals(FINISHED_TASK))
# The newest attempt of a task is never such a look: another one follows in the same transaction.
IS_NO_PAST_LOOK = task_instance.c.state != literal_column(f"'{TaskState.RESCHEDULED}'")
IS_BLOCKED = task_instance.c.state.in_(literals(frozenset({TaskState.BLOCKED})))
# Attempts that wait for a slot, in the order in which slots are given.
SLOT_ORDER = (
    task_instance.c.workflow_priority,
    task_instance.c.workflow_instance_id,
    task_instance.c.task_priority,
    task_instance.c.id,
)
Index(
    "ix_task_instance_blocked",
    task_instance.c.concurrency_group,
    *SLOT_ORDER,
    sqlite_where=IS_BLOCKED,
    postgresql_where=IS_BLOCKED,
)
Index(None, task_instance.c.state, task_instance.c.id)
Index(None, task_instance.c.worker, task_instance.c.id)

# One row, whose number is 1. ``uid`` is random and no other cluster's.
cluster = Table(
    "cluster",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("uid", Line(36), nullable=False),
)

# ``epoch`` is written by the partition's owner when it takes over, and checked by every write.
partition = Table(
    "partition",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", Line(255)),
)

# What a partition's owner cannot work with and has quarantined: see the master's ``quarantine.py``.
quarantine = Table(
    "quarantine",
    metadata,
    Column("kind", Line(20), primary_key=True),
    Column("item", Line(255), primary_key=True),  # its id as text, or its name
    Column("partition", Integer, nullable=False, index=True),
    Column("reason", Prose, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("since", UtcDateTime, nullable=False),
)

# ``next_fire_at`` is NULL while disabled, so one index serves everything that is due.
schedule = Table(
    "schedule",
    metadata,
    row_id(),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False, index=True),
    Column("partition", Integer, nullable=False),
    Column("cron", Line(255), nullable=False),
    Column("timezone", Line(100), nullable=False),
    Column("parameters", Json(dict), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("priority", Integer),
    Column("on_gap", Line(10)),
    Column("on_overlap", Line(10)),
    Column("starts_at", UtcDateTime),
    Column("ends_at", UtcDateTime),
    Column("exclude", Json(list, texts=True)),  # days, YYYY-MM-DD
    Column("calendar", Line(100)),
    Column("missed", Line(10), nullable=False, server_default="last"),
    Column("missed_window", Float),  # seconds
    Column("next_fire_at", UtcDateTime),
    sqlite_autoincrement=True,
)
Index(None, schedule.c.next_fire_at, schedule.c.partition)

# A waiting DEPENDENT task is checked again when a run of one of its upstream workflows ends.
dependency_wait = Table(
    "dependency_wait",
    metadata,
    Column("task_instance_id", Id, primary_key=True, autoincrement=False),
    Column("workflow_id", ForeignKey("workflow.id"), primary_key=True, autoincrement=False),
    Column("workflow_instance_id", BigInteger, nullable=False),  # the one that waits
    Column("partition", Integer, nullable=False),
)
Index(None, dependency_wait.c.workflow_id, dependency_wait.c.partition)

# ``command_id`` is unique: a command can never end as two backfills.
backfill = Table(
    "backfill",
    metadata,
    row_id(),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False, index=True),
    Column("partition", Integer, nullable=False),
    Column("command_id", ForeignKey("command.id"), unique=True, nullable=False),
    Column("state", Line(20), nullable=False),
    Column("reason", Prose),
    Column("request", Json(dict), nullable=False),  # as it was asked for: range, order, parallel …
    Column("requested_by", Line(255), nullable=False),
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
    Column("state", Line(20), nullable=False),
    Column("tries", Integer, nullable=False),  # runs started for it
    Column("command_id", BigInteger),  # of the newest try
    Column("instance_id", BigInteger),  # of the newest try
    Column("reason", Prose),
    UniqueConstraint("backfill_id", "workflow_id", "logical_time"),
)

# No foreign keys: events are pruned by age alone.
event = Table(
    "event",
    metadata,
    row_id(),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("kind", Line(50), nullable=False),
    Column("project", Line(100), nullable=False),
    Column("workflow_instance_id", BigInteger),
    Column("task_instance_id", BigInteger),
    Column("data", Json(dict), nullable=False),
    sqlite_autoincrement=True,
)
Index(None, event.c.workflow_instance_id, event.c.id)

# A request to delete history; each partition's owner does its own part. See ``purges.py``.
purge = Table(
    "purge",
    metadata,
    row_id(),
    Column("is_rehearsal", Boolean, nullable=False),  # count, delete nothing
    Column("before", UtcDateTime),  # NULL: what the masters' rules say
    Column("project", Line(100)),
    Column("workflow_id", BigInteger),
    Column("requested_by", Line(255), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

purge_part = Table(
    "purge_part",
    metadata,
    Column("purge_id", ForeignKey("purge.id"), primary_key=True, autoincrement=False),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("instances", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("commands", BigInteger, nullable=False),
    Column("backfills", BigInteger, nullable=False),
    Column("oldest", UtcDateTime),  # end of the oldest instance that goes
    Column("finished_at", UtcDateTime),
)
IS_OPEN_PART = purge_part.c.finished_at.is_(None)
Index(
    "ix_purge_part_open",
    purge_part.c.partition,
    purge_part.c.purge_id,
    sqlite_where=IS_OPEN_PART,
    postgresql_where=IS_OPEN_PART,
)
