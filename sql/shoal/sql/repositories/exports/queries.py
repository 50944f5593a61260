"""The queries of the export. They are held here, and so translated once."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    column,
    func,
    literal_column,
    select,
    text,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from shoal.core.runs.states import FINISHED_TASK, FINISHED_WORKFLOW
from shoal.sql.schema.tables import (
    command,
    event,
    instance_label,
    literals,
    project,
    takeover,
    task_instance,
    workflow,
    workflow_instance,
    workflow_version,
)
from shoal.sql.statements.value_sets import Among, numbers

LONGEST_REASON = 2_000  # characters
IMPOSSIBLE_TIME = 2**63 - 1  # microseconds: stands for each time outside of the years 1 to 9999

_T, _I, _C, _E, _K = task_instance.c, workflow_instance.c, command.c, event.c, takeover.c


class _Microseconds(FunctionElement[int]):
    """A time as microseconds since 1970."""

    type = BigInteger()
    inherit_cache = True


@compiles(_Microseconds)
def _stored(element: _Microseconds, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_Microseconds, "postgresql")
def _made(element: _Microseconds, compiler: SQLCompiler, **options: Any) -> str:
    time = compiler.process(element.clauses, **options)
    exact = f"CAST(extract(epoch FROM {time}) * 1000000 AS bigint)"  # epoch is numeric
    # An infinite time would be an error of the whole query. The reader leaves its row out.
    return (
        f"CASE WHEN {time} BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'"
        f" THEN {exact} WHEN {time} IS NOT NULL THEN {IMPOSSIBLE_TIME} END"
    )


def _time(value: ColumnElement[Any], name: str) -> ColumnElement[int]:
    return _Microseconds(value).label(name)


def _between(value: Column[int]) -> ColumnElement[bool]:
    return and_(
        value > bindparam("after", type_=BigInteger), value <= bindparam("until", type_=BigInteger)
    )


def _is_one_of(state: Column[str], states: frozenset[Any]) -> ColumnElement[bool]:
    """Whether a state is one of some; it is no reason to go through all rows in that state."""
    return func.coalesce(state, literal_column("''")).in_(literals(states))


def _short(value: Column[str]) -> ColumnElement[str]:
    return func.substr(value, 1, LONGEST_REASON).label(value.name)


_EVENT_ID = literal_column("0", Integer).label("event_id")
_WORKFLOW = (project.c.name.label("project"), workflow.c.name.label("workflow"))

_ATTEMPTS = (
    select(
        _T.id.label("attempt_id"),
        _T.workflow_instance_id.label("instance_id"),
        *_WORKFLOW,
        _I.version,
        _T.task,
        _T.type,
        _T.worker_group,
        _T.worker,
        _T.attempt,
        _T.state,
        _short(_T.reason),
        _T.exit_code,
        type_coerce(_T.forced, Integer).label("forced"),
        _time(_T.waiting_since, "waiting_since"),
        _time(_T.queued_at, "queued_at"),
        _time(_T.started_at, "started_at"),
        # What was skipped in a run that never began may have no time of its own.
        _time(func.coalesce(_T.finished_at, _I.finished_at, _I.created_at), "finished_at"),
        type_coerce(_T.cpu_s, NullType()).label("cpu_s"),  # a float by itself
        _T.max_rss_kb,
        _T.error_line,
        _T.fingerprint,
        _EVENT_ID,
    )
    .join(workflow_instance, _I.id == _T.workflow_instance_id)
    .join(workflow, workflow.c.id == _I.workflow_id)
    .join(project, project.c.id == _I.project_id)
    .where(_is_one_of(_T.state, FINISHED_TASK))
)
ATTEMPTS_OF = _ATTEMPTS.where(Among(_T.id, numbers("ids")))
ATTEMPTS_BETWEEN = _ATTEMPTS.where(_between(_T.workflow_instance_id))

_TRIGGER = case(
    (_I.parent_task_id.is_not(None), literal_column("'parent'")),
    (_I.backfill_id.is_not(None), literal_column("'backfill'")),
    (_I.rerun_of.is_not(None), literal_column("'rerun'")),
    (_I.schedule_id.is_not(None), literal_column("'schedule'")),
    else_=literal_column("'request'"),
).label("trigger")
_INSTANCES = (
    select(
        _I.id.label("instance_id"),
        _I.workflow_id,
        *_WORKFLOW,
        _I.version,
        _I.state,
        _short(_I.reason),
        _TRIGGER,
        _I.schedule_id,
        _I.backfill_id,
        type_coerce(_I.parent, Text).label("parent"),
        _I.priority,
        _time(_I.logical_time, "logical_time"),
        _time(_I.created_at, "created_at"),
        _time(_I.admitted_at, "admitted_at"),
        _time(_I.started_at, "started_at"),
        _time(func.coalesce(_I.finished_at, _I.created_at), "finished_at"),
        _time(_I.deadline_at, "deadline_at"),
        _time(_I.late_at, "late_at"),
        _EVENT_ID,
    )
    .join(workflow, workflow.c.id == _I.workflow_id)
    .join(project, project.c.id == _I.project_id)
    .where(_is_one_of(_I.state, FINISHED_WORKFLOW))
)
INSTANCES_OF = _INSTANCES.where(Among(_I.id, numbers("ids")))
INSTANCES_BETWEEN = _INSTANCES.where(_between(_I.id))

_L = instance_label.c
LABELS = select(_L.workflow_instance_id.label("id"), _L.key, _L.value).where(
    Among(_L.workflow_instance_id, numbers("ids"))
)

_V = workflow_version.c
WORKFLOW_ID = (
    select(workflow.c.id)
    .join(project, project.c.id == workflow.c.project_id)
    .where(project.c.name == bindparam("project"), workflow.c.name == bindparam("name"))
)

PLANS = (
    select(
        *_WORKFLOW,
        _V.version,
        type_coerce(_V.spec, Text).label("spec"),
        _time(_V.created_at, "published_at"),
        _EVENT_ID,
    )
    .join(workflow, workflow.c.id == _V.workflow_id)
    .join(project, project.c.id == workflow.c.project_id)
    .where(_V.workflow_id == bindparam("workflow", type_=BigInteger), _between(_V.version))
)

_COMMANDS = (
    select(
        _C.id.label("command_id"),
        _C.type,
        *_WORKFLOW,
        _C.requested_by,
        _C.state,
        _short(_C.reason),
        func.coalesce(_C.instance_id, _C.result_instance_id).label("instance_id"),
        _C.schedule_id,
        _time(_C.created_at, "created_at"),
        _time(_C.handled_at, "handled_at"),
        _EVENT_ID,
    )
    .join(workflow, workflow.c.id == _C.workflow_id)
    .join(project, project.c.id == workflow.c.project_id)
)
COMMANDS_BETWEEN = _COMMANDS.where(_between(_C.id))
COMMANDS_OF = _COMMANDS.where(Among(_C.id, numbers("ids")))

TAKEOVERS = select(
    _K.id.label("takeover_id"),
    _K.partition,
    _K.epoch,
    _K.owner,
    _K.previous_owner,
    _time(_K.at, "at"),
    _EVENT_ID,
).where(_between(_K.id))

CHANGED_ATTEMPTS = (
    select(_E.task_instance_id.label("id"), func.max(_E.id).label("event_id"))
    .where(_between(_E.id), _E.kind == literal_column("'task.state'"))
    .group_by(_E.task_instance_id)
)
CHANGED_INSTANCES = (
    select(_E.workflow_instance_id.label("id"), func.max(_E.id).label("event_id"))
    .where(_between(_E.id), _E.kind == literal_column("'instance.state'"))
    .group_by(_E.workflow_instance_id)
)

# age() asks the counter after the snapshot is taken: see ``event_tail.py``.
RUNNING = text(
    "SELECT pg_snapshot_xmin(s)::text::bigint AS oldest, age(pg_snapshot_xmin(s)::xid) AS younger"
    " FROM pg_current_snapshot() AS s"
).columns(column("oldest", BigInteger), column("younger", BigInteger))
