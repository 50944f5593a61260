"""What a schedule will do, for people: fire times with what a clock change or a calendar does."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from zoneinfo import ZoneInfo

from shoal.core.schedule.fire_times import Timetable
from shoal.core.timing.cron.expression import Cron
from shoal.core.timing.wallclock import change_at


class Mark(StrEnum):
    """Why a fire time is not what the wall clock would make one expect."""

    AFTER_GAP = "after the gap"  # the clock skipped its time: it fires when the gap ends
    FIRST = "1st pass"  # the clock shows this time twice; now for the first time
    SECOND = "2nd pass"
    LEFT_OUT = "left out"  # the first fire time of a day that has none: it does not fire


@dataclass(frozen=True, slots=True)
class ShownFire:
    """One fire time, in the schedule's zone."""

    moment: datetime
    marks: tuple[Mark, ...]

    @property
    def fires(self) -> bool:
        return Mark.LEFT_OUT not in self.marks


def preview(timetable: Timetable, after: datetime, count: int) -> list[ShownFire]:
    """Return the next ``count`` lines: fire times, and days left out, of which each is one line."""
    return list(islice(_lines(timetable, after), count))


def _lines(timetable: Timetable, after: datetime) -> Iterator[ShownFire]:
    whole = replace(timetable, excluded=frozenset())
    moment = whole.next(after)
    while moment is not None:
        day = moment.date()
        if day in timetable.excluded:
            yield ShownFire(moment, (Mark.LEFT_OUT,))
            moment = replace(timetable, excluded=frozenset({day})).next(moment)
        else:
            yield ShownFire(moment, marks_of(timetable.cron, moment))
            moment = whole.next(moment)


def marks_of(cron: Cron, fire_time: datetime) -> tuple[Mark, ...]:
    """Return what a clock change does to a fire time of ``cron``."""
    local = fire_time.astimezone(ZoneInfo(cron.timezone))
    if cron.makes_up(local):
        return (Mark.AFTER_GAP,)
    if change_at(local.replace(tzinfo=None, fold=0), ZoneInfo(cron.timezone)) is None:
        return ()
    return (Mark.SECOND if local.fold else Mark.FIRST,)
