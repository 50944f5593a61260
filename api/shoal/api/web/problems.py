"""Every error as a problem document (RFC 9457): what went wrong, where, and nothing else.

Expected errors are mapped by their type. Anything unexpected becomes a 500 with an error id that
also stands in the log; its text and its traceback stay there.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from types import MappingProxyType
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from shoal.api.web.errors import INTERNAL, NOT_FOUND, UNUSABLE, ApiError, FieldError, ProblemKind
from shoal.coordination.errors import (
    CannotConnect,
    ConnectionLoss,
    CredentialRefused,
    SessionLost,
)
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.errors import ShoalError
from shoal.core.hints import MOST_MISTAKES
from shoal.insight.past.client import NoPastConfigured, PastUnavailable
from shoal.proto.errors import PeerRefused, PeerUnavailable
from shoal.runtime.limits import memory_shortage
from shoal.runtime.storage import StorageError
from shoal.runtime.vault import VaultError
from shoal.sql.errors import (
    AccountExists,
    Archived,
    CalendarInUse,
    ConcurrencyGroupInUse,
    DatabaseUnavailable,
    DatabaseUnwritable,
    DraftChanged,
    EnvironmentInUse,
    IdentityTaken,
    IntegrityViolated,
    InvalidValue,
    LastAdministrator,
    NotFound,
    OpenInstances,
    PartitionsMissing,
    PasswordOfAnotherServer,
    PathTaken,
    ProjectFull,
    ResourceChanged,
    StaleRow,
    TooManyToSort,
    TransactionConflict,
    UnreadableRow,
    UploadExpired,
    WorkflowExists,
    WorkflowInUse,
)

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1  # the header of answers that another try may better
MOST_ERRORS = 1000  # listed in one document


class ProblemField(BaseModel):
    """One field that is wrong."""

    field: str = Field(description="Path of the field, such as tasks[2].depends_on[0].")
    message: str
    line: int | None = Field(default=None, description="Line of the source, where known.")


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/problems/not-found",
                    "title": "Not found",
                    "status": 404,
                    "detail": "there is no workflow instance 4711",
                    "instance": "/api/v1/instances/4711",
                    "request_id": "6f1c1d2e9b7a4c55",
                    "errors": [],
                }
            ]
        }
    )

    type: str = Field(description="Kind of problem; a relative URI that programs may compare.")
    title: str = Field(description="The kind in words; the same for every problem of the type.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What happened in this case, and what to do.")
    instance: str = Field(description="Path of the request.")
    request_id: str = Field(
        description="The id of the request, which is also in the log of the API."
    )
    errors: list[ProblemField] = Field(default=[], description="Each field that is wrong.")


class StaleProblem(Problem):
    """The state is not the one that the request is about: nothing was changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/problems/precondition-failed",
                    "title": "The state is another one",
                    "status": 412,
                    "detail": "it has changed since",
                    "instance": "/api/v1/projects/flights/concurrency-groups/warehouse",
                    "request_id": "6f1c1d2e9b7a4c55",
                    "errors": [],
                    "current": {"project": "flights", "name": "warehouse", "slots": 6},
                    "changes": [{"op": "changed", "path": "slots", "before": 6, "after": 4}],
                }
            ]
        }
    )

    current: dict[str, Any] | None = Field(description="The state now; null: there is none.")
    changes: list[dict[str, Any]] = Field(
        description="What the request would change of it: op, path, before, after."
    )


