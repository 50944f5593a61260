"""The plan of a backfill: what runs for which dates, in which order, and what is left out.

All logical times are aware UTC datetimes. Nothing here reads anything: what is needed comes in
as ``BackfillTarget``s (the workflows) and ``Past`` (what ran before).
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice
from zoneinfo import ZoneInfo

from shoal.core.backfill.request import (
    MAX_RUNS,
    BackfillRefused,
    BackfillRequest,
    By,
    DateOrder,
    Only,
    Reprocess,
    read_when,
)
from shoal.core.backfill.upstream import Follower, Upstream, WorkflowKey
from shoal.core.definition.model import BackfillBase, WorkflowSpec
from shoal.core.schedule.fire_times import Timetable
from shoal.core.timing.logical_time import FIRST, LogicalTimeOutOfRange, logical_time
from shoal.core.timing.wallclock import first_instant_from, is_aware

_DAY = timedelta(days=1)
_MOMENT = timedelta(microseconds=1)
_MAX_DAYS = 366 * 100  # of a range


class Past(StrEnum):
    """What a workflow's earlier runs for one logical time have come to."""

    NEVER = "NEVER"  # there are none
    SUCCEEDED = "SUCCEEDED"  # at least one of them did
    RUNNING = "RUNNING"  # none has succeeded, one has not ended
    FAILED = "FAILED"  # all have ended, none of them well


@dataclass(frozen=True)
class BackfillTarget:
    """A workflow of the plan. ``timetables``: of its enabled schedules."""

    workflow_id: int
    spec: WorkflowSpec
    timetables: tuple[Timetable, ...] = ()
    depth: int = 0  # how many dependencies lie between it and the workflow that was named

    @property
    def key(self) -> WorkflowKey:
        """Project and name."""
        return self.spec.project, self.spec.name

    def zone(self, by: By) -> str:
        """Return the zone that dates are reckoned in: of the schedules if they agree."""
        zones = {one.cron.timezone for one in self.timetables} if by is By.SCHEDULE else set()
        return zones.pop() if len(zones) == 1 else self.spec.timezone


@dataclass(frozen=True)
class PlannedRun:
    """One line of a plan. ``skipped``: why it will not run; None: it will."""

    position: int
    workflow_id: int
    project: str
    workflow: str
    logical_time: datetime
    skipped: str | None = None


@dataclass(frozen=True)
class BackfillPlan:
    """All runs in the order in which they start."""

    runs: tuple[PlannedRun, ...]

    @property
    def to_run(self) -> int:
        """How many are not left out."""
        return sum(run.skipped is None for run in self.runs)

    def require_work(self) -> None:
        """Raise BackfillRefused if nothing would run."""
        if self.to_run:
            return
        counts = Counter(run.skipped for run in self.runs)
        why = "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(3))
        raise BackfillRefused(
            "reprocess", f"nothing to run: {why}; reprocess failed or all runs dates again"
        )


# -- dates -----------------------------------------------------------------------------------


def by_of(request: BackfillRequest, target: BackfillTarget) -> By:
    """Return what the dates of a range are for a workflow. Raises BackfillRefused."""
    if request.by is By.SCHEDULE and not target.timetables:
        raise BackfillRefused(
            "by",
            f"{'/'.join(target.key)} has no schedule that is enabled, so there are no fire times; "
            "run it by day, or name the dates",
        )
    return request.by or (By.SCHEDULE if target.timetables else By.DAY)


def calendar_of(request: BackfillRequest) -> By:
    """Return which calendar counts: that of the schedules, or of the workflows (by day, a list)."""
    return By.DAY if request.dates else request.by or By.SCHEDULE


def dates_of(request: BackfillRequest, target: BackfillTarget) -> list[datetime]:
    """Return the logical times of the workflow that was named, ascending, each once.

    Raises BackfillRefused if there are none, or more than ``MAX_RUNS``.
    """
    zone = ZoneInfo(target.spec.timezone)
    if request.dates:
        named = {_instant(read_when(text), zone, "dates") for text in request.dates}
        return _in_range(sorted(named), target)
    assert request.first is not None
    assert request.last is not None
    start = _instant(read_when(request.first), zone, "from")
    end = _end(read_when(request.last), zone)
    if start >= end:
        raise BackfillRefused("to", f"{request.last} lies before {request.first}")
    if end - start > _MAX_DAYS * _DAY:
        raise BackfillRefused("to", "the range is longer than a hundred years; write a shorter one")
    if by_of(request, target) is By.DAY:
        found = _midnights(start, end, zone)
        missing = "the range holds no midnight; name the dates instead"
    else:
        found = _fire_times(target.timetables, start, end)
        missing = (
            f"the schedules of {'/'.join(target.key)} have no fire time from {request.first} to "
            f"{request.last}; run it by day, or name the dates"
        )
    if not found:
        raise BackfillRefused("from", missing)
    return _in_range(_bounded(found), target)


