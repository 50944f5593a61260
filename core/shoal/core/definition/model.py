"""What a workflow *is*: one versioned model behind YAML files, the Python SDK and REST JSON.

Field names here are the field names everywhere. Durations are seconds (float) once parsed;
files may write "90s" or "10m". Types of tasks are plugins; see ``task_types``.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, field_validator, model_validator

from shoal.core.definition import long_json
from shoal.core.definition.deadline import Deadline
from shoal.core.definition.environments import DefaultEnvironment
from shoal.core.definition.fields import (
    Day,
    Duration,
    Level,
    Name,
    Owner,
    ParameterName,
    Priority,
    RefersTo,
    Strict,
    WallTime,
    Zone,
    scalar_text,
)
from shoal.core.definition.labels import Labels
from shoal.core.definition.parameters import ParameterSpec
from shoal.core.definition.resources import (
    MOST_PUBLISHED,
    MOST_REFERENCES,
    PlainPath,
    ResourceReference,
)
from shoal.core.timing.cron import expression

# Refused before any graph work: enough for any real workflow, small enough to decide upon.
MAX_TASKS = 20_000  # of a stored definition; ``checks`` says how many a new one may have


class FailureStrategy(StrEnum):
    """What the other tasks do once a task has finally failed."""

    CONTINUE = "continue"  # everything that does not depend on the failed task runs
    FINISH_RUNNING = "finish_running"  # nothing new starts; running tasks finish
    FAIL_FAST = "fail_fast"  # running tasks are killed
    IGNORE = "ignore"  # downstream tasks run as if it had succeeded


class RunWhen(StrEnum):
    """When a task starts, judged by its upstream tasks."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"  # whatever their results
    ONE_SUCCESS = "one_success"  # at once when the first one succeeds
    ANY_FAILED = "any_failed"  # at once when the first one fails
    ALWAYS = "always"  # as all_done, and even while the workflow is failing fast


class TimeoutAction(StrEnum):
    """What happens to a task that runs longer than its ``timeout``."""

    FAIL = "fail"  # it is killed and has failed; retries follow as after any failure
    WARN = "warn"  # it runs on; a warning is recorded once
    BOTH = "both"


class WorkflowTimeoutAction(StrEnum):
    """What happens to an instance that runs longer than its workflow's ``timeout``."""

    WARN = "warn"  # it runs on; a warning is recorded once
    STOP = "stop"  # it is stopped, as by request, with the reason
    BOTH = "both"


class Overlap(StrEnum):
    """What happens to a new run while ``max_active`` runs of the workflow are active."""

    ALLOW = "allow"  # all run side by side; ``max_active`` does not count
    QUEUE = "queue"  # it waits; first come, first served
    QUEUE_BY_PRIORITY = "queue_by_priority"  # it waits; highest priority first, then oldest
    QUEUE_LATEST = "queue_latest"  # it waits; those that waited before are stopped
    SKIP_NEW = "skip_new"  # it is refused
    REPLACE = "replace"  # the oldest active ones are stopped; it starts once they have ended


class Missed(StrEnum):
    """What becomes of fire times that passed while no master was there to fire them."""

    SKIP = "skip"  # they do not fire
    LAST = "last"  # only the newest fires
    ALL = "all"  # each fires, the oldest first


class BackfillBase(StrEnum):
    """The instant that dates are relative to in a backfill's run of one day."""

    LOGICAL_TIME = "logical_time"  # as in every other run: the business date is the day before
    NEXT_DAY = "next_day"  # as EasyScheduler 1.x complemented: the business date is the day itself


