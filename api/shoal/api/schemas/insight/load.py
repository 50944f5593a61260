"""How full the cluster is, and in which minutes schedules fire."""

from datetime import date

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.api.schemas.insight.window import WindowOut


class LoadCellOut(Answer):
    """An hour of a weekday."""

    weekday: int = Field(description="0: Monday.")
    hour: int = Field(description="0 to 23, UTC.")
    days: int = Field(description="How many such days of the window have results.")
    running_mean: float
    running_max: int
    waiting_mean: float
    waiting_max: int
    needed_max: int = Field(
        description="The most that ran or waited at once: with so many slots none would have "
        "waited."
    )


class LoadGroupOut(Answer):
    """The heat map of a worker group."""

    worker_group: str
    cells: list[LoadCellOut] = Field(
        description="By weekday and hour: all 24 hours of each weekday that has results."
    )


class WorkerLoadOut(Answer):
    """A worker in the window."""

    worker: str
    days: int = Field(description="On which it worked.")
    attempts: int
    failed: int
    lost: int
    busy_s: float
    hours: int = Field(description="In which it worked.")
    slots: int = Field(description="The most attempts at the same time.")
    utilisation: float | None = Field(
        description="`busy_s` divided by the seconds of slots of the hours in which it worked."
    )


class ForecastOut(Answer):
    """How many slots an hour to come will need."""

    forecast_day: date
    hour: int
    worker_group: str
    slots: int = Field(description="Enough in 95 of 100 such hours.")
    expected: float = Field(description="The median.")
    tested_hours: int | None = Field(
        description="How many hours of the last 4 weeks were forecast to test it; null, as the "
        "next two: less than three weeks of history."
    )
    error_p50: float | None = Field(description="The median error of these, in slots.")
    within_p95: float | None = Field(description="The share that needed no more than `slots`.")


class LoadOut(WindowOut):
    """How full the cluster was, by hour of the week and by worker, and what is to come."""

    groups: list[LoadGroupOut]
    workers: list[WorkerLoadOut] = Field(description="The busiest first.")
    forecast_of: date | None = Field(
        description="As of which day the forecast is; null: there is none."
    )
    forecast: list[ForecastOut] = Field(description="Of the 7 days after that.")


class ScheduleMinuteOut(Answer):
    """A minute in which schedules fire, of the last 28 days."""

    scope: str = Field(description="`day`: minutes 0 to 1439, UTC; `hour`: 0 to 59 of any hour.")
    minute: int
    starts_mean: float = Field(description="By day.")
    starts_max: int = Field(description="On one day.")
    skew_p50_s: float | None = Field(description="From the logical time to the start of the run.")
    skew_p95_s: float | None
    skew_max_s: float | None
    is_hot: bool = Field(
        description="Among the 20 fullest and thrice as full as the average minute."
    )


class ScheduleMoveOut(Answer):
    """A schedule that would better fire some minutes earlier or later."""

    place: int = Field(description="The most useful is 1, of those that the caller sees.")
    schedule_id: int
    project: str
    workflow: str
    minute: int = Field(description="Of the day, UTC, that it relieves.")
    move_min: int = Field(description="By so many minutes; negative: earlier.")
    starts_per_day: float
    highest_before: float | None = Field(
        description="The most starts to be expected in one minute, without this move; null: the "
        "caller does not see the cluster."
    )
    highest_after: float | None = Field(description="With it and all before it.")


class ScheduleMinutesOut(Answer):
    """Hot minutes, and which schedules to move."""

    until: date | None = Field(description="As of which day; null: there are no results yet.")
    minutes: list[ScheduleMinuteOut] | None = Field(
        description="Null: they are of all projects, and the caller does not see the cluster."
    )
    moves: list[ScheduleMoveOut] = Field(description="Of schedules that the caller sees.")
