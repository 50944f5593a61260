"""Conditions: what no event tells, because it is something that has not happened.

A condition holds or does not; alert servers look again and again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from shoal.core.alerts.times import ClockTime, Weekday, instant, weekday_of
from shoal.core.definition.fields import Duration, Strict, Zone
from shoal.core.timing.durations import format_duration
from shoal.core.timing.wallclock import shown_in

FEWEST_RUNS = 5  # from which a usual time is derived
MOST_RUNS = 365
_LONGEST_MARGIN_S = 24 * 3600.0
_DAY = timedelta(days=1)
_DAYS_BACK = (
    9  # so far back the last deadline is looked for: a week, and what reaches over midnight
)


@dataclass(frozen=True)
class DueCondition:
    """A deadline that has passed. A run counts if its logical time is later than ``since``."""

    day: date
    at: datetime
    since: datetime


@dataclass(frozen=True)
class WatchedRun:
    """When a run was for, and when it began or ended."""

    logical_time: datetime
    at: datetime


class Deadline(Strict):
    """A time of day by which a run of the day has begun or succeeded; fixed, or a usual one.

    With ``at`` the runs of the 24 hours before it count, by their logical times. With
    ``percentile`` the runs of the calendar day count; the deadline is when so many of the last
    ``runs`` had begun or ended, by the clock, and ``margin`` later.
    """

    at: ClockTime | None = Field(default=None, description="Such as 07:30.")
    percentile: float | None = Field(
        default=None, ge=50, le=100, description="Such as 95: when so many are usually done."
    )
    runs: int = Field(default=30, ge=FEWEST_RUNS, le=MOST_RUNS, description="To learn from.")
    margin: Duration = Field(default=0.0, le=_LONGEST_MARGIN_S, description="Such as 10m.")
    days: tuple[Weekday, ...] = Field(default=tuple(Weekday), min_length=1)
    timezone: Zone = "UTC"

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "Deadline":
        if (self.at is None) is (self.percentile is None):
            raise ValueError("deadline: set either at or percentile")
        return self

    def last(self, now: datetime, past: Sequence[WatchedRun]) -> DueCondition | None:
        """Return the last deadline that has passed; None: there is none.

        ``past``: the last runs, in any order; too few of them on the deadline's days say nothing.
        """
        zone = ZoneInfo(self.timezone)
        offset = None if self.percentile is None else self._usual(past, zone)
        if self.percentile is not None and offset is None:
            return None
        today = now.astimezone(zone).date()
        for back in range(_DAYS_BACK):
            day = today - back * _DAY
            if weekday_of(day) not in self.days:
                continue
            if self.at is not None:
                at, since = instant(day, self.at, zone), instant(day - _DAY, self.at, zone)
            else:
                assert offset is not None, "returned above"
                since = instant(day, time(0), zone)
                at = _later(since, offset)
                since -= timedelta(microseconds=1)
            if at <= now:
                return DueCondition(day, at, since)
        return None

    def _usual(self, past: Sequence[WatchedRun], zone: ZoneInfo) -> timedelta | None:
        """Return how long after the midnight of their days runs are there, but for the slowest.

        Runs that were there after more than a day made up for an outage, and say nothing, unless
        most runs take that long.
        """
        offsets = []
        for one in past:
            try:
                day = one.logical_time.astimezone(zone).date()
                midnight = instant(day, time(0), zone)
            except OverflowError:  # at the ends of the calendar: a day that nothing is learnt from
                continue
            if weekday_of(day) in self.days:
                offsets.append(one.at - midnight)
        of_a_day = [one for one in offsets if one <= _DAY]
        if len(of_a_day) * 2 >= len(offsets):
            offsets = of_a_day
        if len(offsets) < FEWEST_RUNS or self.percentile is None:
            return None
        place = math.ceil(len(offsets) * self.percentile / 100)
        return sorted(offsets)[place - 1] + timedelta(seconds=self.margin)


class SuccessRate(Strict):
    """How many of the last runs of a workflow have to succeed; those that were stopped are none."""

    below: float = Field(gt=0, le=1, description="Such as 0.9.")
    runs: int = Field(default=20, ge=2, le=1000, description="That have ended last.")

    def problem(self, outcomes: Sequence[bool]) -> str | None:
        """Return what is wrong; None: nothing, or there are too few outcomes to judge."""
        last = outcomes[: self.runs]
        if len(last) < self.runs or sum(last) / len(last) >= self.below:
            return None
        return f"{sum(last)} of the last {len(last)} runs succeeded; {self.below:.0%} are wanted"


def _later(moment: datetime, by: timedelta) -> datetime:
    """Return ``moment + by``, or the end of the calendar that it would lie beyond."""
    try:
        return moment + by
    except OverflowError:
        end = datetime.max if by > timedelta(0) else datetime.min
        return end.replace(tzinfo=UTC)


def missed(due: DueCondition, what: str, timezone: str) -> str:
    """Return the reason of an alert about a deadline; ``what`` has not happened."""
    at = shown_in(due.at, ZoneInfo(timezone))
    return f"no run for {due.day} has {what} by {at:%Y-%m-%d %H:%M} {timezone}"


def silent(last: datetime | None, longest_s: float, now: datetime) -> str | None:
    """Return what is wrong if nothing has succeeded for so long; ``last``: None, or when."""
    if last is not None and (now - last).total_seconds() < longest_s:
        return None
    when = "no run has ever succeeded" if last is None else f"the last success was {_time(last)}"
    return f"no success for {format_duration(longest_s)}: {when}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
