"""The tables of the exported history: their columns, in order.

Rows may repeat: an instance that goes on after its end, since it was recovered, is exported once
more. The row with the highest ``event_id`` is the valid one of its ``key``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ColumnKind(StrEnum):
    """The type of a column. Times are UTC, in microseconds."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    NUMBER = "number"  # double precision
    YES_NO = "yes_no"
    TIME = "time"
    LABELS = "labels"  # a map of text to text
    TASKS = "tasks"  # a list of tasks: name, type, worker group, names of the upstream tasks


@dataclass(frozen=True)
class HistoryColumn:
    """A column of a table. ``required``: it is never NULL."""

    name: str
    kind: ColumnKind
    required: bool = False


@dataclass(frozen=True)
class HistoryTable:
    """A table of the history.

    ``key``: the columns that name a row; ``at``: the column that says of which day it is (UTC).
    """

    name: str
    key: Sequence[str]
    at: str
    columns: Sequence[HistoryColumn]


def _required(*names: str, kind: ColumnKind) -> list[HistoryColumn]:
    return [HistoryColumn(name, kind, required=True) for name in names]


def _optional(*names: str, kind: ColumnKind) -> list[HistoryColumn]:
    return [HistoryColumn(name, kind) for name in names]


_EVENT = HistoryColumn("event_id", ColumnKind.INTEGER, required=True)

#: Attempts that have ended, each with what it cost.
ATTEMPTS = HistoryTable(
    name="attempts",
    key=("attempt_id",),
    at="finished_at",
    columns=(
        *_required("attempt_id", "instance_id", kind=ColumnKind.INTEGER),
        *_required("project", "workflow", kind=ColumnKind.TEXT),
        *_required("version", kind=ColumnKind.INTEGER),
        *_required("task", "type", "worker_group", kind=ColumnKind.TEXT),
        *_optional("worker", kind=ColumnKind.TEXT),
        *_required("attempt", kind=ColumnKind.INTEGER),
        *_required("state", kind=ColumnKind.TEXT),
        *_optional("reason", kind=ColumnKind.TEXT),  # 2,000 characters at most
        *_optional("exit_code", kind=ColumnKind.INTEGER),
        *_required("forced", kind=ColumnKind.YES_NO),
        # NULL where it did not come to that: a task that was skipped was never queued.
        *_optional("waiting_since", "queued_at", "started_at", kind=ColumnKind.TIME),
        *_required("finished_at", kind=ColumnKind.TIME),
        *_optional("cpu_s", kind=ColumnKind.NUMBER),
        *_optional("max_rss_kb", kind=ColumnKind.INTEGER),
        *_optional("error_line", "fingerprint", kind=ColumnKind.TEXT),
        _EVENT,
    ),
)

#: Instances that have ended.
INSTANCES = HistoryTable(
    name="instances",
    key=("instance_id",),
    at="finished_at",
    columns=(
        *_required("instance_id", kind=ColumnKind.INTEGER),
        *_required("project", "workflow", kind=ColumnKind.TEXT),
        *_required("version", kind=ColumnKind.INTEGER),
        *_required("state", kind=ColumnKind.TEXT),
        *_optional("reason", kind=ColumnKind.TEXT),
        # schedule, backfill, parent (a sub-workflow), rerun, or request (by a user or a program)
        *_required("trigger", kind=ColumnKind.TEXT),
        *_optional("schedule_id", "backfill_id", "parent_instance_id", kind=ColumnKind.INTEGER),
        *_required("priority", kind=ColumnKind.INTEGER),
        *_required("logical_time", "created_at", kind=ColumnKind.TIME),
        *_optional("admitted_at", "started_at", kind=ColumnKind.TIME),
        *_required("finished_at", kind=ColumnKind.TIME),
        *_optional("deadline_at", "late_at", kind=ColumnKind.TIME),
        *_required("labels", kind=ColumnKind.LABELS),
        _EVENT,
    ),
)

#: Versions of workflows that have run: which task waits for which.
PLANS = HistoryTable(
    name="plans",
    # Another workflow may have had the name before, until it was renamed.
    key=("project", "workflow", "version", "published_at"),
    at="published_at",
    columns=(
        *_required("project", "workflow", kind=ColumnKind.TEXT),
        *_required("version", kind=ColumnKind.INTEGER),
        *_required("tasks", kind=ColumnKind.TASKS),
        *_required("published_at", kind=ColumnKind.TIME),
        _EVENT,
    ),
)

#: Commands that were handled.
COMMANDS = HistoryTable(
    name="commands",
    key=("command_id",),
    at="handled_at",
    columns=(
        *_required("command_id", kind=ColumnKind.INTEGER),
        *_required("type", "project", "workflow", "requested_by", "state", kind=ColumnKind.TEXT),
        *_optional("reason", kind=ColumnKind.TEXT),
        *_optional("instance_id", "schedule_id", kind=ColumnKind.INTEGER),
        *_required("created_at", "handled_at", kind=ColumnKind.TIME),
        _EVENT,
    ),
)

#: Partitions that have changed hands.
TAKEOVERS = HistoryTable(
    name="takeovers",
    key=("takeover_id",),
    at="at",
    columns=(
        *_required("takeover_id", "partition", "epoch", kind=ColumnKind.INTEGER),
        *_required("owner", kind=ColumnKind.TEXT),
        *_optional("previous_owner", kind=ColumnKind.TEXT),
        *_required("at", kind=ColumnKind.TIME),
        _EVENT,
    ),
)

TABLES = (ATTEMPTS, INSTANCES, PLANS, COMMANDS, TAKEOVERS)