_DATABASE = ProblemKind(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "database-unavailable",
    "The database does not answer",
    "the database did not carry this out in time; send the request again",
)
_ZOOKEEPER = ProblemKind(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "zookeeper-unavailable",
    "ZooKeeper does not answer",
    "this answer needs ZooKeeper, which could not be reached; send the request again",
)
_CONFLICT = ProblemKind(HTTPStatus.CONFLICT, "conflict", "Another request was quicker")
_DEFINITION = ProblemKind(
    HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-definition", "The workflow definition is invalid"
)
_KINDS: Mapping[type[ShoalError], ProblemKind] = {
    NotFound: NOT_FOUND,
    OpenInstances: ProblemKind(HTTPStatus.CONFLICT, "open-instances", "Instances are still open"),
    AccountExists: ProblemKind(HTTPStatus.CONFLICT, "name-taken", "The name is taken"),
    IdentityTaken: ProblemKind(
        HTTPStatus.CONFLICT, "identity-taken", "The identity is linked already"
    ),
    LastAdministrator: ProblemKind(
        HTTPStatus.CONFLICT, "last-administrator", "No administrator would be left"
    ),
    Archived: ProblemKind(HTTPStatus.CONFLICT, "archived", "The workflow is archived"),
    WorkflowInUse: ProblemKind(HTTPStatus.CONFLICT, "workflow-in-use", "Others need the workflow"),
    WorkflowExists: ProblemKind(HTTPStatus.CONFLICT, "name-taken", "The name is taken"),
    DraftChanged: _CONFLICT,
    CalendarInUse: ProblemKind(
        HTTPStatus.CONFLICT, "calendar-in-use", "Schedules use the calendar"
    ),
    ConcurrencyGroupInUse: ProblemKind(
        HTTPStatus.CONFLICT, "concurrency-group-in-use", "The concurrency group is in use"
    ),
    EnvironmentInUse: ProblemKind(
        HTTPStatus.CONFLICT, "environment-in-use", "The environment is in use"
    ),
    PasswordOfAnotherServer: ProblemKind(
        HTTPStatus.CONFLICT,
        "password-of-another-server",
        "The password was given for another server",
    ),
    PathTaken: ProblemKind(HTTPStatus.CONFLICT, "path-taken", "The path is taken"),
    ResourceChanged: ProblemKind(
        HTTPStatus.CONFLICT, "resource-changed", "The resource has changed"
    ),
    UploadExpired: ProblemKind(HTTPStatus.CONFLICT, "upload-expired", "The upload took too long"),
    ProjectFull: ProblemKind(HTTPStatus.CONFLICT, "project-full", "The project has no room left"),
    TooManyToSort: ProblemKind(
        HTTPStatus.UNPROCESSABLE_ENTITY, "too-many-to-sort", "Too many items to sort"
    ),
    StorageError: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "storage-unavailable",
        "The storage of resources cannot be used",
    ),
    NoPastConfigured: ProblemKind(HTTPStatus.NOT_FOUND, "no-history", "No history is exported"),
    PastUnavailable: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "history-unavailable",
        "The exported history cannot be read",
    ),
    IntegrityViolated: replace(
        _CONFLICT,
        detail="the change contradicts one made at the same time; read again, then decide",
    ),
    StaleRow: _CONFLICT,
    InvalidValue: replace(
        UNUSABLE,
        detail="the database cannot store one of the values: too long, too large, or a NUL "
        "character",
    ),
    UnreadableRow: ProblemKind(
        HTTPStatus.CONFLICT, "unreadable", "What is stored is beyond this version"
    ),
    PartitionsMissing: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", "The cluster was never started"
    ),
    DatabaseUnwritable: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "database-unwritable",
        "The database stores nothing",
        "the database is read-only, full or moved, and nothing was changed; GET /health tells "
        "administrators why. Send the request again when that is repaired",
    ),
    DatabaseUnavailable: _DATABASE,
    TransactionConflict: _DATABASE,
    ConnectionLoss: _ZOOKEEPER,
    CannotConnect: _ZOOKEEPER,
    CredentialRefused: _ZOOKEEPER,
    SessionLost: _ZOOKEEPER,
    VaultError: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "no-secrets-key", "Secrets cannot be encrypted"
    ),
    PeerUnavailable: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "peer-unavailable", "A process of the cluster is silent"
    ),
    PeerRefused: ProblemKind(
        HTTPStatus.BAD_GATEWAY, "peer-refused", "A process of the cluster refused the request"
    ),
}

_HTTP_SLUGS = {404: "no-such-route", 405: "method-not-allowed"}


class ProblemResponse(JSONResponse):
    """A problem document on its way out."""

    media_type = MEDIA_TYPE


def problem_response(
    request: Request,
    kind: ProblemKind,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, Any] = MappingProxyType({}),
) -> ProblemResponse:
    """Build the response. The type is the kind's slug below /problems/.

    ``members``: what the document has besides.
    """
    fields = [
        ProblemField(field=error.field, message=error.message, line=error.line)
        for error in errors[:MOST_ERRORS]
    ]
    document = Problem(
        type=f"/problems/{kind.slug}",
        title=kind.title,
        status=int(kind.status),
        detail=detail,
        instance=request.url.path,
        request_id=getattr(request.state, "request_id", ""),
        errors=fields,
    ).model_dump()
    for field in document["errors"]:
        if field["line"] is None:
            del field["line"]
    given = dict(headers or {})
    if kind.status == HTTPStatus.SERVICE_UNAVAILABLE:
        given.setdefault("Retry-After", str(RETRY_AFTER_S))
    return ProblemResponse({**document, **members}, int(kind.status), given)


def install(app: FastAPI) -> None:
    """Answer all errors of ``app`` with problem documents."""
    app.add_exception_handler(ShoalError, _shoal_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)


