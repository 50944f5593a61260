"""What is sent for each operation about users.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def change_user(
    name: str,
    body: types.UserChange,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AccountOut]:
    """Change a user.

    Disabling ends all sessions and tokens of the user within a second.

    At least one administrator remains. You cannot disable your own account.
    """
    return Call(
        "PATCH",
        f"/users/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
        repeat=True,
    )


def create_user(body: types.UserIn) -> Call[types.NewUserOut]:
    """Make a user.

    The password is for the first sign-in alone: it has to be changed then.
    """
    return Call("POST", "/users", body=body)


def delete_identity(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Remove a user's link to a provider.

    Its sessions and tokens end, and it leaves the groups that the issuer has put it into.

    `If-Match` takes the ETag of the user.
    """
    return Call(
        "DELETE",
        f"/users/{part(str(name))}/identity",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_user(name: str) -> Call[types.AccountOut]:
    """Show a user.

    One user.
    """
    return Call("GET", f"/users/{part(str(name))}")


def list_user_tokens(
    name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TokenPage]:
    """List a user's tokens.

    Without their texts, the newest first.
    """
    return Call("GET", f"/users/{part(str(name))}/tokens", query={"limit": limit, "cursor": cursor})


def list_users(*, limit: int | None = None, cursor: str | None = None) -> Call[types.AccountPage]:
    """List users.

    All users by name, disabled ones too.
    """
    return Call("GET", "/users", query={"limit": limit, "cursor": cursor})


def put_identity(
    name: str,
    body: types.IdentityIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AccountOut]:
    """Let a user sign in elsewhere.

    Who is ``subject`` for ``issuer`` is this user. A password that was never used goes.

    `If-Match` takes the ETag of the user.
    """
    return Call(
        "PUT",
        f"/users/{part(str(name))}/identity",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def reset_user_password(name: str) -> Call[types.NewUserOut]:
    """Give a user another password.

    Makes a random password, to be changed at the next sign-in; sessions and tokens end.
    """
    return Call("POST", f"/users/{part(str(name))}/password-reset")


def revoke_user_token(name: str, token_id: int) -> Call[None]:
    """Revoke a user's token.

    Makes it worthless, within a second.
    """
    return Call("DELETE", f"/users/{part(str(name))}/tokens/{part(str(token_id))}")
