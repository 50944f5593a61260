"""When runs start: fire times, requests by chance, and runs of a recorded day."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shoal.insight.simulate.engine.chance import mixed
from shoal.insight.simulate.engine.workflow import SimulatedWorkflow, TimedStart
from shoal.insight.simulate.model import hour_of_week

_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One run that starts. ``key`` names it for draws, whatever else is simulated."""

    at: datetime  # UTC
    workflow: str
    key: int
    logical_time: datetime
    timezone: str
    priority: int | None = None  # None: the workflow's
    schedule: TimedStart | None = None
    parameters: Mapping[str, str] | None = None  # None: those of the schedule, or none
    is_free: bool = False  # starts whatever other runs there are


def fired(
    workflow: SimulatedWorkflow, schedule: TimedStart, start: datetime, end: datetime, seed: int
) -> Iterator[Arrival]:
    """Yield the runs of a schedule, from ``start`` (included) to ``end`` (not included)."""
    shift = schedule.shift
    for fire_time in schedule.timetable.between(start - shift, end - shift):
        moment = fire_time.astimezone(UTC)
        number = (moment - _EPOCH) // _MICROSECOND
        yield Arrival(
            moment + shift,
            workflow.name,
            mixed(seed, workflow.key, schedule.index, number),
            moment + shift,
            schedule.timezone,
            schedule.priority,
            schedule,
        )


def requested(
    workflow: SimulatedWorkflow, start: datetime, end: datetime, seed: int
) -> Iterator[Arrival]:
    """Yield runs that are asked for by chance: in each hour a Poisson process of its own rate."""
    hour = start.replace(minute=0, second=0, microsecond=0)
    while workflow.requests and hour < end:
        rate = workflow.requests.get(hour_of_week(hour), 0.0)
        number = (hour - _EPOCH) // _HOUR
        chance = random.Random(mixed(seed, workflow.key, -1, number))
        offset_s = 0.0
        count = 0
        while rate:
            offset_s -= math.log(1.0 - chance.random()) / rate * 3_600.0
            if offset_s >= 3_600.0:
                break
            moment = hour + timedelta(seconds=offset_s)
            count += 1
            if start <= moment < end:
                key = mixed(seed, workflow.key, -1, number, count)
                yield Arrival(moment, workflow.name, key, moment, workflow.spec.timezone)
        hour += _HOUR
