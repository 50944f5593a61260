"""What lists of runs and of attempts are limited to, and in which order they come.

None, or nothing in a set, means that any will do. What is given is combined with *and*; several
values of one field with *or*, but labels, all of which a run has to have.
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shoal.core.runs.states import TaskState, WorkflowState


@dataclass(frozen=True)
class Between:
    """``since`` <= moment < ``until``. What has no such moment yet is in no bounded interval."""

    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None


ANY_TIME = Between()


@dataclass(frozen=True)
class Lasting:
    """How long it ran, in seconds, or runs by now; what has not started has not run at all."""

    shortest_s: float | None = None
    longest_s: float | None = None

    def __bool__(self) -> bool:
        return self.shortest_s is not None or self.longest_s is not None


ANY_DURATION = Lasting()


@dataclass(frozen=True)
class InstanceFilter:
    """Which workflow instances are meant."""

    project: str | None = None
    workflow: str | None = None
    states: frozenset[WorkflowState] = frozenset()
    labels: Mapping[str, str | None] = field(default_factory=dict)  # None: any value
    schedule_id: int | None = None
    backfill_id: int | None = None
    parent_id: int | None = None  # the instance whose tasks have started it
    rerun_of: int | None = None
    version: int | None = None
    priorities: frozenset[int] = frozenset()
    created: Between = ANY_TIME
    logical: Between = ANY_TIME
    started: Between = ANY_TIME
    finished: Between = ANY_TIME
    lasting: Lasting = ANY_DURATION
    text: str | None = None  # in the workflow's name or the reason, whatever the case of letters
    late: bool | None = None  # goes on beyond its deadline, or does not


@dataclass(frozen=True)
class WorkflowFilter:
    """Which workflows to list.

    ``search``: text that the name or the description contains, in any case. ``visible``: ids of
    the projects that may be shown; None: all. ``labels``: each a key with a value, None for any.
    ``archived`` None: both. ``states``: of the last run. ``owner``: the exact text; empty: those
    without one.
    """

    project: str | None = None
    search: str | None = None
    visible: Set[int] | None = None
    labels: Collection[tuple[str, str | None]] = ()
    archived: bool | None = None
    states: Collection[WorkflowState] = ()
    owner: str | None = None


@dataclass(frozen=True)
class TaskFilter:
    """Which attempts are meant. No ``states``: any but RESCHEDULED, of which may be thousands."""

    project: str | None = None
    workflow: str | None = None
    states: frozenset[TaskState] = frozenset()
    labels: Mapping[str, str | None] = field(default_factory=dict)  # of the run
    worker: str | None = None
    instance_id: int | None = None
    task: str | None = None
    type: str | None = None
    worker_group: str | None = None
    environment: str | None = None  # NAME or NAME@VERSION
    fingerprint: str | None = None  # of the error line
    started: Between = ANY_TIME
    finished: Between = ANY_TIME
    lasting: Lasting = ANY_DURATION
    text: str | None = None  # in the task's name or the reason, whatever the case of letters


class EventKind(StrEnum):
    """What an event is about."""

    INSTANCE_STATE = "instance.state"
    INSTANCE_OVERDUE = "instance.overdue"
    INSTANCE_LATE = "instance.late"
    TASK_STATE = "task.state"
    TASK_OVERDUE = "task.overdue"
    TASK_DETAIL = "task.detail"  # something about an attempt but its state
    BACKFILL_STATE = "backfill.state"
    SCHEDULE_STATE = "schedule.state"  # paused, resumed, or fire times were skipped
    ALERT_CONDITION = "alert.condition"  # what a rule watches has begun or ceased to hold
    ALERT_STATE = "alert.state"
    ALERT_DELIVERY = "alert.delivery"  # what came of an attempt to send a message
    WORKFLOW_PUBLISHED = "workflow.published"
    WORKFLOW_RENAMED = "workflow.renamed"
    WORKFLOW_ARCHIVED = "workflow.archived"
    WORKFLOW_UNARCHIVED = "workflow.unarchived"
    WORKFLOW_DELETED = "workflow.deleted"


#: What the history has besides events.
HistoryKind = StrEnum(  # type: ignore[misc]
    "HistoryKind",
    {
        **{one.name: one.value for one in EventKind},
        "COMMAND": "command",
        "PARTITION_TAKEOVER": "partition.takeover",
    },
)


@dataclass(frozen=True)
class HistoryFilter:
    """What of the history is looked for. No ``kinds``: all. ``partition``: that of the instance.

    ``with_takeovers``: of all partitions, where no instance is named.
    """

    kinds: Set[str] = frozenset()
    project: str | None = None
    workflow: str | None = None
    instance_id: int | None = None
    at: Between = ANY_TIME
    with_takeovers: bool = False


class SortKey(StrEnum):
    """What a list is in the order of; of equal ones the ids decide."""

    CREATED = "created_at"  # attempts: in the order of their ids
    LOGICAL = "logical_time"  # instances of one workflow alone
    # The others are in no index: see ``MOST_RANKED``.
    STARTED = "started_at"
    FINISHED = "finished_at"
    DURATION = "duration"
    PRIORITY = "priority"  # instances alone


#: So many that a filter leaves can be put into an order that no index has.
MOST_RANKED = 5_000
#: One call looks through so many, at most, for those that a filter means.
SIFTED = 2_000
#: Nothing is counted any further.
MOST_COUNTED = 1_000


@dataclass(frozen=True)
class SortOrder:
    """The order of a list, falling unless ``is_rising``. What has no value comes last."""

    key: SortKey = SortKey.CREATED
    is_rising: bool = False

    @property
    def is_ranked(self) -> bool:
        """Whether all that the filter leaves has to be read to find the first."""
        return self.key not in (SortKey.CREATED, SortKey.LOGICAL)


NEWEST_FIRST = SortOrder()


@dataclass(frozen=True)
class Count:
    """How many there are, up to ``MOST_COUNTED``; ``is_more``: at least so many."""

    count: int
    is_more: bool = False
