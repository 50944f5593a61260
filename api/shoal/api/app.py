"""The application: routes, errors and headers put together around the given services."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import HTMLResponse, JSONResponse

from shoal.api.access.authentication import require_browser
from shoal.api.pages import reference
from shoal.api.pages.openapi import describe
from shoal.api.pages.ui import Pages
from shoal.api.routes import (
    backfills,
    calendars,
    cluster,
    commands,
    concurrency,
    data_sources,
    environments,
    events,
    health,
    nodes,
    parameters,
    projects,
    purges,
    resources,
    schedules,
    secrets,
)
from shoal.api.routes.access import (
    account,
    audit,
    grants,
    groups,
    members,
    one_time,
    restrictions,
    service_accounts,
    sign_in,
    users,
)
from shoal.api.routes.alerts import alerts, channels, receivers, rules
from shoal.api.routes.insight import baseline, rollups, trends
from shoal.api.routes.insight import cluster as insight_cluster
from shoal.api.routes.insight import groups as insight_groups
from shoal.api.routes.runs import (
    bulk,
    instances,
    log_search,
    logs,
    past,
    planning,
    tasks,
    why,
)
from shoal.api.routes.views import dependencies, grid, history, queue, today
from shoal.api.routes.workflows import drafts, exchange, layouts, lifecycle, published, versions
from shoal.api.services import VERSION, Services
from shoal.api.web import problems
from shoal.api.web.middleware import PREFIX, PacedLogins, RequestMiddleware

_ROUTERS = (
    health.public,
    health.router,
    account.public,
    account.router,
    one_time.public,
    one_time.router,
    sign_in.public,
    sign_in.callback,
    users.router,
    groups.router,
    members.router,
    grants.router,
    restrictions.router,
    service_accounts.router,
    audit.router,
    projects.router,
    parameters.router,
    secrets.router,
    data_sources.router,
    resources.router,
    published.router,
    versions.router,
    lifecycle.router,
    drafts.router,
    layouts.router,
    exchange.router,
    grid.router,
    today.router,
    queue.router,
    dependencies.router,
    history.router,
    trends.router,
    insight_groups.router,
    insight_cluster.router,
    rollups.router,
    baseline.router,
    schedules.router,
    calendars.router,
    concurrency.router,
    environments.router,
    rules.router,
    receivers.router,
    channels.router,
    alerts.router,
    commands.router,
    bulk.router,
    backfills.router,
    instances.router,
    planning.router,
    tasks.router,
    why.router,
    logs.router,
    log_search.router,
    past.router,
    purges.router,
    cluster.router,
    nodes.router,
    events.router,
)


def create_app(services: Services, version: str = VERSION) -> FastAPI:
    """Return the ASGI application. The services stay the caller's to close."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await services.feed.aclose()

    app = FastAPI(
        title="Shoal",
        version=version,
        lifespan=lifespan,
        openapi_url=None,  # FastAPI's own pages would be public
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # one address for each thing
    )
    app.state.services = services
    problems.install(app)
    past.install(app)
    app.add_middleware(PacedLogins)
    app.add_middleware(
        RequestMiddleware, settings=services.settings, data=services.data, token=services.token
    )
    for router in _ROUTERS:
        app.include_router(router, prefix=PREFIX)
    app.state.routes = [(PREFIX, route) for router in _ROUTERS for route in router.routes]
    _require_different_ids(app)
    app.include_router(_pages(app))
    Pages().install(app)
    return app


def _require_different_ids(app: FastAPI) -> None:
    """Raise TypeError for two operations with one id: clients have a method for each."""
    seen: set[str] = set()
    for _, route in app.state.routes:
        if route.operation_id in seen:
            raise TypeError(
                f"{route.path}: another operation is called {route.operation_id}, too; give the "
                f"handler {route.endpoint.__name__} a name of its own"
            )
        seen.add(route.operation_id)


def _pages(app: FastAPI) -> APIRouter:
    """What describes the API: for programs, and for people with a browser."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(require_browser)])

    async def described() -> dict[str, Any]:
        # The first time takes seconds, in which others want answers.
        return await asyncio.to_thread(describe, app)

    @router.get(f"{PREFIX}/openapi.json")
    async def openapi() -> JSONResponse:
        return JSONResponse(await described())

    @router.get("/docs")
    async def documentation() -> HTMLResponse:
        content = await described()
        return HTMLResponse(
            reference.page(content), headers={"Content-Security-Policy": reference.POLICY}
        )

    return router
