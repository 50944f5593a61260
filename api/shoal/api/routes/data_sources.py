"""Data sources of projects. Their passwords come in here and never leave."""

import asyncio
from collections.abc import Iterator
from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.audit import Recording
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.plugins import usable_plugins
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.data_sources import usable
from shoal.api.operations.secrets.values import SecretValues
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.data_sources import (
    DataSourceIn,
    DataSourceKindOut,
    DataSourceOut,
    ProbeIn,
    ProbeOut,
)
from shoal.api.services import ProberDep, SecretValuesDep, StoreDep
from shoal.api.web.answers import by_name, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page, part_of
from shoal.api.web.problems import documented
from shoal.api.web.store import Store
from shoal.core.access.grants import Restricted, no_such_group
from shoal.core.access.permissions import Permission
from shoal.core.checks.parameters import bad_secret_name
from shoal.core.checks.secrets import secret_problems
from shoal.core.data_sources.kind import UnknownSourceKind, options_schema
from shoal.core.data_sources.references import SOURCE_NAME_PATTERN
from shoal.core.data_sources.spec import (
    SourcePassword,
    StoredDataSource,
    findings,
    password_problem,
    secret_of,
)
from shoal.core.errors import UnusablePlugin
from shoal.runtime.source_kinds import load_source_kind, source_kinds
from shoal.runtime.vault import password_of_source
from shoal.sql import UnitOfWork

router = strict_router("data sources")

_OF_PROJECT = "/projects/{project}/data-sources"
NewSource = Annotated[str, Path(pattern=SOURCE_NAME_PATTERN, examples=["warehouse"])]
SourceName = Annotated[str, Path(max_length=100, examples=["warehouse"])]


@router.get("/data-source-kinds", summary="List kinds of data sources")
@needs(Permission.SIGNED_IN)
async def list_data_source_kinds(
    limit: Limit = 50, cursor: Cursor = None
) -> Page[DataSourceKindOut]:
    """What each kind takes, with the JSON Schema of its options."""
    kinds, following = part_of("data-source-kinds", source_kinds(), str, limit, cursor)

    def shown(name: str) -> DataSourceKindOut:
        kind = load_source_kind(name)
        schema = options_schema(kind.Options)
        return DataSourceKindOut.of_record(kind, kind=name, options_schema=schema)

    return Page(items=usable_plugins(kinds, shown), next=following)


@router.get(_OF_PROJECT, summary="List data sources", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_data_sources(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[DataSourceOut]:
    """The data sources of a project by name, without those that others share with it."""
    after = decode_cursor("data-sources", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        position = (project, after[0]) if after else None
        found = await uow.data_sources.list(project, position, limit + 1)
    items, more = page(found, limit)
    return Page(
        items=shown("data source", items, _out, by_name),
        next=encode_cursor("data-sources", items[-1].name) if more else None,
    )


@router.get(_OF_PROJECT + "/{name}", summary="Show a data source", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_data_source(
    store: StoreDep, project: ProjectName, name: SourceName, response: Response
) -> DataSourceOut:
    """One data source, without its password."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> DataSourceOut:
    found = await uow.data_sources.get(project, name)
    with legible("data source", name):
        return _out(found)


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Make or change a data source",
    responses={
        201: {"model": DataSourceOut, "description": "It is new."},
        **documented(400, 404, 409, 413, 415),
    },
)
@needs(Permission.CONNECTION_EDIT, audit="data-source.set")
async def put_data_source(
    store: StoreDep,
    secret_values: SecretValuesDep,
    project: ProjectName,
    name: NewSource,
    body: Annotated[DataSourceIn, Body()],
    condition: Condition,
) -> DataSourceOut:
    """Replaces everything but a password that the request leaves out.

    Tasks that start from now on use it as it is then. A password is kept for the same kind, host
    and port alone: 409 asks for it otherwise.
    """
    spec = body.spec
    try:
        # The first time a plug-in may import for long.
        kind = await asyncio.to_thread(load_source_kind, spec.kind)
    except (UnknownSourceKind, UnusablePlugin) as error:
        raise InvalidRequest([FieldError("kind", str(error))]) from error
    if wrong := await asyncio.to_thread(findings, spec, kind):
        raise InvalidRequest([FieldError(field, message) for field, message in wrong])
    while True:
        password, key = await _password(store, secret_values, project, name, body)
        async with store.unit_of_work() as uow:
            if not await uow.sealing.holds(key):
                continue  # the keys were rotated just now
            await uow.projects.require(project)
            await condition.check(lambda: _stored(uow, project, name), spec)
            stored, is_new = await uow.data_sources.put(
                project, name, spec, password, store.clock()
            )
            if stored.password and (problem := password_problem(spec, kind)):
                raise InvalidRequest([FieldError("password", problem)])
            await uow.commit()
        return condition.answer(_out(stored), is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Delete a data source",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.CONNECTION_EDIT, audit="data-source.delete")
async def delete_data_source(
    store: StoreDep, project: ProjectName, name: SourceName, condition: Condition
) -> None:
    """Tasks that name it fail from now on, with the reason."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.data_sources.delete(project, name)
        await uow.commit()


@router.post(
    _OF_PROJECT + "/{name}/test",
    summary="Try a data source",
    responses=documented(400, 404, 413, 415, 503),
)
@needs(Permission.CONNECTION_EDIT, audit="data-source.try")
async def test_data_source(
    store: StoreDep,
    prober: ProberDep,
    secret_values: SecretValuesDep,
    record: Recording,
    project: ProjectName,
    name: SourceName,
    body: Annotated[ProbeIn, Body()],
) -> ProbeOut:
    """Has a worker sign in and ask which server it is. Takes up to 30 s; nothing is changed."""
    async with store.unit_of_work(read_only=True) as uow:
        stored = await uow.data_sources.get(project, name)
        secrets = await uow.secrets.stored(project)
        closed = await uow.restrictions.closed(
            Restricted.WORKER_GROUP, {body.worker_group}, project
        )
    if closed:
        raise InvalidRequest(
            [FieldError("worker_group", no_such_group(project, body.worker_group))]
        )
    record.note()  # nothing is changed, but the password is used
    source = await usable(stored, secrets, secret_values, body.parameters, store.clock())
    return ProbeOut.model_validate(await prober.probe(source, body.worker_group))


async def _password(
    store: Store, secret_values: SecretValues, project: str, name: str, body: DataSourceIn
) -> tuple[SourcePassword | None, str | None]:
    """Return the password to be stored, None keeps the one that is there; and its key."""
    if body.keeps_password or body.password is None:
        return None if body.keeps_password else SourcePassword(), await _primary(store)
    value = body.password.get_secret_value()
    if problems := list(_problems(value)):
        raise InvalidRequest([FieldError("password", problem) for problem in problems])
    if (secret := secret_of(value)) is not None:
        return SourcePassword(secret=secret), await _primary(store)
    bound = password_of_source(name)
    ciphertext, key = await secret_values.seal(store.database, project, bound, value)
    return SourcePassword(ciphertext), key


async def _primary(store: Store) -> str | None:
    async with store.unit_of_work(read_only=True) as uow:
        return (await uow.sealing.state()).primary


def _problems(value: str) -> Iterator[str]:
    if (secret := secret_of(value)) is None:
        yield from secret_problems(value)
    elif problem := bad_secret_name(secret):
        yield problem


def _out(found: StoredDataSource) -> DataSourceOut:
    return DataSourceOut(
        project=found.project,
        name=found.name,
        **found.spec.model_dump(),
        has_password=bool(found.password),
        password_secret=found.password.secret,
        version=found.version,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )
