"""Filters and orders of lists: of runs, of attempts and of the history.

Each filter is one model that the API takes as the parameters of a query. A field without a value
matches everything. Fields are combined with *and*, the values of one field with *or*; a run has to
have all of the labels.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shoal.core.definition.fields import LONGEST_OWNER, ONE_LINE, Priority, PriorityName
from shoal.core.definition.labels import MOST_LABELS, parse_filter
from shoal.core.runs.records import EventKind
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.runs.why.fingerprints import FINGERPRINT
from shoal.core.timing.instant import Instant

LONGEST_TEXT = 200  # characters that are looked for
RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]


@dataclass(frozen=True)
class Between:
    """``since`` <= moment < ``until``. A missing moment is in no bounded interval."""

    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None


@dataclass(frozen=True)
class Lasting:
    """Bounds of a duration in seconds; a run that has not started has none."""

    shortest_s: float | None = None
    longest_s: float | None = None

    def __bool__(self) -> bool:
        return self.shortest_s is not None or self.longest_s is not None


class ListFilter(BaseModel):
    """Base of filters: fields are the parameters of a query, with the same names."""

    model_config = ConfigDict(frozen=True)

    project: str | None = Field(default=None, description="Only for this project.")

    def __bool__(self) -> bool:
        return bool(self.model_dump(exclude_defaults=True))

    def __str__(self) -> str:
        """Return the same text for equal filters, in every process: cursors are bound to it."""
        values = self.model_dump(mode="json")
        ordered = {k: sorted(v) if isinstance(v, list) else v for k, v in values.items()}
        return json.dumps(ordered, sort_keys=True)


class LabelFilter(ListFilter):
    """A filter by labels."""

    label: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_LABELS,
        description="KEY=VALUE, or KEY for any value; repeatable: all of them are required.",
        examples=[["team=flights"]],
    )

    @field_validator("label")
    @classmethod
    def _one_value_each(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        found: dict[str, str | None] = {}
        for key, value in map(parse_filter, given):
            if found.setdefault(key, value) != value:
                raise ValueError(f"{key} cannot have two values at once")
        return given

    @property
    def labels(self) -> Mapping[str, str | None]:
        """Labels by key; None: any value."""
        return dict(map(parse_filter, self.label))


class WorkflowFilter(LabelFilter):
    """Which workflows to list."""

    search: str | None = Field(
        default=None,
        max_length=200,
        description="Part of the name or the description.",
    )
    owner: str | None = Field(
        default=None,
        max_length=LONGEST_OWNER,
        description="Whose `owner` is exactly this; empty: without an owner.",
    )
    archived: Literal["false", "true", "any"] = Field(
        default="false", description="Whether those that are archived."
    )
    state: frozenset[WorkflowState] = Field(
        default=frozenset(),
        description="Whose last run is in one of these; repeatable.",
        examples=[["FAILED"]],
    )


class RunFilter(LabelFilter):
    """What filters of runs and of attempts share."""

    workflow: str | None = Field(default=None, description="Only for this workflow.")
    started_since: Instant | None = Field(
        default=None, description="Started at this instant or later."
    )
    started_until: Instant | None = Field(default=None, description="Started before.")
    finished_since: Instant | None = Field(
        default=None, description="Ended at this instant or later."
    )
    finished_until: Instant | None = Field(default=None, description="Ended before.")
    shortest: Seconds | None = Field(
        default=None, description="Ran, or runs by now, for so many seconds or more."
    )
    longest: Seconds | None = Field(default=None, description="And no more than so many seconds.")
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_TEXT,
        pattern=ONE_LINE,
        description="In the name or the reason, in any case.",
    )

    @property
    def started(self) -> Between:
        """When it started."""
        return Between(self.started_since, self.started_until)

    @property
    def finished(self) -> Between:
        """When it ended."""
        return Between(self.finished_since, self.finished_until)

    @property
    def lasting(self) -> Lasting:
        """How long it took, or takes by now."""
        return Lasting(self.shortest, self.longest)


class InstanceFilter(RunFilter):
    """Which workflow instances to list, to count, or to act on."""

    state: frozenset[WorkflowState] = Field(
        default=frozenset(), description="Only in one of these; repeatable."
    )
    schedule_id: RowId | None = Field(
        default=None, description="Only those that this schedule fired."
    )
    backfill_id: RowId | None = Field(default=None, description="Only for this backfill.")
    parent_id: RowId | None = Field(
        default=None, description="Only those that tasks of this instance started."
    )
    rerun_of: RowId | None = Field(default=None, description="Only those that run this one again.")
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Only of this version."
    )
    priority: frozenset[PriorityName] = Field(
        default=frozenset(), description="Only of one of these; repeatable."
    )
    since: Instant | None = Field(default=None, description="Created at this instant or later.")
    until: Instant | None = Field(default=None, description="Created before.")
    logical_since: Instant | None = Field(
        default=None, description="For this logical time or a later one."
    )
    logical_until: Instant | None = Field(default=None, description="For an earlier one.")
    late: bool | None = Field(
        default=None,
        description="Only open runs that are past their deadline, or only the others.",
    )

    @property
    def priorities(self) -> frozenset[int]:
        """The numbers of the levels."""
        return frozenset(int(Priority[name]) for name in self.priority)

    @property
    def created(self) -> Between:
        """When it was created."""
        return Between(self.since, self.until)

    @property
    def logical(self) -> Between:
        """Its logical time."""
        return Between(self.logical_since, self.logical_until)


class TaskFilter(RunFilter):
    """Which attempts to list or to count; labels are those of the run."""

    state: frozenset[TaskState] = Field(
        default=frozenset(),
        description="Only in one of these; repeatable. Default: all but RESCHEDULED, of which "
        "there may be thousands.",
    )
    worker: str | None = Field(default=None, description="Only those that this worker took.")
    instance_id: RowId | None = Field(default=None, description="Only for this instance.")
    task: str | None = Field(default=None, description="Only for the task of this name.")
    type: str | None = Field(default=None, description="Only of this type, such as SHELL.")
    worker_group: str | None = Field(
        default=None, description="Only those for this group of workers."
    )
    environment: str | None = Field(
        default=None, description="Only in this environment: NAME, or NAME@VERSION."
    )
    fingerprint: str | None = Field(
        default=None,
        pattern=f"^{FINGERPRINT.pattern}$",
        description="Only those whose error line has this fingerprint.",
    )


#: What the history has besides events.
HistoryKind = StrEnum(  # type: ignore[misc]
    "HistoryKind",
    {
        **{one.name: one.value for one in EventKind},
        "COMMAND": "command",
        "PARTITION_TAKEOVER": "partition.takeover",
    },
)


class HistoryFilter(ListFilter):
    """Which events, commands and takeovers to list."""

    workflow: str | None = Field(default=None, description="Only for this workflow.")
    kind: frozenset[HistoryKind] = Field(
        default=frozenset(), description="Only of one of these; repeatable."
    )
    instance_id: RowId | None = Field(
        default=None, description="Only of this run, with takeovers of its partition."
    )
    since: Instant | None = Field(default=None, description="At this instant or later.")
    until: Instant | None = Field(default=None, description="Before.")

    @property
    def at(self) -> Between:
        """When it happened."""
        return Between(self.since, self.until)


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
