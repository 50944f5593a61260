"""How full the cluster is, and in which minutes schedules fire."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight import views
from shoal.api.operations.insight.day_results import rows_of
from shoal.api.routes.insight.window import WindowedDays
from shoal.api.schemas.insight.load import (
    ForecastOut,
    LoadCellOut,
    LoadGroupOut,
    LoadOut,
    ScheduleMinuteOut,
    ScheduleMinutesOut,
    ScheduleMoveOut,
    WorkerLoadOut,
)
from shoal.api.services import StoreDep
from shoal.api.web.answers import legible
from shoal.core.access.authorization import Visible
from shoal.core.access.permissions import Permission
from shoal.core.insight.load import heat_map, worker_loads
from shoal.core.insight.windows import DayWindow
from shoal.sql import UnitOfWork

router = strict_router("insight")


@router.get("/insight/load", summary="Show how full the cluster is")
@needs(Permission.CLUSTER_READ, large=True)
async def get_insight_load(store: StoreDep, wanted: WindowedDays) -> LoadOut:
    """The hours of the week by worker group, the workers, and what the next days will need."""
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "concurrency_hours")
        if days.window is None:
            return LoadOut(**days.shown(()), groups=[], workers=[], forecast_of=None, forecast=[])
        window = days.window
        there = await views.days_there(uow, "concurrency_hours", window)
        hours = await uow.rollups.of_cluster("concurrency_hours", window.first, window.last)
        workers = await uow.rollups.of_cluster("worker_days", window.first, window.last)
        forecast_of, forecast = await _newest_of_cluster(uow, "capacity")
    with legible("roll-up", "concurrency_hours, worker_days or capacity"):
        groups = heat_map(
            [day for day in there if window.has(day)],
            [(block.day, row) for block in hours for row in block.rows],
        )
        loads = worker_loads(row for block in workers for row in block.rows)
        return LoadOut(
            **days.shown(there),
            groups=[
                LoadGroupOut(
                    worker_group=group, cells=[LoadCellOut.model_validate(cell) for cell in cells]
                )
                for group, cells in groups.items()
            ],
            workers=[WorkerLoadOut.model_validate(one) for one in loads],
            forecast_of=forecast_of,
            forecast=[ForecastOut.model_validate(row) for row in forecast],
        )


@router.get("/insight/schedule-minutes", summary="Show hot minutes, and which schedules to move")
@needs(Permission.PROJECT_READ, large=True)
async def get_insight_schedule_minutes(store: StoreDep, caller: Calling) -> ScheduleMinutesOut:
    """In which minutes schedules fire, of the last 28 days, and moves that would relieve them.

    Moves are of schedules that the caller sees. The minutes, and how full they are, are of all
    projects, and so for who may see the cluster.
    """
    sees_cluster = caller.may(Permission.CLUSTER_READ)
    async with store.unit_of_work(read_only=True) as uow:
        until, minutes = await _newest_of_cluster(uow, "schedule_minutes")
        moves: list[ScheduleMoveOut] = []
        if (newest := await uow.rollups.newest("schedule_moves")) is not None:
            day = DayWindow(newest.day, newest.day)
            moves = await _moves(uow, day, caller.visible)
    with legible("roll-up", "schedule_minutes"):
        return ScheduleMinutesOut(
            until=until,
            minutes=[ScheduleMinuteOut.model_validate(row) for row in minutes]
            if sees_cluster
            else None,
            moves=[_move(one, place, sees_cluster) for place, one in enumerate(moves, 1)],
        )


async def _newest_of_cluster(
    uow: UnitOfWork, job: str
) -> tuple[date | None, Sequence[Mapping[str, Any]]]:
    newest = await uow.rollups.newest(job)
    if newest is None:
        return None, ()
    blocks = await uow.rollups.of_cluster(job, newest.day, newest.day)
    return newest.day, [row for block in blocks for row in block.rows]


async def _moves(uow: UnitOfWork, day: DayWindow, visible: Visible) -> list[ScheduleMoveOut]:
    """Return the moves of schedules that are visible, the most useful first."""
    named = {"project": "", "workflow": ""}
    found = await rows_of(
        uow,
        "schedule_moves",
        day,
        visible,
        None,
        None,
        lambda row: ScheduleMoveOut.model_validate({**row, **named}),
    )
    moves = [
        move.model_copy(update={"project": project, "workflow": workflow})
        for _, (project, workflow), move in found
    ]
    return sorted(moves, key=lambda move: move.place)


def _move(move: ScheduleMoveOut, place: int, sees_cluster: bool) -> ScheduleMoveOut:
    """Return what is shown of it: load by schedules of others is for administrators."""
    highest = {} if sees_cluster else {"highest_before": None, "highest_after": None}
    return move.model_copy(update={"place": place, **highest})
