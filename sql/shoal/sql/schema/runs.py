"""Instances and the attempts of their tasks, and what these wait for."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    and_,
    false,
    literal_column,
    text,
)

from shoal.core.runs.states import (
    FINISHED_TASK,
    FINISHED_WORKFLOW,
    OPEN_WORKFLOW,
    TaskState,
    WorkflowState,
)
from shoal.sql.schema.metadata import literals, metadata, row_id
from shoal.sql.schema.types import Id, Json, OneLine, Prose, UtcDateTime

# ``command_id`` is unique: a command can never end as two instances.
workflow_instance = Table(
    "workflow_instance",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("workflow_id", Id, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", OneLine(20), nullable=False),
    Column("reason", Prose),
    Column("partition", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("parameters", Json(dict), nullable=False),
    Column("logical_time", UtcDateTime, nullable=False),
    Column("timezone", OneLine(100), nullable=False),
    Column("command_id", ForeignKey("command.id"), nullable=False, unique=True),
    Column("rerun_of", BigInteger),
    Column("run_number", Integer, nullable=False),
    Column("schedule_id", BigInteger),
    Column("startup", Json(dict)),  # the parameters given at the launch, among ``parameters``
    Column("selection", Json(dict)),
    Column("parent", Json(dict)),
    Column("parent_task_id", BigInteger),  # of ``parent``, to find it by
    # Of a sub-workflow's run: the run that nothing has started as its child, at the top.
    Column("root_id", BigInteger),
    Column("backfill_id", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    # Written under the lock on the workflow's row; all else by the partition's owner.
    Column("admitted_at", UtcDateTime),
    Column("warned_at", UtcDateTime),
    Column("deadline_at", UtcDateTime),
    Column("late_at", UtcDateTime),  # when it was found to go on beyond its deadline
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
    "ix_workflow_instance_root_id",
    workflow_instance.c.root_id,
    sqlite_where=workflow_instance.c.root_id.is_not(None),
    postgresql_where=workflow_instance.c.root_id.is_not(None),
)
Index(
    "ix_workflow_instance_parent_task_id",
    workflow_instance.c.parent_task_id,
    workflow_instance.c.created_at,
    workflow_instance.c.id,
    sqlite_where=workflow_instance.c.parent_task_id.is_not(None),
    postgresql_where=workflow_instance.c.parent_task_id.is_not(None),
)
Index(
    "ix_workflow_instance_backfill_id",
    workflow_instance.c.backfill_id,
    workflow_instance.c.created_at,
    workflow_instance.c.id,
    sqlite_where=workflow_instance.c.backfill_id.is_not(None),
    postgresql_where=workflow_instance.c.backfill_id.is_not(None),
)
Index(
    "ix_workflow_instance_schedule_id",
    workflow_instance.c.schedule_id,
    workflow_instance.c.created_at,
    workflow_instance.c.id,
    sqlite_where=workflow_instance.c.schedule_id.is_not(None),
    postgresql_where=workflow_instance.c.schedule_id.is_not(None),
)
# What a DEPENDENT task waits for: the runs of a workflow in an interval of logical time.
Index(
    "ix_workflow_instance_workflow_id_logical_time",
    workflow_instance.c.workflow_id,
    workflow_instance.c.logical_time,
    workflow_instance.c.id,
)
# Every filter of lists is one or several walks along these: see ``index_walks.py``.
_NEWEST = (workflow_instance.c.created_at, workflow_instance.c.id)
Index(None, *_NEWEST)
Index(None, workflow_instance.c.state, *_NEWEST)
Index(None, workflow_instance.c.workflow_id, workflow_instance.c.state, *_NEWEST)
Index(None, workflow_instance.c.project_id, workflow_instance.c.state, *_NEWEST)

# What people sort runs by. Project and creation time are the run's: they never change, and so each
# label is found in the order of lists.
instance_label = Table(
    "instance_label",
    metadata,
    Column("workflow_instance_id", Id, primary_key=True, autoincrement=False),
    Column("key", OneLine(63), primary_key=True),
    Column("value", OneLine(63), nullable=False),
    Column("project_id", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(["workflow_instance_id"], ["workflow_instance.id"]),
)
Index(
    "ix_instance_label_listed",
    instance_label.c.project_id,
    instance_label.c.key,
    instance_label.c.value,
    instance_label.c.created_at,
    instance_label.c.workflow_instance_id,
)

# One row per attempt. ``position`` is the task's place in its definition.
task_instance = Table(
    "task_instance",
    metadata,
    row_id(),
    Column("workflow_instance_id", ForeignKey("workflow_instance.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("task", OneLine(100), nullable=False),
    Column("type", OneLine(100), nullable=False),
    Column("state", OneLine(20), nullable=False),
    Column("worker_group", OneLine(100), nullable=False),
    Column("worker", OneLine(255)),
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
    Column("skip_cause", OneLine(20)),
    Column("forced", Boolean, nullable=False, server_default=false()),
    Column("doomed", OneLine(20)),  # a Termination
    Column("warned_at", UtcDateTime),
    Column("outputs", Json(dict, texts=True)),
    Column("detail", Json(dict)),
    Column("environment", OneLine(120)),  # NAME@VERSION
    Column("cpu_s", Float),
    Column("max_rss_kb", BigInteger),
    Column("error_line", Prose),
    Column("fingerprint", OneLine(16)),
    # Only of tasks that need a slot: PROJECT/NAME of the group, and the place in its line.
    Column("concurrency_group", OneLine(201)),
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
# Of attempts with an error line alone: it costs the others nothing.
Index(
    "ix_task_instance_fingerprint",
    task_instance.c.fingerprint,
    task_instance.c.id,
    sqlite_where=task_instance.c.fingerprint.is_not(None),
    postgresql_where=task_instance.c.fingerprint.is_not(None),
)

# A slot is taken while the attempt of its lease may run: see ``slots.py``.
concurrency_lease = Table(
    "concurrency_lease",
    metadata,
    Column("task_instance_id", Id, primary_key=True, autoincrement=False),
    Column("group_id", ForeignKey("concurrency_group.id"), nullable=False, index=True),
    Column("granted_at", UtcDateTime, nullable=False),
)

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
