"""What is sent for each operation about service accounts.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def create_service_account(project: str, body: types.ServiceAccountIn) -> Call[types.AccountOut]:
    """Make a service account.

    It has a role in this project from the start, and can be given some in others.
    """
    return Call("POST", f"/projects/{part(str(project))}/service-accounts", body=body)


def create_service_account_token(
    project: str, name: str, body: types.TokenIn
) -> Call[types.NewTokenOut]:
    """Make a token of a service account.

    It may do what the account may at that moment, within its own limits.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens",
        body=body,
    )


def disable_service_account(project: str, name: str) -> Call[None]:
    """Disable a service account.

    All its tokens are worthless within a second. Its name is not given again.
    """
    return Call("DELETE", f"/projects/{part(str(project))}/service-accounts/{part(str(name))}")


def list_service_account_tokens(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TokenPage]:
    """List a service account's tokens.

    Without their texts, the newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens",
        query={"limit": limit, "cursor": cursor},
    )


def list_service_accounts(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AccountPage]:
    """List service accounts.

    The service accounts of a project by name, disabled ones too.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/service-accounts",
        query={"limit": limit, "cursor": cursor},
    )


def revoke_service_account_token(project: str, name: str, token_id: int) -> Call[None]:
    """Revoke a token of a service account.

    Makes it worthless, within a second.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens/{part(str(token_id))}",
    )
