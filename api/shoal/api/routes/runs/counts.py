"""How many instances and attempts a filter means, by state."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.runs.filters import Instances, Tasks
from shoal.api.schemas.runs.listing import CountOut, InstanceCounts, TaskCounts
from shoal.api.services import StoreDep
from shoal.core.access.permissions import Permission
from shoal.core.runs.filters import MOST_COUNTED, Count

router = strict_router("instances")
S = TypeVar("S", bound=StrEnum)


@router.get("/instance-counts", summary="Count workflow instances by state")
@needs(Permission.PROJECT_READ)
async def count_instances(store: StoreDep, caller: Calling, wanted: Instances) -> InstanceCounts:
    """How many instances fulfil all filters, in all and in each state.

    Nothing is counted beyond 1,000 (`is_more`). What no index serves is counted among the newest
    2,000 that the other filters leave.
    """
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.instances.counted(wanted, caller.visible)
    return InstanceCounts(total=_total(found), states=_shown(found))


@router.get("/task-instance-counts", summary="Count task instances by state")
@needs(Permission.PROJECT_READ)
async def count_task_instances(store: StoreDep, caller: Calling, wanted: Tasks) -> TaskCounts:
    """How many attempts fulfil all filters, in all and in each state, among the newest 2,000."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tasks.counted(wanted, caller.visible)
    return TaskCounts(total=_total(found), states=_shown(found))


def _total(counts: Mapping[S, Count]) -> CountOut:
    number = sum(one.count for one in counts.values())
    is_more = number > MOST_COUNTED or any(one.is_more for one in counts.values())
    return CountOut(count=min(number, MOST_COUNTED), is_more=is_more)


def _shown(counts: Mapping[S, Count]) -> dict[S, CountOut]:
    return {
        state: CountOut(count=one.count, is_more=one.is_more)
        for state, one in counts.items()
        if one.count or one.is_more
    }
