"""Receivers: people who are told, by which channels."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.guard import needs
from shoal.api.operations.alerts.checking import require_known
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.alerts import AlertReceiverIn, AlertReceiverOut
from shoal.api.schemas.common import Page
from shoal.api.services import Shoal
from shoal.api.web.legible import by_name, legible, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.preconditions import Condition, tagged
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.alerts.receivers import ReceiverSpec
from shoal.core.alerts.records import Definition, DefinitionKind
from shoal.sql import UnitOfWork

router = strict_router("alerts")

_KIND = DefinitionKind.RECEIVER
_OF_PROJECT = "/projects/{project}/alert-receivers"

ReceiverName = Annotated[str, Path(max_length=100, examples=["on-call"])]


@router.get(_OF_PROJECT, summary="List receivers of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_alert_receivers(
    shoal: Shoal, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertReceiverOut]:
    """The receivers of a project by name."""
    after = decode_cursor("alert-receivers", cursor, str)
    async with shoal.database.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        found = await uow.alert_definitions.list(
            project, _KIND, after[0] if after else None, limit + 1
        )
    items, more = page(found, limit)
    return Page(
        items=shown("alert receiver", items, _out, by_name),
        next=encode_cursor("alert-receivers", items[-1].name) if more else None,
    )


@router.get(_OF_PROJECT + "/{name}", summary="Show a receiver of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_alert_receiver(
    shoal: Shoal, project: ProjectName, name: ReceiverName, response: Response
) -> AlertReceiverOut:
    """One receiver."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> AlertReceiverOut:
    found = await uow.alert_definitions.get(project, _KIND, name)
    with legible("alert receiver", name):
        return _out(found)


def _out(found: Definition) -> AlertReceiverOut:
    return AlertReceiverOut(
        name=found.name,
        version=found.version,
        created_at=found.created_at,
        updated_at=found.updated_at,
        spec=ReceiverSpec.model_validate(found.spec).model_dump(mode="json"),
    )


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
    shoal: Shoal,
    project: ProjectName,
    name: NewName,
    body: Annotated[AlertReceiverIn, Body()],
    condition: Condition,
) -> AlertReceiverOut:
    """Replaces all of it. Messages from now on go there."""
    spec = body.model_dump(mode="json")
    async with shoal.database.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name), {"spec": spec})
        await require_known(uow, project, DefinitionKind.CHANNEL, "members", body.channels)
        stored, is_new = await uow.alert_definitions.put(project, _KIND, name, spec, shoal.clock())
        await uow.commit()
    return condition.answer(_out(stored), is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Delete a receiver of alerts",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="alert-receiver.delete")
async def delete_alert_receiver(
    shoal: Shoal, project: ProjectName, name: ReceiverName, condition: Condition
) -> None:
    """Rules that name it tell the others they name."""
    async with shoal.database.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.alert_definitions.delete(project, _KIND, name)
        await uow.commit()
