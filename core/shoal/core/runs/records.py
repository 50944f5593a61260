"""What is stored, as plain values: the types that repositories take and return.

All times are aware UTC datetimes. Ids are database keys (positive integers).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from shoal.core.definition.model import Missed, WorkflowSpec
from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import Parent
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState
from shoal.core.timing.cron.expression import OnGap, OnOverlap


@dataclass(frozen=True)
class Project:
    """A name space for workflows."""

    id: int
    name: str
    description: str
    created_at: datetime
    workflows: int = 0  # how many it holds
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredBinding:
    """What a database knows of itself and of the ZooKeeper tree that it is served from.

    ``cluster`` is the cluster's uid. ``tree`` is the id of the tree, None while the database is not
    bound; ``address`` says where that tree was when it was bound, as host:port,host:port/path.
    ``beats`` grows while masters in that tree are alive. ``database`` is the database's URL without
    its password.
    """

    cluster: str
    tree: str | None
    address: str
    beats: int
    database: str


@dataclass(frozen=True)
class Watermark:
    """How far a database has come; it goes back only if commits are lost.

    ``beats`` is that of the binding. ``ids`` has the highest id of a committed row, by table.
    """

    beats: int
    ids: Mapping[str, int]

    def raised_to(self, other: "Watermark") -> "Watermark":
        """Return the higher value of each."""
        tables = sorted(self.ids.keys() | other.ids.keys())
        ids = {table: max(self.ids.get(table, 0), other.ids.get(table, 0)) for table in tables}
        return Watermark(max(self.beats, other.beats), ids)


@dataclass(frozen=True)
class DatabaseProgress:
    """What a database holds now. ``given``: the last id that each table has given out.

    ``cluster`` is the cluster's uid. An id can be given out without being committed, and a
    committed row can be deleted: so ``given`` is compared with what was committed earlier.
    """

    cluster: str
    committed: Watermark
    given: Mapping[str, int]

    def missing(self, mark: Watermark) -> dict[str, tuple[int, int]]:
        """Return what is behind ``mark``, by name: the present number and the earlier one.

        Empty: no commit is known to be lost.
        """
        found = {
            table: (self.given.get(table, 0), highest)
            for table, highest in mark.ids.items()
            if self.given.get(table, 0) < highest
        }
        if self.committed.beats < mark.beats:
            found["beats"] = (self.committed.beats, mark.beats)
        return found


@dataclass(frozen=True)
class PendingCommand:
    """A command that no master has carried out yet."""

    id: int
    partition: int
    created_at: datetime


@dataclass(frozen=True)
class SecretInfo:
    """A secret of a project without its value, which only tasks are ever given.

    ``reference``: where it is, if it is kept in another store.
    """

    name: str
    created_at: datetime
    updated_at: datetime
    reference: str | None = None


@dataclass(frozen=True)
class StoredWorkflow:
    """A workflow and its newest version; older versions stay readable."""

    id: int
    project: str
    name: str
    texts: Mapping[str, str]  # by their names in ``HEAD_TEXTS``
    version: int
    digest: str
    tasks: int
    created_at: datetime
    updated_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict)
    archived_at: datetime | None = None  # nothing starts


@dataclass(frozen=True)
class WorkflowVersion:
    """One published version; never changes."""

    workflow_id: int
    project: str
    name: str
    version: int
    spec: WorkflowSpec
    digest: str
    created_at: datetime
    published_by: str | None = None
    source: str | None = None  # the YAML that it was published from
    archived_at: datetime | None = None  # of the workflow


@dataclass(frozen=True)
class Instance:
    """One workflow instance without its tasks."""

    id: int
    workflow_id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None
    partition: int
    priority: int
    parameters: Mapping[str, str]
    logical_time: datetime
    timezone: str  # of date expressions; the schedule's, else the workflow's
    command_id: int
    rerun_of: int | None  # the instance that this one runs again
    run_number: int  # 1, or one more than the instance it runs again
    schedule_id: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    startup: Mapping[str, str] = field(default_factory=dict)  # parameters given at the launch
    selection: Selection | None = None
    parent: Parent | None = None
    backfill_id: int | None = None
    admitted_at: datetime | None = None  # None: waits until others of its workflow have ended
    warned_at: datetime | None = None
    deadline_at: datetime | None = None  # when it should have ended

    def is_late(self, now: datetime) -> bool:
        """Whether it goes on although it should have ended."""
        if self.deadline_at is None or self.state in FINISHED_WORKFLOW:
            return False
        return now >= self.deadline_at


@dataclass(frozen=True)
class NewInstance:
    """An instance about to be created, with one WAITING attempt for every task of its version."""

    command_id: int
    workflow_id: int
    version: int
    partition: int
    priority: int
    parameters: Mapping[str, str]
    logical_time: datetime
    created_at: datetime
    timezone: str = "UTC"
    rerun_of: int | None = None
    run_number: int = 1
    schedule_id: int | None = None
    startup: Mapping[str, str] = field(default_factory=dict)
    selection: Selection | None = None
    parent: Parent | None = None
    backfill_id: int | None = None
    admitted_at: datetime | None = None
    deadline_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskInstance:
    """One attempt of one task of an instance."""

    id: int
    workflow_instance_id: int
    project: str
    workflow: str
    task: str
    type: str
    attempt: int
    state: TaskState
    worker_group: str
    worker: str | None
    reason: str | None
    exit_code: int | None
    due_at: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    looks: int = 0
    waiting_since: datetime | None = None
    skip_cause: SkipCause | None = None
    forced: bool = False
    warned_at: datetime | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    environment: str | None = None
    cpu_s: float | None = None  # of all its processes
    max_rss_kb: int | None = None  # of the largest of them
    error_line: str | None = None  # of its log, when it failed or was lost
    fingerprint: str | None = None  # of ``error_line``: see ``fingerprints``


@dataclass(frozen=True)
class PartitionRow:
    """The last owner of a partition. ``epoch`` only grows; 0: there was never one."""

    index: int
    epoch: int
    owner: str | None


@dataclass(frozen=True)
class Takeover:
    """A partition has changed hands. ``previous_owner`` None: it had none before."""

    id: int
    at: datetime
    partition: int
    epoch: int
    owner: str
    previous_owner: str | None


@dataclass(frozen=True)
class StoredSchedule:
    """One timetable of a workflow. ``next_fire_at`` None: it never fires again."""

    id: int
    workflow_id: int
    project: str
    workflow: str
    partition: int
    cron: str
    timezone: str
    parameters: Mapping[str, str]
    enabled: bool
    next_fire_at: datetime | None
    priority: int | None = None
    on_gap: OnGap | None = None
    on_overlap: OnOverlap | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    exclude: tuple[date, ...] = ()
    calendar: str | None = None
    missed: Missed = Missed.LAST
    missed_window: float | None = None  # seconds
    paused_at: datetime | None = None  # by request; it does not fire
    expected_since: datetime | None = None  # from when on it has had to fire at these times


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


@dataclass(frozen=True)
class ChangeEvent:
    """One line of the history that the live event stream replays, in order of ``id``."""

    id: int
    at: datetime
    kind: str  # instance.state, instance.late, task.state, task.overdue, workflow.published …
    project: str
    workflow_instance_id: int | None
    task_instance_id: int | None
    data: Mapping[str, Any]


class WorkflowOrder(StrEnum):
    """How a list of workflows is sorted."""

    NAME = "name"  # by project and name
    CHANGED = "-updated_at"  # the one that was changed last first
    # What no index has the order of: see ``MOST_RANKED``.
    LAST_RUN = "-last_run"  # the latest logical time of a run first
    NEXT_FIRE = "next_fire"  # the one that fires next first
    FAILING = "failing"  # those whose last run has failed first

    @property
    def is_ranked(self) -> bool:
        """Whether all that the filters leave has to be read to find the first."""
        return self not in (WorkflowOrder.NAME, WorkflowOrder.CHANGED)


Place = tuple[str, str] | tuple[datetime, int]


def place_of(found: StoredWorkflow, order: WorkflowOrder) -> Place:
    """Return where a list of workflows continues behind one."""
    return (
        (found.project, found.name) if order is WorkflowOrder.NAME else (found.updated_at, found.id)
    )
