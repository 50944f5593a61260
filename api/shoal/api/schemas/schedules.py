"""Schedules, their previews, and calendars."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, Field, StrictInt, field_validator

from shoal.api.schemas.common import Answer, RequestBody
from shoal.api.schemas.runs.bulk import ItemProblem
from shoal.core.access.authorization import Thing
from shoal.core.definition.fields import Day, Name, PriorityName, WallTime, Zone

MOST_SCHEDULES = 500  # of one request
OnGap = Literal["shift", "skip"]
OnOverlap = Literal["first", "last", "both"]


class ScheduleOut(Answer):
    """One timetable of a workflow."""

    id: int
    project: str
    workflow: str
    cron: str
    timezone: str
    parameters: dict[str, str]
    enabled: bool
    priority: PriorityName | None = Field(description="Null: the workflow's.")
    on_gap: OnGap | None = Field(
        description="What a fire time does that the clock skips. Null: this version cannot read "
        "the expression or does not know the time zone, so it does not fire."
    )
    on_overlap: OnOverlap | None = Field(
        description="Which pass counts when the clock goes back. Null as `on_gap`."
    )
    start: datetime | None = Field(description="No fire times before.")
    end: datetime | None = Field(description="No fire times from then on.")
    exclude: list[date] = Field(description="Days, in its time zone, without fire times.")
    calendar: str | None = Field(description="Of the project; its days are left out as well.")
    missed: Literal["skip", "last", "all"] = Field(
        description="What becomes of fire times that passed while no master could fire them."
    )
    missed_window: float | None = Field(description="Seconds; older ones are not made up for.")
    paused_at: datetime | None = Field(description="Since when it is paused by request.")
    next_fire_at: datetime | None = Field(description="Null: no further fire times.")
    next_fire_times: list[datetime] = Field(description="The next five, as far as there are any.")


class BulkSchedulesIn(RequestBody):
    """The request and its schedules: by id, or, without ids, by the query."""

    type: Literal["pause", "resume"]
    ids: list[StrictInt] | None = Field(default=None, min_length=1, max_length=MOST_SCHEDULES)

    @field_validator("ids")
    @classmethod
    def _positive(cls, ids: list[int] | None) -> list[int] | None:
        if any(not 0 < one < 2**63 for one in ids or ()):
            raise ValueError("ids are positive")
        return ids


class BulkSchedule(Answer):
    """What became of one of many: the schedule as it is now, or a problem."""

    id: int
    schedule: ScheduleOut | None
    problem: ItemProblem | None


class BulkSchedulesOut(Answer):
    """One result for each."""

    is_more: bool = Field(description="Whether the query means more than these; ask again.")
    items: list[BulkSchedule]


class FireTimeOut(BaseModel):
    """One fire time, or a day that is left out."""

    local: datetime = Field(description="What the clock shows in the schedule's time zone.")
    utc: datetime
    fires: bool = Field(description="False: the day is left out; it stands for the whole day.")
    marks: list[Literal["after the gap", "1st pass", "2nd pass", "left out"]] = Field(
        description="What a clock change or a calendar does to it."
    )


class PreviewOut(Answer):
    """When a schedule will fire."""

    cron: str
    timezone: str
    on_gap: OnGap
    on_overlap: OnOverlap
    fire_times: list[FireTimeOut] = Field(description="Fewer than asked for: there are no more.")


class PreviewIn(RequestBody):
    """A schedule that need not exist."""

    cron: str = Field(max_length=255)
    timezone: Zone = "UTC"
    on_gap: OnGap | None = None
    on_overlap: OnOverlap | None = None
    start: WallTime | None = None
    end: WallTime | None = None
    exclude: tuple[Day, ...] = Field(default=(), max_length=1_000)
    project: Name | None = Field(default=None, description="Whose calendar is meant.")
    calendar: Name | None = None
    n: StrictInt = Field(default=10, ge=1, le=500, description="How many lines.")

    def things(self) -> Iterator[tuple[Thing, int | str]]:
        """Yield whose calendar is meant; without one the preview is about no project."""
        if self.calendar is not None:
            yield Thing.PROJECT, self.project or "default"


class CalendarOut(Answer):
    """Days on which schedules that name it do not fire."""

    project: str
    name: str
    description: str
    days: list[date] = Field(description="Ascending.")
    updated_at: datetime


class CalendarIn(RequestBody):
    """What a calendar holds; it is replaced as a whole."""

    days: tuple[Day, ...] = Field(max_length=5_000)
    description: str = Field(default="", max_length=2000)
