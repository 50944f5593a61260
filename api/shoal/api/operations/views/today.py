"""What happens around now: the runs of a window by workflow, those that want attention first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from functools import cached_property

from shoal.api.operations.authoring.timetables import Days, days_of, timetable_of
from shoal.core.access.authorization import Visible
from shoal.core.runs.filters import NEWEST_FIRST, InstanceFilter
from shoal.core.runs.records import Instance, StoredSchedule
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code, Said
from shoal.core.schedule.fire_times import GRACE
from shoal.sql import UnitOfWork

MOST_RUNS = 2_000  # that began in the window; and as many that have been open for longer
MOST_SCHEDULES = 2_000
RUNS_EACH = 50  # of one workflow
FIRES_EACH = 5  # of one schedule
_W, _T = WorkflowState, TaskState
_OPEN = frozenset(WorkflowState) - FINISHED_WORKFLOW


class Rank(IntEnum):
    """What a workflow stands for in the list: the first of these that is true of it."""

    LATE = 0
    FAILED = 1  # a run of it, and nothing newer has made that good
    WAITING = 2
    RUNNING = 3
    DONE = 4


@dataclass(frozen=True)
class Late:
    """Something that should have happened ``since`` then."""

    said: Said
    since: datetime
    instance_id: int | None = None
    schedule_id: int | None = None


@dataclass(frozen=True)
class Fire:
    """A fire time to come."""

    schedule_id: int
    at: datetime


@dataclass
class Lane:
    """One workflow. ``runs``: newest first; ``waits``: what they wait for, by run."""

    project: str
    workflow: str
    runs: list[Instance] = field(default_factory=list)
    schedules: list[StoredSchedule] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    waits: dict[int, Said] = field(default_factory=dict)

    @cached_property
    def resolved(self) -> frozenset[int]:
        """Runs that have failed, and that newer ones have made good.

        A success makes good what failed before for the same logical time. What a user had started
        by hand any later success does, but one of a backfill, which is about other days. The day of
        a schedule or a backfill is missing until it has a success.
        """
        good: set[datetime] = set()
        found = set()
        is_good = False
        for run in self.runs:
            if run.state is _W.SUCCEEDED:
                good.add(run.logical_time)
                is_good = is_good or run.backfill_id is None
            elif run.state is _W.FAILED:
                is_by_hand = run.schedule_id is None and run.backfill_id is None
                if run.logical_time in good or (is_by_hand and is_good):
                    found.add(run.id)
        return frozenset(found)

    @property
    def rank(self) -> Rank:
        """What it stands for."""
        if self.late:
            return Rank.LATE
        if any(one.state is _W.FAILED and one.id not in self.resolved for one in self.runs):
            return Rank.FAILED
        if self.waits:
            return Rank.WAITING
        if any(one.state in _OPEN for one in self.runs):
            return Rank.RUNNING
        return Rank.DONE

    @property
    def key(self) -> str:
        """Where it stands in the list."""
        return f"{self.rank.value} {self.project}/{self.workflow}"


@dataclass(frozen=True)
class Today:
    """All lanes in their order. ``is_more``: not all runs or schedules were looked at."""

    lanes: Sequence[Lane]
    is_more: bool


async def today(
    uow: UnitOfWork,
    since: datetime,
    until: datetime,
    now: datetime,
    project: str | None,
    visible: Visible,
) -> Today:
    """Return the runs that were created in a window or are open, and what fires until its end."""
    runs, more = await uow.instances.search(
        InstanceFilter(project=project, since=since, until=until),
        NEWEST_FIRST,
        None,
        MOST_RUNS,
        visible,
    )
    older, more_open = await uow.instances.search(
        InstanceFilter(project=project, state=_OPEN, until=since),
        NEWEST_FIRST,
        None,
        MOST_RUNS,
        visible,
    )
    schedules = await uow.schedules.firing(until, MOST_SCHEDULES, project, visible)
    lanes: dict[tuple[str, str], Lane] = {}
    for run in (*runs, *older):
        _lane(lanes, run.project, run.workflow).runs.append(run)
    for one in schedules:
        _lane(lanes, one.project, one.workflow).schedules.append(one)
    open_ = [run.id for run in (*runs, *older) if run.state in _OPEN]
    counts = await uow.instance_counts.tasks(open_)
    for lane in lanes.values():
        lane.late = list(_late(lane, now))
        for run in lane.runs:
            if (said := _waits(run, counts.get(run.id, {}))) is not None:
                lane.waits[run.id] = said
    is_more = bool(more or more_open) or len(schedules) == MOST_SCHEDULES
    return Today(sorted(lanes.values(), key=lambda one: one.key), is_more)


async def next_fires(
    uow: UnitOfWork, lanes: Iterable[Lane], now: datetime, until: datetime
) -> dict[tuple[str, str], list[Fire]]:
    """Return the fire times to come until then, earliest first, by project and workflow."""
    some = list(lanes)
    days = await days_of(uow, [one for lane in some for one in lane.schedules])
    found: dict[tuple[str, str], list[Fire]] = {}
    for lane in some:
        fires = [fire for one in lane.schedules for fire in _fires(one, days, now, until)]
        found[lane.project, lane.workflow] = sorted(fires, key=lambda one: one.at)
    return found


def _fires(schedule: StoredSchedule, days: Days, now: datetime, until: datetime) -> Iterator[Fire]:
    timetable = timetable_of(schedule, days)
    for at in timetable.upcoming(now, FIRES_EACH) if timetable else ():
        if at < until:
            yield Fire(schedule.id, at.astimezone(UTC))


def _lane(lanes: dict[tuple[str, str], Lane], project: str, workflow: str) -> Lane:
    return lanes.setdefault((project, workflow), Lane(project, workflow))


def _late(lane: Lane, now: datetime) -> Iterator[Late]:
    for one in lane.schedules:
        planned = one.next_fire_at
        if planned is not None and planned < now - GRACE:
            text = f"schedule {one.id} should have fired at {planned.isoformat()}"
            said = Said(Code.FIRE_LATE, text, {"schedule": one.id, "at": planned.isoformat()})
            yield Late(said, planned, schedule_id=one.id)
    for run in lane.runs:
        if run.warned_at is not None and run.state in _OPEN:
            text = f"instance {run.id} has run for longer than its timeout allows"
            yield Late(
                Said(Code.RUN_OVERDUE, text, {"instance": run.id}),
                run.warned_at,
                instance_id=run.id,
            )
        if run.deadline_at is not None and run.is_late(now):
            at = run.deadline_at
            text = f"instance {run.id} should have ended at {at.isoformat()}"
            said = Said(Code.RUN_LATE, text, {"instance": run.id, "at": at.isoformat()})
            yield Late(said, at, instance_id=run.id)


def _waits(run: Instance, tasks: Mapping[TaskState, int]) -> Said | None:
    """Return what a run as a whole waits for; None: it works, or has ended."""
    match run.state:
        case _W.QUEUED if run.admitted_at is None:
            return Said(Code.RUN_OVERLAP, "it waits for other runs of its workflow")
        case _W.QUEUED:
            return Said(Code.RUN_STARTING, "its master is about to start it")
        case _W.PAUSING | _W.PAUSED:
            return Said(Code.RUN_PAUSED, f"it is {run.state}", {"state": run.state.value})
        case _W.STOPPING:
            return Said(Code.RUN_STOPPING, "it is being stopped")
        case _W.RUNNING:
            return _of_tasks(tasks)
        case _:
            return None


def _of_tasks(tasks: Mapping[TaskState, int]) -> Said | None:
    if any(tasks.get(state) for state in (_T.RUNNING, _T.CLAIMED)):
        return None
    for code, states, what in (
        (Code.TASKS_BLOCKED, (_T.BLOCKED,), "a slot"),
        (Code.TASKS_QUEUED, (_T.QUEUED,), "a worker"),
        (Code.TASKS_DELAYED, (_T.DELAYED, _T.UP_FOR_RETRY), "their time"),
    ):
        if number := sum(tasks.get(state, 0) for state in states):
            text = f"tasks that wait for {what}: {number}"
            return Said(code, text, {"tasks": number})
    return None
