"""Quiet hours, who is on duty, and when a message is tried again."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, PlainSerializer

from shoal.core.definition.fields import Day, Strict, Zone
from shoal.core.timing.wallclock import first_instant_from

MOST_TRIES = 12  # of a message: with the pauses below some four hours
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 3600.0
_WEEK = timedelta(days=7)


class Weekday(StrEnum):
    """Days of the week, Monday first."""

    MON = "MON"
    TUE = "TUE"
    WED = "WED"
    THU = "THU"
    FRI = "FRI"
    SAT = "SAT"
    SUN = "SUN"


_DAYS = tuple(Weekday)


def _clock(value: Any) -> Any:
    if isinstance(value, time):
        return value
    try:
        if not isinstance(value, str) or len(value) != len("HH:MM"):
            raise ValueError
        return time.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a time of day such as 22:00") from None


ClockTime = Annotated[
    time,
    BeforeValidator(_clock, json_schema_input_type=str),
    PlainSerializer(lambda value: f"{value:%H:%M}", return_type=str),
]


class QuietHours(Strict):
    """Hours of some days, in a zone. ``until`` may be earlier than ``since``: the next day."""

    since: ClockTime
    until: ClockTime
    days: tuple[Weekday, ...] = Field(
        default=_DAYS, min_length=1, description="On which it begins."
    )
    timezone: Zone = "UTC"

    def end(self, at: datetime) -> datetime | None:
        """Return when the quiet hours that ``at`` lies in are over; None: it lies in none."""
        zone = ZoneInfo(self.timezone)
        today = at.astimezone(zone).date()
        for day in (today - timedelta(days=1), today):
            if weekday_of(day) in self.days:
                last = day if self.since < self.until else day + timedelta(days=1)
                start, end = instant(day, self.since, zone), instant(last, self.until, zone)
                if start <= at < end:
                    return end
        return None


class Rotation(Strict):
    """Who is on duty, week by week: of the members one after the other, again and again.

    The first one has the week that begins on ``start`` at ``at``; before that, too.
    """

    start: Day = Field(description="The day on which the first member begins.")
    at: ClockTime = time(9)
    timezone: Zone = "UTC"
    weeks: int = Field(default=1, ge=1, le=52, description="How many each has at a time.")

    def on_duty(self, members: int, at: datetime) -> int:
        """Return which of ``members`` (at least 1) is on duty, by number."""
        zone = ZoneInfo(self.timezone)
        passed = (at.astimezone(zone).date() - self.start) // _WEEK
        if at < instant(self.start + passed * _WEEK, self.at, zone):
            passed -= 1
        return max(0, passed) // self.weeks % members


def weekday_of(day: date) -> Weekday:
    """Return the day of the week."""
    return _DAYS[day.weekday()]


def quiet_until(quiet: Sequence[QuietHours], at: datetime) -> datetime | None:
    """Return when all quiet hours that follow one another are over; None: there are none now."""
    found: datetime | None = None
    for _ in range(len(quiet) + 1):
        ends = [end for one in quiet if (end := one.end(found or at)) is not None]
        if not ends:
            break
        found = max(ends)
    return found


def pause_s(tries: int) -> float | None:
    """Return the seconds before another try after ``tries`` failed ones; None: give up."""
    if tries >= MOST_TRIES:
        return None
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (tries - 1))


def later(moment: datetime, seconds: float) -> datetime | None:
    """Return the time so many seconds after an aware ``moment``; None: beyond the year 9999."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None


def instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return when a clock of a zone shows a time; one that it skips is when it skips it."""
    return first_instant_from(datetime.combine(day, at), zone).astimezone(UTC)