class TaskSpec(Strict):
    """One node of the DAG."""

    name: Name
    type: str
    params: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[ParameterName, str] = Field(
        default_factory=dict, description="Parameters of this task, by name."
    )
    depends_on: tuple[Name, ...] = ()
    run_when: RunWhen = Field(
        default=RunWhen.ALL_SUCCESS,
        description="When it starts, by the result of the tasks before it.",
    )
    description: str = Field(default="", description="Purpose of the task.")
    enabled: StrictBool = Field(
        default=True, description="Off: excluded from runs; the order through it is kept."
    )
    priority: Level = Field(
        default=Priority.MEDIUM,
        description="Order among waiting tasks.",
        json_schema_extra={"default": Priority.MEDIUM.name},
    )
    worker_group: Annotated[Name, RefersTo("worker-group")] = Field(
        default="default", description="Workers that run it."
    )
    # None: the workflow's; "none": no environment
    environment: Annotated[Name, RefersTo("environment")] | None = Field(
        default=None, description="Variables, Python and setup for its program."
    )
    concurrency_group: Annotated[Name, RefersTo("concurrency-group")] | None = Field(
        default=None, description="Group whose slots limit how many tasks run at once."
    )
    delay: Duration = Field(default=0.0, description="Delay between ready and queued.")
    retries: StrictInt = Field(
        default=0, ge=0, le=100, description="Further attempts after a failure."
    )
    retry_delay: Duration = Field(
        default=0.0, description="Delay before the first retry: 30s, 10m, 1h30m."
    )
    retry_backoff: StrictFloat = Field(
        default=1.0, ge=1, le=100, description="Factor by which the delay grows with each retry."
    )
    retry_max_delay: Duration | None = Field(default=None, description="Maximum delay.")
    retry_jitter: StrictFloat = Field(
        default=0.0, ge=0, le=1, description="Random share of the delay that is added."
    )
    timeout: Duration | None = Field(
        default=None, gt=0, description="Limit for one attempt: 10m, 2h."
    )
    timeout_action: TimeoutAction = Field(
        default=TimeoutAction.FAIL, description="Action when an attempt exceeds the limit."
    )
    outputs_from_log: StrictBool = Field(
        default=False, description="Lines ${setValue(name=value)} of its log set outputs."
    )
    # Files of the project that are copied into the attempt's folder before it starts.
    resources: tuple[Annotated[ResourceReference, RefersTo("resource")], ...] = Field(
        default=(),
        max_length=MOST_REFERENCES,
        description="Project files that are copied into its folder.",
    )
    # Files that the attempt leaves in its folder, and the resources that they become when it has
    # succeeded.
    publish: dict[PlainPath, PlainPath] = Field(
        default_factory=dict,
        max_length=MOST_PUBLISHED,
        description="Files it produces, and the resources they become.",
    )

    @field_validator("depends_on", "resources", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("parameters", mode="before")
    @classmethod
    def _scalars_as_text(cls, value: Any) -> Any:
        return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value


class ScheduleSpec(Strict):
    """One timetable of a workflow: it starts the newest published version at each fire time."""

    cron: str = Field(max_length=255)
    timezone: Zone | None = None  # None: the workflow's
    parameters: dict[ParameterName, str] = Field(
        default_factory=dict, description="Parameters of each start."
    )
    enabled: StrictBool = Field(default=True, description="Off: it does not fire.")
    priority: Level | None = Field(default=None, description="Order among waiting tasks.")
    # None: by the kind of expression, see ``cron``.
    on_gap: Literal["shift", "skip"] | None = None
    on_overlap: Literal["first", "last", "both"] | None = None
    # Validity: start <= fire time < end. Without an offset they are in the schedule's time zone.
    start: WallTime | None = Field(default=None, description="No fire times before this time.")
    end: WallTime | None = Field(default=None, description="No fire times from this time on.")
    # Days, in the schedule's time zone, without fire times.
    exclude: tuple[Day, ...] = Field(
        default=(), max_length=1_000, description="Days without fire times: 2026-12-24."
    )
    # Of the project; its days are excluded as well.
    calendar: Annotated[Name, RefersTo("calendar")] | None = Field(
        default=None, description="Its days are excluded."
    )
    missed: Missed = Field(
        default=Missed.LAST,
        description="What to do with fire times that passed while no master was running.",
    )
    missed_window: Duration | None = Field(
        default=None, description="Older missed fire times are ignored."
    )

    @field_validator("parameters", mode="before")
    @classmethod
    def _scalars_as_text(cls, value: Any) -> Any:
        return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _cron_parses(self) -> Self:
        expression.parse(
            self.cron, self.timezone or "UTC", on_gap=self.on_gap, on_overlap=self.on_overlap
        )
        return self


class WorkflowHead(Strict):
    """The part of a definition that lists show.

    A further text needs a column of the same name in ``workflow``; publishing, lists and the API
    take it from here.
    """

    project: Name = "default"
    name: Name
    description: str = Field(default="", description="Purpose of the workflow.")
    owner: Owner = Field(default="", description="Contact: a name, a team or an address.")
    labels: Labels = Field(default_factory=dict, description="Labels for filtering lists.")


#: Names of the texts of a head.
HEAD_TEXTS = tuple(
    name for name in WorkflowHead.model_fields if name not in ("project", "name", "labels")
)


class WorkflowSpec(WorkflowHead):
    """A whole workflow definition as one version stores it."""

    parameters: dict[ParameterName, ParameterSpec] = Field(
        default_factory=dict, description="By name: a default, or {default, type, description}."
    )
    timezone: Zone = Field(
        default="UTC", description="Time zone of dates, and of schedules without their own."
    )
    priority: Level = Field(
        default=Priority.MEDIUM,
        description="Order among waiting tasks.",
        json_schema_extra={"default": Priority.MEDIUM.name},
    )
    on_failure: FailureStrategy = Field(
        default=FailureStrategy.CONTINUE, description="What other tasks do after one has failed."
    )
    timeout: Duration | None = Field(
        default=None, gt=0, description="Limit for a run, from its start."
    )
    timeout_action: WorkflowTimeoutAction = Field(
        default=WorkflowTimeoutAction.WARN, description="Action when a run exceeds the limit."
    )
    deadline: Deadline | None = Field(
        default=None,
        description="When a run should have ended: 4h after its due time, or a time of day such as "
        "08:00. Late runs are flagged, not stopped.",
    )
    overlap: Overlap = Field(
        default=Overlap.ALLOW, description="What a new run does while others are active."
    )
    max_active: StrictInt = Field(
        default=1, ge=1, le=10_000, description="Parallel runs, unless overlap is allow."
    )
    max_queued: StrictInt = Field(
        default=1_000, ge=1, le=100_000, description="Runs that may wait; further runs are refused."
    )
    backfill_base: BackfillBase = Field(
        default=BackfillBase.LOGICAL_TIME, description="What dates in backfills are relative to."
    )
    # Of tasks that name none.
    environment: Annotated[DefaultEnvironment, RefersTo("environment")] | None = Field(
        default=None, description="Variables, Python and setup for its program."
    )
    schedules: tuple[ScheduleSpec, ...] = ()
    tasks: tuple[TaskSpec, ...] = Field(min_length=1, max_length=MAX_TASKS)

    @field_validator("parameters", mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            k: v if isinstance(v, dict | ParameterSpec) else {"default": v}
            for k, v in value.items()
        }

    def canonical(self) -> dict[str, Any]:
        """Return the definition as plain JSON values without defaults, for storing and diffs."""
        content = self.model_dump(mode="json", exclude_defaults=True, exclude={"tasks"})
        # One by one: thousands of them are long work, which may be done in a thread.
        content["tasks"] = [
            one.model_dump(mode="json", exclude_defaults=True) for one in self.tasks
        ]
        return content

    def digest(self) -> str:
        """SHA-256 of the canonical form (hex): equal digests mean nothing changed."""
        return digest_of(self.canonical())


def digest_of(canonical: Mapping[str, Any]) -> str:
    """Return the digest of a definition's canonical form."""
    found = hashlib.sha256()
    for piece in long_json.pieces(canonical):
        found.update(piece.encode())
    return found.hexdigest()
