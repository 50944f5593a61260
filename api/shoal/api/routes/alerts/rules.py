"""Rules: what raises an alert, and who is notified."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import NOTHING, needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.alerts.definitions import (
    AlertDefinitionService,
    require_known,
    require_readable,
)
from shoal.api.operations.alerts.preview import preview, usual_message
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.alerts import (
    AlertPreviewIn,
    AlertPreviewOut,
    AlertRuleIn,
    AlertRuleOut,
)
from shoal.api.schemas.common import Page
from shoal.api.services import StoreDep, TemplatesDep
from shoal.api.web.errors import Forbidden
from shoal.api.web.paging import Cursor, Limit
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.alerts.occurrences import OF_CLUSTER
from shoal.core.alerts.records import DefinitionKind
from shoal.core.alerts.rules import RuleSpec

router = strict_router("alerts")

_STORED = AlertDefinitionService(DefinitionKind.RULE, RuleSpec, AlertRuleOut)
_OF_PROJECT = "/projects/{project}/alert-rules"

RuleName = Annotated[str, Path(max_length=100, examples=["night"])]


@router.get(_OF_PROJECT, summary="List rules of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_alert_rules(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AlertRuleOut]:
    """The rules of a project by name."""
    return await _STORED.page(store, project, limit, cursor)


@router.get(_OF_PROJECT + "/{name}", summary="Show a rule of alerts", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_alert_rule(
    store: StoreDep, project: ProjectName, name: RuleName, response: Response
) -> AlertRuleOut:
    """One rule."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _STORED.get(uow, project, name))


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Make or change a rule of alerts",
    responses={
        201: {"model": AlertRuleOut, "description": "It is new."},
        **documented(400, 404, 413, 415, 429),
    },
)
@needs(Permission.PROJECT_EDIT, audit="alert-rule.set")
async def put_alert_rule(
    store: StoreDep,
    templates: TemplatesDep,
    caller: Calling,
    project: ProjectName,
    name: NewName,
    body: Annotated[AlertRuleIn, Body()],
    condition: Condition,
) -> AlertRuleOut:
    """Replaces all of it. It is about what happens from now on."""
    if OF_CLUSTER & set(body.triggers) and not caller.may(Permission.CLUSTER_READ):
        raise Forbidden("rules about the cluster are made by its administrators")
    await require_readable(templates, project, body.templates)
    return await _STORED.put(
        store,
        project,
        name,
        body,
        condition,
        lambda uow: require_known(uow, project, DefinitionKind.RECEIVER, "receivers", body.named),
    )


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Delete a rule of alerts",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="alert-rule.delete")
async def delete_alert_rule(
    store: StoreDep, project: ProjectName, name: RuleName, condition: Condition
) -> None:
    """Its alerts stay in the history; no further notifications are sent for them."""
    await _STORED.delete(store, project, name, condition)


@router.post(
    "/projects/{project}/alert-previews",
    summary="Preview a message about an alert",
    responses=documented(400, 404, 413, 415, 429),
)
@needs(Permission.PROJECT_READ, audit=NOTHING)
async def preview_alert(
    store: StoreDep,
    templates: TemplatesDep,
    project: ProjectName,
    body: Annotated[AlertPreviewIn, Body()],
) -> AlertPreviewOut:
    """What a rule would say, of an alert or of an example. Nothing is stored or sent."""
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        usual = await usual_message(uow, project, body.rule, body.alert_id, store.clock())
    message = await preview(templates, project, body.rule, usual)
    return AlertPreviewOut(subject=message.subject, text=message.text, html=message.html)
