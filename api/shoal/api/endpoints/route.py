"""The route class of all but the public routes: strict about callers, names and bodies.

The name of a handler is the id of its operation, in the spelling of OpenAPI: ``list_projects`` is
``listProjects``, ``post_token`` is ``createToken``. Clients are generated from these ids, so they
are frozen: see ``docs/api.md``.
"""

import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Match
from starlette.types import Scope

from shoal.api.access.audit import Record, address_of, record_of
from shoal.api.access.authentication import authenticate, documented_credentials
from shoal.api.access.callers import caller_of
from shoal.api.access.control import access_of
from shoal.api.endpoints.guard import (
    NOTHING,
    THINGS,
    action_of,
    is_large,
    judged_of,
    permission_of,
)
from shoal.api.endpoints.preconditions import STATUSES, is_conditional
from shoal.api.web.body import MAX_BODY_BYTES, JsonRequest
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.middleware import PREFIX
from shoal.api.web.problems import documented
from shoal.api.web.turns import LargeRequests
from shoal.core.access.permissions import OF_PROJECT
from shoal.core.hints import MOST_MISTAKES, Hints

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class BoundedRoute(APIRoute):
    """Checks query names, then the JSON body: what FastAPI leaves to each handler."""

    most_bytes: ClassVar[int] = 16 * 1024  # of a body that anybody may send
    takes_more: ClassVar[bool] = False  # names of a query that are unknown here

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        first, *others = endpoint.__name__.split("_")
        made = _VERBS.get(first, first) + "".join(word.capitalize() for word in others)
        options["operation_id"] = options.get("operation_id") or made
        super().__init__(path, endpoint, **options)

    async def admit(self, request: Request) -> None:
        """Return if anything may be read of a request; raise an ApiError if not."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler behind our checks."""
        handler = super().get_route_handler()
        known = set(_query_names(self.dependant))
        body_field, is_whole = self.body_field, not self._embed_body_fields

        async def strict(request: Request) -> Response:
            await self.admit(request)
            if not self.takes_more:
                _check_query(request, known)
            checked = JsonRequest(request.scope, request.receive)
            checked.most_bytes = self.most_bytes
            if body_field is not None:
                await checked.read()  # before its turn: a slow client holds up no other
            async with self.turn(checked):
                if body_field is not None:
                    await checked.parse_json()
                    if is_whole:
                        await checked.validate_large(body_field)
                return await handler(checked)

        return strict

    def turn(self, request: JsonRequest) -> AbstractAsyncContextManager[None]:
        """Return the block in which a request is worked on."""
        return nullcontext()


class ReturnRoute(BoundedRoute):
    """Where another server sends browsers: it may say more than is read (RFC 6749, 4.1.2)."""

    takes_more = True


class StrictRoute(BoundedRoute):
    """Finds out who calls before anything is read, then checks query names, then the JSON body.

    FastAPI reads bodies before it calls dependencies, so a dependency alone would let strangers
    fill our memory. There is no such route whose handler does not say what it needs of its caller.
    """

    most_bytes = MAX_BODY_BYTES

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        permission = permission_of(endpoint)
        if permission is None:
            raise TypeError(f"{path}: put @needs(Permission.…) on {endpoint.__name__}")
        action, self._is_large = action_of(endpoint), is_large(endpoint)
        options["openapi_extra"] = {
            **(options.get("openapi_extra") or {}),
            "x-permission": str(permission),
            **({} if action in (None, NOTHING) else {"x-audit": action}),
        }
        if self._is_large:
            options["responses"] = {**documented(429), **(options.get("responses") or {})}
        if is_conditional(endpoint):
            options["responses"] = {**documented(*STATUSES), **(options.get("responses") or {})}
        super().__init__(path, endpoint, **options)
        if action is None and (self.methods or set()) - _SAFE_METHODS:
            raise TypeError(f"{path}: put audit='noun.verb' into @needs of {endpoint.__name__}")
        names = self.param_convertors.keys()
        if permission in OF_PROJECT and names and not names & THINGS.keys():
            raise TypeError(f"{path}: nothing in it says which project it is about")
        if unjudged := names & THINGS.keys() - judged_of(endpoint):
            raise TypeError(f"{path}: annotate {', '.join(sorted(unjudged))} with Path(…)")

    async def admit(self, request: Request) -> None:
        """Find out who calls. Raises Unauthorized, CrossSite."""
        request.state.caller = await authenticate(request)
        request.state.record = Record(
            access_of(request).auditor,
            caller_of(request),
            address_of(request),
            getattr(request.state, "request_id", ""),
            is_reading=request.method in _SAFE_METHODS,
        )

    def turn(self, request: JsonRequest) -> AbstractAsyncContextManager[None]:
        """Return the block in which a request is worked on. Raises TooManyRequests."""
        record_of(request).has_large_body = request.is_large
        if not (self._is_large or request.is_large):
            return nullcontext()
        turns: LargeRequests = request.app.state.services.large_requests
        return turns.turn(caller_of(request).name)


_VERBS = {"post": "create", "patch": "change"}


def _query_names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from (field.alias or name for name, field in annotation.model_fields.items())
        else:
            yield parameter.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_query(request: Request, known: set[str]) -> None:
    """A misspelt filter that is silently ignored shows everything: refuse it."""
    hints = Hints()
    unknown = islice((name for name in request.query_params if name not in known), MOST_MISTAKES)
    errors = [
        FieldError(name, "is not a query parameter of this route" + hints.of(name, known))
        for name in unknown
    ]
    if errors:
        raise InvalidRequest(errors)


class Router(APIRouter):
    """Is included below ``PREFIX``, and passes over paths that none of its routes has.

    FastAPI asks every route of every router, one by one: with 120 of them that was up to a third
    of the processor time of a START. One expression for a router's paths is enough.
    """

    _paths: re.Pattern[str] | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether one of the routes has the path and the method of a request."""
        if self._paths is None:  # the application is complete when the first request comes
            routes = [route for route in self.routes if isinstance(route, APIRoute)]
            assert len(routes) == len(self.routes), "routers are not nested"
            paths = "|".join(_UNNAMED(route.path_regex.pattern[1:]) for route in routes)
            self._paths = re.compile(f"{re.escape(PREFIX)}(?:{paths})")
        if self._paths.match(scope["path"]) is None:
            return Match.NONE, {}
        return super().matches(scope)


_UNNAMED = partial(re.compile(r"\?P<\w+>").sub, "?:")


def public_router(tag: str, route_class: type[BoundedRoute] = BoundedRoute) -> APIRouter:
    """Return an empty router whose routes anybody may call."""
    return Router(route_class=route_class, tags=[tag], responses=documented(422, 500, 503))


def strict_router(tag: str) -> APIRouter:
    """Return an empty router whose routes have callers."""
    return Router(
        route_class=StrictRoute,
        tags=[tag],
        dependencies=[Depends(documented_credentials)],
        responses=documented(401, 403, 422, 500, 503),
    )
