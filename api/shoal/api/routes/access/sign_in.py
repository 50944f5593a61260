"""Signing in elsewhere: the ways that there are, a directory's passwords, providers."""

import asyncio
import re
from asyncio import sleep
from time import time
from typing import Annotated, Any

from fastapi import Body, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from shoal.api.access.authentication import require_no_other_page
from shoal.api.access.sessions import Browser
from shoal.api.endpoints.route import ReturnRoute, public_router
from shoal.api.federation import flow as flows
from shoal.api.federation.accounts import enter, enter_by_code, enter_by_flow
from shoal.api.federation.errors import SignInFailed
from shoal.api.federation.flow import COOKIE, LASTS_S, WaitingCommand, new_flow
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import LoginIn
from shoal.api.schemas.platform.sign_in import Challenge, CodeIn, WayOut
from shoal.api.services import AccessDep, FederationDep, SettingsDep, StoreDep
from shoal.api.web.errors import ApiError, FieldError, InvalidRequest, Unauthorized
from shoal.api.web.middleware import PREFIX
from shoal.api.web.problems import documented
from shoal.core.access.principals import key_of
from shoal.sql.errors import NotFound

public = public_router("account")
callback = public_router("account", ReturnRoute)

# A refusal comes no sooner, so that its time does not tell whether a directory knows a name.
REFUSED_AFTER_S = 0.5
_PROVIDER = "/login/oidc/{provider}"
ProviderName = Annotated[str, Path(max_length=32, examples=["example"])]
_REDIRECT: dict[int | str, Any] = {303: {"description": "Where the browser goes."}}
_HTML: dict[int | str, Any] = {
    200: {"description": "A page that leads on.", "content": {"text/html": {"example": "<p>"}}}
}


@public.get("/login", summary="List the ways of signing in")
async def get_ways(federation: FederationDep) -> Page[WayOut]:
    """A password here, a directory's, and providers. No provider is asked."""
    path = f"{PREFIX}/login"
    found = [WayOut(name="password", kind="password", title="Password", path=path)]
    directory = federation.directory
    if directory is not None:
        title = directory.settings.title or directory.name
        found.append(WayOut(name=directory.name, kind="ldap", title=title, path=f"{path}/ldap"))
    for name, one in federation.providers.items():
        where = f"{path}/oidc/{name}"
        found.append(WayOut(name=name, kind="oidc", title=one.settings.title or name, path=where))
    return Page(items=found)


@public.post(
    "/login/ldap",
    summary="Sign in with a directory's password",
    status_code=204,
    responses=documented(400, 401, 403, 404, 409, 413, 415, 429),
)
async def login_by_directory(
    store: StoreDep,
    access: AccessDep,
    federation: FederationDep,
    request: Request,
    response: Response,
    body: Annotated[LoginIn, Body()],
) -> None:
    """Begins a session of who has this name and this password in the directory."""
    require_no_other_page(request)
    directory = federation.directory
    if directory is None:
        raise NotFound("way of signing in", "ldap")
    browser = Browser.of(request)
    key = key_of(body.name)
    access.failed_logins.begin(key, browser.address)
    soonest = asyncio.create_task(sleep(REFUSED_AFTER_S))
    try:
        found = await directory.identity(body.name, body.password.get_secret_value())
        if found is None:
            raise Unauthorized("wrong name or password", headers={"WWW-Authenticate": "Bearer"})
        secret = await enter(store.database, access, found, directory.rules, browser)
    except ApiError as error:
        if not isinstance(error, Unauthorized):
            access.failed_logins.succeeded(key, browser.address)  # the password was not wrong
        access.sessions.note_refusal(browser, "ldap")
        await soonest
        raise
    finally:
        soonest.cancel()
    access.failed_logins.succeeded(key, browser.address)
    access.sessions.set_cookie(response, secret)


@public.post(
    "/login/code",
    summary="Sign a command line in",
    status_code=204,
    responses=documented(400, 403, 413, 415, 429),
)
async def login_by_code(
    store: StoreDep,
    access: AccessDep,
    request: Request,
    response: Response,
    body: Annotated[CodeIn, Body()],
) -> None:
    """Changes what the browser has brought to the command, once, into a session."""
    require_no_other_page(request)
    browser = Browser.of(request)
    access.failed_logins.begin(body.code, browser.address)
    try:
        secret = await enter_by_code(store.database, access, body.code, body.verifier, browser)
    except ApiError:
        access.sessions.note_refusal(browser, "command line")
        raise
    access.failed_logins.succeeded(body.code, browser.address)
    access.sessions.set_cookie(response, secret)