def _in_range(dates: list[datetime], target: BackfillTarget) -> list[datetime]:
    """Return dates whose days, and those after them, are in the calendar of every time zone.

    A workflow with ``backfill_base: next_day`` counts from the day after. Raises BackfillRefused.
    """
    ahead = _DAY if target.spec.backfill_base is BackfillBase.NEXT_DAY else timedelta(0)
    try:
        for moment in (dates[0], dates[-1] + ahead):
            logical_time(moment)
    except (OverflowError, LogicalTimeOutOfRange):
        field, bad = ("to", dates[-1]) if dates[0] >= FIRST else ("from", dates[0])
        raise BackfillRefused(field, str(LogicalTimeOutOfRange(bad.isoformat()))) from None
    return dates


def dates_downstream(
    request: BackfillRequest,
    root: BackfillTarget,
    dates: Sequence[datetime],
    target: BackfillTarget,
) -> list[datetime]:
    """Return the logical times of a workflow downstream: on the same logical days.

    They are its fire times on those days; the midnights if it has no schedule, or if asked for.
    """
    zone = ZoneInfo(root.zone(calendar_of(request)))
    days = sorted({moment.astimezone(zone).date() for moment in dates})
    own = ZoneInfo(target.zone(By.SCHEDULE))
    try:
        if request.by is By.DAY or not target.timetables:
            zone = ZoneInfo(target.spec.timezone)
            found = [_midnight(day, zone) for day in days]
        else:
            found = [
                moment
                for day in days
                for moment in _fire_times(
                    target.timetables, _midnight(day, own), _midnight(day + _DAY, own)
                )
            ]
    except OverflowError:
        reason = f"{'/'.join(target.key)}: {LogicalTimeOutOfRange(days[-1])}"
        raise BackfillRefused("to", reason) from None
    found = _bounded(sorted(set(found)))
    return _in_range(found, target) if found else found


def _instant(when: date | datetime, zone: ZoneInfo, field: str) -> datetime:
    """Return the logical time that ``when`` means. Raises BackfillRefused."""
    wall = when if isinstance(when, datetime) else datetime.combine(when, time())
    try:
        return logical_time(wall if is_aware(wall) else first_instant_from(wall, zone))
    except (OverflowError, LogicalTimeOutOfRange):
        raise BackfillRefused(field, str(LogicalTimeOutOfRange(when.isoformat()))) from None


