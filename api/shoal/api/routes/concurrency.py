"""Concurrency groups: how many tasks that share something may be at work at once."""

from typing import Annotated

import structlog
from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.concurrency import (
    ConcurrencyGroupDetail,
    ConcurrencyGroupIn,
    ConcurrencyGroupOut,
    SlotUserOut,
)
from shoal.api.services import IntakeDep, StoreDep
from shoal.api.web.answers import by_name, legible, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.runs.concurrency import SlotUser
from shoal.sql import UnitOfWork

log = structlog.get_logger()

router = strict_router("concurrency groups")

GroupName = Annotated[str, Path(max_length=100, examples=["warehouse"])]


@router.get(
    "/projects/{project}/concurrency-groups",
    summary="List concurrency groups",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_concurrency_groups(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[ConcurrencyGroupOut]:
    """The concurrency groups of a project by name."""
    after = decode_cursor("concurrency-groups", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        position = (project, after[0]) if after else None
        found = await uow.concurrency.list(project, position, limit + 1)
    items, more = page(found, limit)
    return Page(
        items=shown(
            "concurrency group",
            items,
            ConcurrencyGroupOut.model_validate,
            by_name,
        ),
        next=encode_cursor("concurrency-groups", items[-1].name) if more else None,
    )


@router.get(
    "/projects/{project}/concurrency-groups/{name}",
    summary="Show a concurrency group",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_concurrency_group(
    store: StoreDep, project: ProjectName, name: GroupName, response: Response
) -> ConcurrencyGroupDetail:
    """One group with the attempts that have its slots and those that wait for one."""
    async with store.unit_of_work(read_only=True) as uow:
        group = await uow.concurrency.get(project, name)
        holders = await uow.concurrency.holders(project, name)
        waiters = await uow.concurrency.waiters(project, name)
    with legible("concurrency group", name):
        detail = ConcurrencyGroupDetail.of_record(
            group,
            holders=shown("task instance", holders, SlotUserOut.model_validate, _by_task),
            waiters=shown("task instance", waiters, SlotUserOut.model_validate, _by_task),
        )
    return tagged(response, detail)


async def _stored(uow: UnitOfWork, project: str, name: str) -> ConcurrencyGroupOut:
    return ConcurrencyGroupOut.model_validate(await uow.concurrency.get(project, name))


def _by_task(user: SlotUser) -> int:
    return user.task_instance_id


@router.put(
    "/projects/{project}/concurrency-groups/{name}",
    summary="Make or change a concurrency group",
    responses={
        201: {"model": ConcurrencyGroupOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="concurrency-group.set")
async def put_concurrency_group(
    store: StoreDep,
    intake: IntakeDep,
    project: ProjectName,
    name: NewName,
    body: Annotated[ConcurrencyGroupIn, Body()],
    condition: Condition,
) -> ConcurrencyGroupOut:
    """Sets the number of slots, at once.

    Fewer slots end nothing: as tasks end, no others start until few enough are left.
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name), body)
        stored, is_new = await uow.concurrency.put(
            project, name, body.slots, body.description, store.clock()
        )
        waiting = await uow.slots.waiting_in(f"{project}/{name}")
        await uow.commit()
    if waiting:
        intake.notify(waiting)  # without it they poll at the next regular time
    return condition.answer(ConcurrencyGroupOut.model_validate(stored), is_new=is_new)


@router.delete(
    "/projects/{project}/concurrency-groups/{name}",
    summary="Delete a concurrency group",
    status_code=204,
    responses=documented(404, 409),
)
@needs(Permission.PROJECT_EDIT, audit="concurrency-group.delete")
async def delete_concurrency_group(
    store: StoreDep, project: ProjectName, name: GroupName, condition: Condition
) -> None:
    """Refused while the newest version of a workflow names it, or a task has or awaits a slot."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.concurrency.delete(project, name)
        await uow.commit()