@public.get(
    _PROVIDER,
    summary="Begin to sign in at a provider",
    status_code=303,
    response_class=RedirectResponse,
    responses={**_REDIRECT, **documented(404)},
)
async def begin_sign_in(
    federation: FederationDep,
    provider: ProviderName,
    return_to: Annotated[
        str, Query(max_length=500, description="A path of this API, where it ends.")
    ] = "/docs",
    port: Annotated[
        int | None,
        Query(ge=1024, le=65535, description="On loopback, where a command line waits."),
    ] = None,
    state: Annotated[
        str | None,
        Query(pattern=r"^[A-Za-z0-9_-]{16,64}$", description="What that wants to get back."),
    ] = None,
    challenge: Annotated[
        Challenge | None, Query(description="Of its PKCE, by S256 (RFC 7636).")
    ] = None,
) -> RedirectResponse:
    """Leads a browser to the provider. A cookie makes sure that the same one comes back."""
    found = federation.providers.get(provider)
    if found is None:
        raise NotFound("way of signing in", provider)
    if not flows.is_own_path(return_to):
        raise InvalidRequest([FieldError("return_to", "is not a path of this API, such as /docs")])
    flow = new_flow(provider, return_to, time(), _command_line(port, state, challenge))
    answer = RedirectResponse(await found.authorization_url(flow), 303)
    # Lax: it has to come along when the provider leads back here.
    answer.set_cookie(
        COOKIE, flows.to_cookie(flow), LASTS_S, secure=True, httponly=True, samesite="lax"
    )
    return answer


@callback.get(
    f"{_PROVIDER}/callback",
    summary="End a sign-in at a provider",
    response_class=HTMLResponse,
    responses={**_HTML, **documented(400, 401, 403, 404, 409, 429)},
)
async def end_sign_in(
    store: StoreDep,
    access: AccessDep,
    federation: FederationDep,
    settings: SettingsDep,
    request: Request,
    provider: ProviderName,
    state: Annotated[str, Query(max_length=100, description="As it was sent there.")] = "",
    code: Annotated[str, Query(max_length=4000, description="For tokens, once.")] = "",
    iss: Annotated[str | None, Query(max_length=500, description="Of RFC 9207.")] = None,
    error: Annotated[str, Query(max_length=200, description="Why there is no code.")] = "",
) -> HTMLResponse:
    """Where providers lead back to. Begins a session, or gives a command line its code."""
    browser = Browser.of(request)
    try:
        found = federation.providers.get(provider)
        if found is None:
            raise NotFound("way of signing in", provider)
        flow = flows.from_cookie(request.cookies.get(COOKIE, ""), time())
        if flow is None or flow.provider != provider or not flows.is_same(flow.state, state):
            raise SignInFailed(
                "this browser has begun no such sign-in, or took more than ten minutes; begin "
                f"again at {settings.public_url}, with cookies allowed"
            )
        if error or not code:
            said = error if re.fullmatch(r"[a-z_]{1,50}", error) else "no code"
            raise SignInFailed(f"the provider did not complete the sign-in ({said})")
        access.failed_logins.begin(flow.state, browser.address)
        identity = await found.identity(flow, code, iss)
        secret = await enter_by_flow(store.database, access, flow, identity, found.rules, browser)
        access.failed_logins.succeeded(flow.state, browser.address)
    except ApiError as problem:
        access.sessions.note_refusal(browser, provider)
        response = Response()
        response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="lax")
        problem.headers["Set-Cookie"] = response.headers["set-cookie"]
        raise
    if flow.command_line is not None:
        answer = HTMLResponse(flows.asks(flow.command_line, flow.code))
    else:
        assert secret is not None, "no command line waits"
        answer = HTMLResponse(flows.leads_on(flow.return_to))
        access.sessions.set_cookie(answer, secret)
    answer.delete_cookie(COOKIE, secure=True, httponly=True, samesite="lax")
    return answer


@public.get(
    f"{_PROVIDER}/logout",
    summary="End the session at a provider",
    status_code=303,
    response_class=RedirectResponse,
    responses={**_REDIRECT, **documented(404)},
)
async def leave(
    federation: FederationDep, settings: SettingsDep, provider: ProviderName
) -> RedirectResponse:
    """Leads a browser to where the provider ends its own session. Sign out here first."""
    found = federation.providers.get(provider)
    if found is None:
        raise NotFound("way of signing in", provider)
    url = await found.end_session_url(settings.public_url)
    if url is None:
        raise NotFound("place to sign out at", provider)
    return RedirectResponse(url, 303)


def _command_line(
    port: int | None, state: str | None, challenge: str | None
) -> WaitingCommand | None:
    if port is None and state is None and challenge is None:
        return None
    if port is None or state is None or challenge is None:
        raise InvalidRequest([FieldError("port", "goes together with state and challenge")])
    return WaitingCommand(port, state, challenge)
