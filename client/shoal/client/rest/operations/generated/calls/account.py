"""What is sent for each operation about account.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, StreamCall, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def begin_sign_in(
    provider: str,
    *,
    return_to: str | None = None,
    port: int | None = None,
    state: str | None = None,
    challenge: str | None = None,
) -> Call[None]:
    """Begin to sign in at a provider.

    Leads a browser to the provider. A cookie makes sure that the same one comes back.
    """
    return Call(
        "GET",
        f"/login/oidc/{part(str(provider))}",
        query={"return_to": return_to, "port": port, "state": state, "challenge": challenge},
    )


def change_password(body: types.PasswordIn) -> Call[None]:
    """Change one's password.

    Needs the present one. All other sessions end, and all tokens unless they are kept.
    """
    return Call("PUT", "/me/password", body=body, repeat=False)


def create_sign_in_code() -> Call[types.OneTimeCodeOut]:
    """Make a one-time code.

    For a program that has the token of the data folder, on the machine of the API.

    A browser signs in with it once, within a minute: `shoal ui` does both.
    """
    return Call("POST", "/sign-in-codes")


def create_token(body: types.TokenIn) -> Call[types.NewTokenOut]:
    """Make a token.

    A token may do what its owner may at that moment, within its own limits.

    A token makes no tokens: sign in for that.
    """
    return Call("POST", "/me/tokens", body=body)


def end_session(session_id: int) -> Call[None]:
    """End a session of one's own.

    Signs a browser out, within a second.
    """
    return Call("DELETE", f"/me/sessions/{part(str(session_id))}")


def end_sign_in(
    provider: str,
    *,
    state: str | None = None,
    code: str | None = None,
    iss: str | None = None,
    error: str | None = None,
) -> StreamCall:
    """End a sign-in at a provider.

    Where providers lead back to. Begins a session, or gives a command line its code.
    """
    return StreamCall(
        f"/login/oidc/{part(str(provider))}/callback",
        query={"state": state, "code": code, "iss": iss, "error": error},
    )


def get_me() -> Call[types.MeOut]:
    """Show who one is.

    The caller, its roles, and what its token is limited to.
    """
    return Call("GET", "/me")


def get_ways() -> Call[types.WayPage]:
    """List the ways of signing in.

    A password here, a directory's, and providers. No provider is asked.
    """
    return Call("GET", "/login")


def leave(provider: str) -> Call[None]:
    """End the session at a provider.

    Leads a browser to where the provider ends its own session. Sign out here first.
    """
    return Call("GET", f"/login/oidc/{part(str(provider))}/logout")


def list_sessions(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SessionPage]:
    """List one's sessions.

    The browsers in which one is signed in, the newest first.
    """
    return Call("GET", "/me/sessions", query={"limit": limit, "cursor": cursor})


def list_tokens(*, limit: int | None = None, cursor: str | None = None) -> Call[types.TokenPage]:
    """List one's tokens.

    One's tokens, without their texts, the newest first.
    """
    return Call("GET", "/me/tokens", query={"limit": limit, "cursor": cursor})


def login(body: types.LoginIn) -> Call[None]:
    """Sign in.

    Begins a session: the answer sets a cookie that pages of this API alone are sent with.
    """
    return Call("POST", "/login", body=body)


def login_by_code(body: types.CodeIn) -> Call[None]:
    """Sign a command line in.

    Changes what the browser has brought to the command, once, into a session.
    """
    return Call("POST", "/login/code", body=body)


def login_by_directory(body: types.LoginIn) -> Call[None]:
    """Sign in with a directory's password.

    Begins a session of who has this name and this password in the directory.
    """
    return Call("POST", "/login/ldap", body=body)


def login_by_one_time_code(body: types.OneTimeCodeIn) -> Call[None]:
    """Sign in with a one-time code.

    Begins a session of the data folder's administrator. Pages of this API alone may ask.
    """
    return Call("POST", "/login/one-time", body=body)


def logout() -> Call[None]:
    """Sign out.

    Ends the session that asks. A token stays what it is: revoke it instead.
    """
    return Call("POST", "/logout")


def revoke_token(token_id: int) -> Call[None]:
    """Revoke a token of one's own.

    Makes it worthless, within a second.
    """
    return Call("DELETE", f"/me/tokens/{part(str(token_id))}")
