"""What happens around now, in all projects that the caller sees."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight.baselines import expected_of
from shoal.api.operations.views.today import RUNS_EACH, Fire, Lane, Rank, next_fires, today
from shoal.api.routes.runs.filters import Project
from shoal.api.schemas.common import SaidOut
from shoal.api.schemas.views.today import FireOut, LaneOut, LateOut, TodayOut, TodayRun
from shoal.api.services import BaselinesDep, StoreDep
from shoal.api.web.answers import by_id, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.core.access.permissions import Permission
from shoal.core.insight.expectation import NOTHING, ExpectedRun
from shoal.core.runs.records import Instance
from shoal.core.timing.instant import Instant

router = strict_router("instances")

_LONGEST = timedelta(days=31)
_BACK, _AHEAD = timedelta(hours=18), timedelta(hours=12)


@router.get("/today", summary="Show what happens around now")
@needs(Permission.PROJECT_READ)
async def get_today(
    store: StoreDep,
    baselines: BaselinesDep,
    caller: Calling,
    project: Project = None,
    since: Annotated[
        Instant | None, Query(description="Where the window begins; default: 18 hours ago.")
    ] = None,
    until: Annotated[
        Instant | None, Query(description="Where it ends; default: 12 hours ahead.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> TodayOut:
    """Runs that began in the window or are open, by workflow, with what fires until its end.

    Workflows with something late come first, then those with a run that has failed and that
    no newer one has made good, then those that wait. Late is a schedule that has not fired a
    minute after its time, and a run beyond its timeout or its deadline. Between two pages a
    workflow may move to another place.
    """
    now = store.clock()
    start, end = since or now - _BACK, until or now + _AHEAD
    if not timedelta(0) < end - start <= _LONGEST:
        raise InvalidRequest([FieldError("until", "must lie behind `since`, by 31 days at most")])
    async with store.unit_of_work(read_only=True) as uow:
        found = await today(uow, start, end, now, project, caller.visible)
        lanes, next_ = part_of("today", found.lanes, lambda one: one.key, limit, cursor)
        fires = await next_fires(uow, lanes, now, end)
        runs = [run for lane in lanes for run in lane.runs[:RUNS_EACH]]
        coming = await expected_of(uow, baselines, runs, now)
    ranks = Counter(lane.rank for lane in found.lanes)
    return TodayOut(
        since=start,
        until=end,
        now=now,
        ranks={rank.name.lower(): ranks[rank] for rank in Rank},
        is_more=found.is_more,
        items=[_shown(lane, fires[lane.project, lane.workflow], coming) for lane in lanes],
        next=next_,
    )


def _shown(lane: Lane, fires: list[Fire], coming: Mapping[int, ExpectedRun]) -> LaneOut:
    return LaneOut(
        project=lane.project,
        workflow=lane.workflow,
        rank=lane.rank.name.lower(),
        runs=shown(
            "workflow instance",
            lane.runs[:RUNS_EACH],
            lambda run: _run(run, lane, coming.get(run.id, NOTHING)),
            by_id,
        ),
        is_more=len(lane.runs) > RUNS_EACH,
        late=[LateOut.model_validate(one) for one in lane.late],
        next_fires=[FireOut.model_validate(one) for one in fires],
    )


def _run(run: Instance, lane: Lane, coming: ExpectedRun) -> TodayRun:
    return TodayRun.model_validate(
        {
            **vars(run),
            "is_resolved": run.id in lane.resolved,
            "waits_for": SaidOut.of(lane.waits.get(run.id)),
            "expected_end_at": coming.end_at,
            "late_after_at": coming.late_after_at,
        }
    )
