"""Alerts, their notifications, and silences."""

from datetime import datetime
from typing import Annotated

from fastapi import Body, Path, Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.alerts.explanation import Explained, explain
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.alerts import (
    AlertDeliveryDetail,
    AlertDeliveryOut,
    AlertDetail,
    AlertExplanationOut,
    AlertOut,
    AlertSilenceIn,
    AlertSilenceOut,
    AlertVerdictOut,
)
from shoal.api.schemas.common import Page
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_id, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.alerts.occurrences import Occurrence
from shoal.core.alerts.records import AlertState, DeliveryState

router = strict_router("alerts")

_LARGEST_ID = 2**63 - 1
_MOST_MENTIONED = 1_000  # alerts of a message
AlertId = Annotated[int, Path(ge=1, le=_LARGEST_ID, examples=[12])]
DeliveryId = Annotated[int, Path(ge=1, le=_LARGEST_ID, examples=[31])]
SilenceId = Annotated[int, Path(ge=1, le=_LARGEST_ID, examples=[4])]


@router.get("/projects/{project}/alerts", summary="List alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_alerts(
    store: StoreDep,
    project: ProjectName,
    state: Annotated[
        list[AlertState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    workflow: Annotated[
        str | None, Query(max_length=100, description="Only about this workflow.")
    ] = None,
    instance_id: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="Only about this run.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AlertOut]:
    """The alerts of a project, newest first."""
    before = decode_cursor("alerts", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        found = await uow.alerts.list(
            project, state or (), instance_id, workflow, before[0] if before else None, limit + 1
        )
    items, more = page(found, limit)
    return Page(
        items=shown("alert", items, AlertOut.model_validate, by_id),
        next=encode_cursor("alerts", items[-1].id) if more else None,
    )


@router.get(
    "/projects/{project}/alerts/{alert_id}", summary="Show an alert", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_alert(store: StoreDep, project: ProjectName, alert_id: AlertId) -> AlertDetail:
    """An alert, and who was notified of it, or why not."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.alerts.get(project, alert_id)
        deliveries = await uow.deliveries.of_alert(alert_id)
    with legible("alert", alert_id):
        return AlertDetail.of_record(found, deliveries=deliveries)


@router.post(
    "/projects/{project}/alerts/{alert_id}/acknowledgement",
    summary="Acknowledge an alert",
    responses=documented(404),
)
@needs(Permission.RUN_OPERATE, audit="alert.acknowledge")
async def acknowledge_alert(
    store: StoreDep, caller: Calling, project: ProjectName, alert_id: AlertId
) -> AlertOut:
    """Acknowledge an alert: no further reminders are sent. The first acknowledgement is kept."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        found = await uow.alerts.acknowledge(project, alert_id, caller.name, store.clock())
        await uow.commit()
    with legible("alert", alert_id):
        return AlertOut.model_validate(found)


@router.get(
    "/projects/{project}/alert-deliveries",
    summary="List messages about alerts",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_alert_deliveries(
    store: StoreDep,
    project: ProjectName,
    state: Annotated[
        list[DeliveryState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    channel: Annotated[
        str | None, Query(max_length=100, description="Only by this channel.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AlertDeliveryOut]:
    """The messages of a project, newest first."""
    before = decode_cursor("alert-deliveries", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        found = await uow.deliveries.list(
            project, state or (), channel, before[0] if before else None, limit + 1
        )
    items, more = page(found, limit)
    return Page(
        items=shown(
            "alert delivery",
            items,
            AlertDeliveryOut.model_validate,
            by_id,
        ),
        next=encode_cursor("alert-deliveries", items[-1].id) if more else None,
    )


@router.get(
    "/projects/{project}/alert-deliveries/{delivery_id}",
    summary="Show a message about alerts",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_alert_delivery(
    store: StoreDep, project: ProjectName, delivery_id: DeliveryId
) -> AlertDeliveryDetail:
    """A message with every attempt to send it."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.deliveries.get(project, delivery_id)
        attempts = await uow.deliveries.tries(delivery_id)
        alerts = await uow.deliveries.mentioned(delivery_id, _MOST_MENTIONED)
    with legible("alert delivery", delivery_id):
        return AlertDeliveryDetail.of_record(found, attempts=attempts, alerts=alerts)


@router.get(
    "/projects/{project}/alert-explanations",
    summary="Explain why notifications were sent or not",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_alert_explanations(
    store: StoreDep,
    project: ProjectName,
    instance_id: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="What has happened in this run.")
    ] = None,
    event_id: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="This event alone.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AlertExplanationOut]:
    """What each rule of the project made of what has happened, the first event first."""
    if (instance_id is None) is (event_id is None):
        raise InvalidRequest([FieldError("instance_id", "name a run or an event, and not both")])
    place = decode_cursor("alert-explanations", cursor, int)
    after = place[0] if place else (event_id - 1 if event_id is not None else 0)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        events = await uow.events.after(after, limit + 1, instance_id, project, event_id)
        events, more = page(events, limit)
        found = await explain(uow, project, events)
    return Page(
        items=shown("event", found, lambda one: _explanation(*one), lambda one: one[0].event_id),
        next=encode_cursor("alert-explanations", events[-1].id) if more else None,
    )


def _explanation(happened: Occurrence, explained: list[Explained]) -> AlertExplanationOut:
    rules = [
        AlertVerdictOut(
            rule=one.rule,
            reason=one.reason,
            alert=one.alert and AlertDetail.of_record(one.alert, deliveries=one.deliveries),
        )
        for one in explained
    ]
    return AlertExplanationOut.of_record(happened, rules=rules)


@router.get(
    "/projects/{project}/alert-silences", summary="List silences", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def list_alert_silences(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertSilenceOut]:
    """The silences of a project that are not over, newest first."""
    before = decode_cursor("alert-silences", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        found = await uow.alert_definitions.silences(
            project, store.clock(), before[0] if before else None, limit + 1
        )
    items, more = page(list(found), limit)
    return Page(
        items=shown("alert silence", items, AlertSilenceOut.model_validate, by_id),
        next=encode_cursor("alert-silences", items[-1].id) if more else None,
    )


@router.post(
    "/projects/{project}/alert-silences",
    summary="Silence alerts",
    status_code=201,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.RUN_OPERATE, audit="alert-silence.make")
async def create_alert_silence(
    store: StoreDep, caller: Calling, project: ProjectName, body: Annotated[AlertSilenceIn, Body()]
) -> AlertSilenceOut:
    """Alerts it covers send no notifications; those still open when it ends send them then."""
    now: datetime = store.clock()
    if body.until <= now:
        raise InvalidRequest([FieldError("until", "must lie in the future")])
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        made = await uow.alert_definitions.silence(
            project,
            body.workflow,
            body.task,
            body.rule,
            body.since or now,
            body.until,
            body.reason,
            caller.name,
        )
        await uow.commit()
    return AlertSilenceOut.model_validate(made)


@router.delete(
    "/projects/{project}/alert-silences/{silence_id}",
    summary="End a silence",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.RUN_OPERATE, audit="alert-silence.end")
async def end_alert_silence(store: StoreDep, project: ProjectName, silence_id: SilenceId) -> None:
    """Alerts that are still open send their notifications at once."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await uow.alert_definitions.end_silence(project, silence_id)
        await uow.commit()
