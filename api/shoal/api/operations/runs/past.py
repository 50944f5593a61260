"""Past runs, as far as a caller may see them: the exported history has names, rights go by ids."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response

from shoal.api.access.callers import Caller
from shoal.api.services import Services, services_of
from shoal.api.web.problems import kind_of, problem_response
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.errors import ShoalError
from shoal.insight.past.client import PastUnavailable
from shoal.insight.past.questions import PastInstance
from shoal.sql.errors import NotFound

log = structlog.get_logger()

# And what is told about it.
_INSTANCE = re.compile(r"/api/v1/instances/([0-9]{1,18})(/.*)?")
_HINT_S = 3.0  # an answer that something is not there waits so long for the history


async def visible_names(
    shoal: Services, caller: Caller, project: str | None
) -> Sequence[str] | None:
    """Return the names of the projects whose past runs a list may show; None: of all."""
    if caller.visible is None:
        return None if project is None else [project]
    async with shoal.database.unit_of_work(read_only=True) as uow:
        names = sorted(await uow.projects.names(caller.visible))
    return names if project is None else [name for name in names if name == project]


async def past_run(shoal: Services, instance_id: int) -> PastInstance:
    """Return a past run. Raises NotFound if there is none."""
    run = await shoal.past.run(instance_id)
    if run is None:
        raise NotFound(Thing.PAST_RUN, instance_id)
    return run


async def in_database(shoal: Services, ids: Sequence[int]) -> Mapping[int, Any]:
    """Return those of these instances that the database has."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        return await uow.instances.ends(ids)


def install(app: FastAPI) -> None:
    """Have answers that there is no instance say so if the exported history has it."""
    app.add_exception_handler(NotFound, _not_found)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotFound)
    kind = kind_of(error)
    assert kind is not None
    place = await _place_of(request, error)
    if place is None:
        return problem_response(request, kind, kind.detail or str(error))
    detail = f"{error} in the database any more; the exported history has it: {place}"
    return problem_response(request, kind, detail, members={"past": place})


async def _place_of(request: Request, missing: NotFound) -> str | None:
    """Return where the past run is that a request is about, if there is one for the caller."""
    match = _INSTANCE.fullmatch(request.url.path)
    caller = getattr(request.state, "caller", None)
    shoal = services_of(request)
    if not match or not isinstance(caller, Caller) or not shoal.past.is_on:
        return None
    instance_id = int(match[1])
    if (missing.kind, str(missing.key)) != (Thing.INSTANCE, str(instance_id)):
        return None  # it is about something else, of an instance that there is
    try:
        async with asyncio.timeout(_HINT_S):
            await caller.require(Permission.PROJECT_READ, Thing.PAST_RUN, instance_id)
            await past_run(shoal, instance_id)
    except NotFound:
        return None
    except (PastUnavailable, ShoalError, TimeoutError) as error:
        log.info("the history was not asked", instance=instance_id, error=str(error))
        return None
    return f"/api/v1/past-instances/{instance_id}"
