"""What is sent for each operation about secrets.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_secret(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a secret.

    Tasks that refer to it fail from now on, with the reason.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/secrets/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_secret(project: str, name: str) -> Call[types.SecretOut]:
    """Show a secret.

    Its age. The value is never shown.
    """
    return Call("GET", f"/projects/{part(str(project))}/secrets/{part(str(name))}")


def get_secrets_keys() -> Call[types.KeysOut]:
    """Show the keys of the secrets.

    Their ids alone: which encrypts, what each has encrypted, and which masters have them.
    """
    return Call("GET", "/secrets-keys")


def list_secrets(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SecretPage]:
    """List a project's secrets.

    Their names and ages. Values are never shown.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/secrets", query={"limit": limit, "cursor": cursor}
    )


def put_secret(
    project: str,
    name: str,
    body: types.SecretIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.SecretOut]:
    """Set a secret.

    Stores a value encrypted, or where the secret is kept; tasks that start from now on get it.

    Whether a reference can be read is not tried: `…/test` does that.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/secrets/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def rotate_secrets_keys(body: types.RotationIn) -> Call[types.RotationOut]:
    """Take a step of a rotation.

    Ask for steps until the phase is not `working`; what was done stays done.

    A new key encrypts only when every live master has it. No value is lost, whatever dies.
    """
    return Call("POST", "/secrets-keys/rotation", body=body, repeat=True)


def test_secret(project: str, name: str) -> Call[types.SecretTestOut]:
    """Try a secret.

    Read it as a task would now, from its store or by its key. The value is not returned.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/secrets/{part(str(name))}/test", repeat=True
    )
