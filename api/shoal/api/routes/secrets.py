"""Secrets of projects, and the keys that encrypt their values.

Values are written and never shown. A secret may also be a reference into another store.
"""

import time
from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.audit import Recording
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.secrets.key_rotation import KeyRotation
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.secrets_keys import KeysOut, RotationIn, RotationOut
from shoal.api.schemas.project_values import SecretIn, SecretOut, SecretTestOut
from shoal.api.services import ClusterDep, SecretValuesDep, StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.checks.secrets import secret_problems
from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.runtime.secret_stores.errors import InvalidReference, SecretStoreError
from shoal.runtime.vault import VaultError
from shoal.sql import UnitOfWork

router = strict_router("secrets")

_OF_PROJECT = "/projects/{project}/secrets"
NewSecret = Annotated[str, Path(pattern=PARAMETER_PATTERN, examples=["db_password"])]
SecretName = Annotated[str, Path(max_length=100, examples=["db_password"])]


@router.get(_OF_PROJECT, summary="List a project's secrets", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_secrets(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[SecretOut]:
    """Their names and ages. Values are never shown."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.secrets.list(project)
    items, following = part_of("secrets", found, lambda one: one.name, limit, cursor)
    return Page(
        items=[SecretOut.model_validate(one) for one in items],
        next=following,
    )


@router.get(_OF_PROJECT + "/{name}", summary="Show a secret", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_secret(
    store: StoreDep, project: ProjectName, name: SecretName, response: Response
) -> SecretOut:
    """Its age. The value is never shown."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> SecretOut:
    found = await uow.secrets.get(project, name)
    return SecretOut.model_validate(found)


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Set a secret",
    responses={
        201: {"model": SecretOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.CONNECTION_EDIT, audit="secret.set")
async def put_secret(
    store: StoreDep,
    secret_values: SecretValuesDep,
    project: ProjectName,
    name: NewSecret,
    body: Annotated[SecretIn, Body()],
    condition: Condition,
) -> SecretOut:
    """Stores a value encrypted, or where the secret is kept; tasks that start from now on get it.

    Whether a reference can be read is not tried: `…/test` does that.
    """
    if len(body.model_fields_set) != 1:
        raise InvalidRequest([FieldError("value", "give either value or reference")])
    value = body.value.get_secret_value() if "value" in body.model_fields_set else None
    if value is not None and (problems := list(secret_problems(value))):
        raise InvalidRequest([FieldError("value", problem) for problem in problems])
    while True:
        ciphertext, key = "", None
        if value is not None:
            ciphertext, key = await secret_values.seal(store.database, project, name, value)
        async with store.unit_of_work() as uow:
            if value is not None and not await uow.sealing.holds(key):
                continue  # the keys were rotated just now
            await uow.projects.require(project)
            reference = ""
            if value is None:
                try:
                    reference = str(secret_values.stores.checked(project, body.reference))
                except InvalidReference as error:
                    raise InvalidRequest([FieldError("reference", str(error))]) from error
            await condition.check(lambda: _stored(uow, project, name))
            if value is not None:
                is_new = await uow.secrets.put(project, name, ciphertext, store.clock())
            else:
                is_new = await uow.secrets.refer(project, name, reference, store.clock())
            stored = await _stored(uow, project, name)
            await uow.commit()
        return condition.answer(stored, is_new=is_new)


@router.post(_OF_PROJECT + "/{name}/test", summary="Try a secret", responses=documented(404))
@needs(Permission.CONNECTION_EDIT, audit="secret.try")
async def test_secret(
    store: StoreDep,
    secret_values: SecretValuesDep,
    record: Recording,
    project: ProjectName,
    name: SecretName,
) -> SecretTestOut:
    """Read it as a task would now, from its store or by its key. The value is not returned."""
    async with store.unit_of_work(read_only=True) as uow:
        await uow.secrets.get(project, name)
        stored = (await uow.secrets.stored(project))[name]
    record.note()  # nothing is changed, but the secret is read
    began = time.monotonic()
    try:
        await secret_values.open(stored, project, name)
    except (VaultError, SecretStoreError) as error:
        is_good, text = False, str(error)
    else:
        is_good, text = True, f"{stored.reference or 'it'} can be read"
    return SecretTestOut(ok=is_good, text=text, took_s=time.monotonic() - began)


@router.delete(
    _OF_PROJECT + "/{name}", summary="Delete a secret", status_code=204, responses=documented(404)
)
@needs(Permission.CONNECTION_EDIT, audit="secret.delete")
async def delete_secret(
    store: StoreDep, project: ProjectName, name: SecretName, condition: Condition
) -> None:
    """Tasks that refer to it fail from now on, with the reason."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.secrets.delete(project, name)
        await uow.commit()


@router.get("/secrets-keys", summary="Show the keys of the secrets")
@needs(Permission.SECRETS_ROTATE)
async def get_secrets_keys(
    store: StoreDep, cluster: ClusterDep, secret_values: SecretValuesDep
) -> KeysOut:
    """Their ids alone: which encrypts, what each has encrypted, and which masters have them."""
    rotation = KeyRotation(store.database, secret_values.vault, cluster.masters)
    found = await rotation.state()
    return KeysOut(
        primary=found.primary,
        next=found.sealing.next,
        old=list(found.sealing.old),
        retired=list(found.sealing.retired),
        here=list(found.here),
        masters={name: list(keys) for name, keys in found.masters.items()},
        used=dict(found.used),
    )


@router.post(
    "/secrets-keys/rotation",
    summary="Take a step of a rotation",
    responses=documented(400, 413, 415),
)
@needs(Permission.SECRETS_ROTATE, audit="secrets.rotate")
async def rotate_secrets_keys(
    store: StoreDep,
    cluster: ClusterDep,
    secret_values: SecretValuesDep,
    record: Recording,
    body: Annotated[RotationIn, Body()],
) -> RotationOut:
    """Ask for steps until the phase is not `working`; what was done stays done.

    A new key encrypts only when every live master has it. No value is lost, whatever dies.
    """
    record.detail["begin"] = body.begin
    rotation = KeyRotation(store.database, secret_values.vault, cluster.masters)
    done = await rotation.step(begin=body.begin)
    return RotationOut.model_validate(done)
