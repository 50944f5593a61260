"""The keys that encrypt secrets: which there are, and another one in their place."""

from typing import Annotated

from fastapi import Body

from shoal.api.access.audit import Recording
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.secrets.key_rotation import KeyRotation
from shoal.api.schemas.platform.secrets_keys import KeysOut, RotationIn, RotationOut
from shoal.api.services import ClusterDep, SecretValuesDep, StoreDep
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission

router = strict_router("secrets")


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
    return RotationOut.model_validate(done, from_attributes=True)
