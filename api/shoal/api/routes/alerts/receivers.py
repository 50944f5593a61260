"""Receivers: people and the channels that reach them."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.alerts.definitions import AlertDefinitionService, require_known
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.alerts import AlertReceiverIn, AlertReceiverOut
from shoal.api.schemas.common import Page
from shoal.api.services import StoreDep
from shoal.api.web.paging import Cursor, Limit
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.alerts.receivers import ReceiverSpec
from shoal.core.alerts.records import DefinitionKind

router = strict_router("alerts")

_STORED = AlertDefinitionService(DefinitionKind.RECEIVER, ReceiverSpec, AlertReceiverOut)
_OF_PROJECT = "/projects/{project}/alert-receivers"

ReceiverName = Annotated[str, Path(max_length=100, examples=["on-call"])]


@router.get(_OF_PROJECT, summary="List receivers of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_alert_receivers(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertReceiverOut]:
    """The receivers of a project by name."""
    return await _STORED.page(store, project, limit, cursor)


@router.get(_OF_PROJECT + "/{name}", summary="Show a receiver of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_alert_receiver(
    store: StoreDep, project: ProjectName, name: ReceiverName, response: Response
) -> AlertReceiverOut:
    """One receiver."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _STORED.get(uow, project, name))


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Make or change a receiver of alerts",
    responses={
        201: {"model": AlertReceiverOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="alert-receiver.set")
async def put_alert_receiver(
    store: StoreDep,
    project: ProjectName,
    name: NewName,
    body: Annotated[AlertReceiverIn, Body()],
    condition: Condition,
) -> AlertReceiverOut:
    """Replaces all of it. Messages from now on go there."""
    return await _STORED.put(
        store,
        project,
        name,
        body,
        condition,
        lambda uow: require_known(uow, project, DefinitionKind.CHANNEL, "members", body.channels),
    )


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Delete a receiver of alerts",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="alert-receiver.delete")
async def delete_alert_receiver(
    store: StoreDep, project: ProjectName, name: ReceiverName, condition: Condition
) -> None:
    """Rules that name it tell the others they name."""
    await _STORED.delete(store, project, name, condition)