async def _shoal_error(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, ShoalError)
    if isinstance(error, ApiError):
        text, members = str(error), error.members
        return problem_response(request, error.kind, text, error.errors, error.headers, members)
    if isinstance(error, InvalidDefinition):
        return _invalid_definition(request, error)
    if (kind := kind_of(error)) is None:
        return unexpected(request, error)
    if kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request failed", path=request.url.path, error=str(error))
    return problem_response(request, kind, kind.detail or str(error))


def kind_of(error: ShoalError) -> ProblemKind | None:
    """Return the kind of an expected error; None: it is not one."""
    if isinstance(error, ApiError):
        return error.kind
    return next((_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS), None)


def _invalid_definition(request: Request, error: InvalidDefinition) -> ProblemResponse:
    found = [FieldError(p.field, p.message, p.line) for p in error.problems]
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    detail = f"{count} in the definition; nothing was stored"
    return problem_response(request, _DEFINITION, detail, found)


async def _validation_error(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    told = islice(error.errors(), MOST_MISTAKES)
    found = [FieldError(_field(item["loc"]), _message(item)) for item in told]
    detail = "; ".join(f"{e.field}: {e.message}" for e in found[:5])
    return problem_response(request, UNUSABLE, detail, found)


def _field(loc: Sequence[str | int]) -> str:
    """Return the path without its first part, which says body, query, path or header."""
    text = ""
    for part in loc[1:] or loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _message(item: Mapping[str, Any]) -> str:
    match item["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a known field"
        case "value_error":
            return str(item["ctx"]["error"])
        case _:
            message = str(item["msg"])
            return message[:1].lower() + message[1:]


async def _http_error(request: Request, error: Exception) -> ProblemResponse:
    """Errors of the framework: unknown routes, methods that a route does not have."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    slug = _HTTP_SLUGS.get(status, status.phrase.lower().replace(" ", "-"))
    detail = {
        404: f"there is nothing at {request.url.path}; see /api/v1/openapi.json",
        405: f"{request.url.path} does not allow {request.method}",
    }.get(error.status_code, str(error.detail))
    headers = _allowed(request) if status == HTTPStatus.METHOD_NOT_ALLOWED else error.headers
    return problem_response(
        request, ProblemKind(status, slug, status.phrase), detail, headers=headers
    )


def _allowed(request: Request) -> dict[str, str]:
    """Return the header with all methods of a path: each of its routes has its own alone.

    ``create_app`` puts the routes there.
    """
    found: set[str] = set()
    for prefix, route in request.app.state.routes:
        path = request.url.path
        if path.startswith(prefix) and route.path_regex.match(path.removeprefix(prefix)):
            found |= route.methods
    found = found or {"GET"}
    return {"Allow": ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))}


def unexpected(request: Request, error: Exception) -> ProblemResponse:
    """Log an unforeseen error, and answer with its id alone. Out of memory, end the process."""
    memory_shortage.report(error)
    error_id = secrets.token_hex(8)
    log.error(
        "unexpected error",
        error_id=error_id,
        method=request.method,
        path=request.url.path,
        exc_info=error,
    )
    detail = f"an unexpected error; the log of the API holds it under the id {error_id}"
    return problem_response(request, INTERNAL, detail)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problem responses of an operation for its OpenAPI description."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in map(int, statuses):
        model = StaleProblem if status == HTTPStatus.PRECONDITION_FAILED else Problem
        schema = {"$ref": f"#/components/schemas/{model.__name__}"}
        content = {MEDIA_TYPE: {"schema": schema}}
        found[status] = {"description": _MEANINGS[status], "content": content}
    return found


_MEANINGS: Mapping[int, str] = {
    400: "The body is not JSON.",
    401: "The token or the session is missing, wrong or over.",
    403: "The caller may see what the request names, but not do this.",
    404: "Something that the request names does not exist, or not for the caller.",
    408: "The body came to a halt.",
    409: "The present state does not allow it.",
    412: "The state is not the one that the request, or its digest, is about; `current` is the "
    "present state, if it is a single value.",
    413: "The body is too large: more than 8 MiB, or than a resource may have.",
    415: "The body is not application/json.",
    416: "The log has no such bytes.",
    422: "Values that cannot be used; `errors` names each field.",
    428: "A session has to say which state it has seen: If-Match.",
    429: "Too many at once, or too soon after the last one; see Retry-After.",
    500: "An unexpected error; the log of the API has it under the id in `detail`.",
    502: "Another process of the cluster refused the request.",
    503: "The database, ZooKeeper or a worker does not answer; see Retry-After.",
}