def _end(when: date | datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant behind a range that ends with ``when``. Raises BackfillRefused."""
    last = _instant(when, zone, "to")
    if isinstance(when, datetime):
        return last + _MOMENT
    return last + _DAY if when == date.max else _midnight(when + _DAY, zone)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return first_instant_from(datetime.combine(day, time()), zone).astimezone(UTC)


def _midnights(start: datetime, end: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the first instant of each day from ``start`` (included) to ``end`` (not included)."""
    day = start.astimezone(zone).date()
    found: set[datetime] = set()  # a day that the zone leaves out begins with the next one
    while (midnight := _midnight(day, zone)) < end:
        if midnight >= start:
            found.add(midnight)
        if day == date.max:
            break
        day += _DAY
    return sorted(found)


def _fire_times(timetables: Sequence[Timetable], start: datetime, end: datetime) -> list[datetime]:
    """Return the fire times of all ``timetables``, ascending, each once; not many too many."""
    merged = heapq.merge(
        *((moment.astimezone(UTC) for moment in one.between(start, end)) for one in timetables)
    )
    return sorted(set(islice(merged, MAX_RUNS * len(timetables) + 1)))


def fires_at(timetable: Timetable, moment: datetime) -> bool:
    """Say whether ``moment`` is one of the fire times."""
    found = timetable.next(moment - _MOMENT)
    return found is not None and found.astimezone(UTC) == moment


def _bounded(dates: list[datetime]) -> list[datetime]:
    if len(dates) > MAX_RUNS:
        raise BackfillRefused(
            "to", f"more than {MAX_RUNS:,} dates are too many for one backfill; take a part of them"
        )
    return dates


# -- the plan --------------------------------------------------------------------------------


def plan(
    request: BackfillRequest,
    targets: Sequence[BackfillTarget],
    dates: Mapping[int, Sequence[datetime]],
    history: Mapping[tuple[int, datetime], Past],
) -> BackfillPlan:
    """Return the runs of a backfill.

    ``targets``: the workflow that was named, then those downstream of it; ``dates`` and
    ``history`` are by workflow id. A date downstream runs if one that it waits for runs, and is
    left out if one that it waits for is left out without having succeeded.
    Raises BackfillRefused for more than ``MAX_RUNS`` runs.
    """
    root = targets[0]
    runs = _ordered(request, targets, dates)
    upstream = Upstream(runs, followers_of(request, targets))
    waits_for = {
        run.position: upstream.of(run) for run in runs if run.workflow_id != root.workflow_id
    }
    left_out: dict[int, str | None] = {}
    without_success: set[int] = set()
    for run in runs:
        past = history.get((run.workflow_id, run.logical_time), Past.NEVER)
        left_out[run.position] = _left_out(request, past)
        if past is not Past.SUCCEEDED:
            without_success.add(run.position)
    behind = _reversed(waits_for)
    running = _closure({p for p, reason in left_out.items() if reason is None}, behind)
    bad = without_success - running
    broken = _closure(bad, behind) - bad
    decided = []
    for run in runs:
        reason = left_out[run.position]
        if run.position in broken:
            reason = "a run that it depends on is left out, and has not succeeded"
        elif run.position in running:
            reason = None
        decided.append(replace(run, skipped=reason))
    return BackfillPlan(tuple(decided))


def followers_of(
    request: BackfillRequest, targets: Iterable[BackfillTarget]
) -> dict[int, Follower]:
    """Return how the runs of each workflow depend on each other, by workflow id."""
    known = list(targets)
    ids = {target.key: target.workflow_id for target in known}
    return {
        target.workflow_id: Follower.of(
            target.spec,
            target.zone(calendar_of(request)),
            ids,
            request.selection if target.key == (request.project, request.workflow) else None,
        )
        for target in known
    }


def _ordered(
    request: BackfillRequest,
    targets: Sequence[BackfillTarget],
    dates: Mapping[int, Sequence[datetime]],
) -> list[PlannedRun]:
    all_runs = [(moment, target) for target in targets for moment in dates[target.workflow_id]]
    if len(all_runs) > MAX_RUNS:
        raise BackfillRefused(
            "downstream",
            f"{len(all_runs):,} runs with the workflows downstream are more than {MAX_RUNS:,}; "
            "take a shorter range",
        )
    all_runs.sort(key=lambda one: (one[1].depth, one[1].key))
    all_runs.sort(key=lambda one: one[0], reverse=request.order is DateOrder.DESCENDING)
    return [
        PlannedRun(position, target.workflow_id, *target.key, moment)
        for position, (moment, target) in enumerate(all_runs)
    ]


def _left_out(request: BackfillRequest, past: Past) -> str | None:
    """Return why a date with this past does not run; None if it does."""
    if request.only is Only.FAILED:
        wanted = {Past.FAILED}
    elif request.only is Only.MISSING:
        wanted = {Past.NEVER}
    else:
        wanted = {
            Reprocess.NONE: {Past.NEVER},
            Reprocess.FAILED: {Past.NEVER, Past.FAILED},
            Reprocess.ALL: set(Past),
        }[request.reprocess]
    if past in wanted:
        return None
    return {
        Past.NEVER: "it never ran",
        Past.SUCCEEDED: "it has succeeded before",
        Past.RUNNING: "another run of it has not ended",
        Past.FAILED: "it has failed before",
    }[past]


def _reversed(waits_for: Mapping[int, Collection[int]]) -> dict[int, list[int]]:
    behind: dict[int, list[int]] = {}
    for position, others in waits_for.items():
        for other in others:
            behind.setdefault(other, []).append(position)
    return behind


def _closure(start: Iterable[int], behind: Mapping[int, Sequence[int]]) -> set[int]:
    """Return ``start`` and everything behind it. Cycles do no harm."""
    found = set(start)
    to_visit = list(found)
    while to_visit:
        for position in behind.get(to_visit.pop(), ()):
            if position not in found:
                found.add(position)
                to_visit.append(position)
    return found
