"""Labels of runs, changed after their start."""

from typing import Annotated

from fastapi import Body

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.schemas.runs.listing import LabelChanges, LabelsOut
from shoal.api.services import StoreDep
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission

router = strict_router("instances")


@router.patch(
    "/instances/{instance_id}/labels",
    summary="Change the labels of an instance",
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.RUN_OPERATE, audit="labels.change")
async def change_labels(
    store: StoreDep, instance_id: InstanceId, body: Annotated[LabelChanges, Body()]
) -> LabelsOut:
    """Sets the labels that are named, and removes those whose value is null; others stay.

    So two who change different labels at the same time do not undo each other.
    """
    async with store.unit_of_work() as uow:
        labels = await uow.labels.change(instance_id, body.changes(), store.clock())
        await uow.commit()
    return LabelsOut(labels=labels)
