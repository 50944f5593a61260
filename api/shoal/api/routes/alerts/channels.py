"""Channels: the ways by which messages leave."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.plugins import usable_plugins
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.alerts.definitions import AlertDefinitionService, require_usable
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.alerts import (
    AlertChannelIn,
    AlertChannelKindOut,
    AlertChannelOut,
    AlertDeliveryOut,
    AlertTestIn,
)
from shoal.api.schemas.common import Page
from shoal.api.services import StoreDep
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.alerts.receivers import ChannelSpec
from shoal.core.alerts.records import DefinitionKind, DeliveryKind, NewDelivery
from shoal.runtime.plugins import channel_kinds, load_channel

router = strict_router("alerts")

_STORED = AlertDefinitionService(DefinitionKind.CHANNEL, ChannelSpec, AlertChannelOut)
_OF_PROJECT = "/projects/{project}/alert-channels"

ChannelName = Annotated[str, Path(max_length=100, examples=["mail"])]


@router.get("/alert-channel-kinds", summary="List kinds of channels")
@needs(Permission.SIGNED_IN)
async def list_alert_channel_kinds(
    limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertChannelKindOut]:
    """The kinds that are installed with the API, with the schema of their options."""
    after = decode_cursor("alert-channel-kinds", cursor, str)
    found = [kind for kind in channel_kinds() if after is None or kind > after[0]]
    items, more = page(found[: limit + 1], limit)

    def shown(kind: str) -> AlertChannelKindOut:
        channel = load_channel(kind)
        schema = channel.Options.model_json_schema()
        return AlertChannelKindOut(
            kind=kind, needs_addresses=channel.needs_addresses, options_schema=schema
        )

    return Page(
        items=usable_plugins(items, shown),
        next=encode_cursor("alert-channel-kinds", items[-1]) if more else None,
    )


@router.get(_OF_PROJECT, summary="List channels of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_alert_channels(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertChannelOut]:
    """The channels of a project by name."""
    return await _STORED.page(store, project, limit, cursor)


@router.get(_OF_PROJECT + "/{name}", summary="Show a channel of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_alert_channel(
    store: StoreDep, project: ProjectName, name: ChannelName, response: Response
) -> AlertChannelOut:
    """One channel."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _STORED.get(uow, project, name))


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Make or change a channel of alerts",
    responses={
        201: {"model": AlertChannelOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.CONNECTION_EDIT, audit="alert-channel.set")
async def put_alert_channel(
    store: StoreDep,
    project: ProjectName,
    name: NewName,
    body: Annotated[AlertChannelIn, Body()],
    condition: Condition,
) -> AlertChannelOut:
    """Replaces all of it. Secrets that it names have to be there."""
    return await _STORED.put(
        store,
        project,
        name,
        body,
        condition,
        lambda uow: require_usable(uow, project, body),
    )


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Delete a channel of alerts",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.CONNECTION_EDIT, audit="alert-channel.delete")
async def delete_alert_channel(
    store: StoreDep, project: ProjectName, name: ChannelName, condition: Condition
) -> None:
    """Messages for it that wait fail."""
    await _STORED.delete(store, project, name, condition)


@router.post(
    _OF_PROJECT + "/{name}/tests",
    summary="Send a test by a channel",
    status_code=202,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.CONNECTION_EDIT, audit="alert-channel.try")
async def test_alert_channel(
    store: StoreDep, project: ProjectName, name: ChannelName, body: Annotated[AlertTestIn, Body()]
) -> AlertDeliveryOut:
    """Has an alert server send a message that says that it is a test.

    The list of deliveries tells what has come of it.
    """
    now = store.clock()
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await uow.alert_definitions.get(project, DefinitionKind.CHANNEL, name)
        wanted = NewDelivery(project, "", "", name, tuple(body.to), DeliveryKind.TEST, now)
        await uow.deliveries.collect([wanted], now)
        [made] = await uow.deliveries.list(project, channel=name, limit=1)
        await uow.commit()
    return AlertDeliveryOut.model_validate(made)
