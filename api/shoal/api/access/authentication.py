"""From the headers of a request to its caller.

Programs send a token: ``Authorization: Bearer …``. Browsers that have signed in send a cookie;
what changes something must come from our own pages then, so that no other site can use the
session. The pages meant for browsers without a session (/docs and the OpenAPI description) take a
token as the password of basic authentication, too, since a browser cannot send the header itself.
"""

import base64
import binascii
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from shoal.api.access.audit import address_of
from shoal.api.access.callers import Caller
from shoal.api.access.control import access_of
from shoal.api.access.identities import Credential
from shoal.api.access.sessions import COOKIE
from shoal.api.web.errors import CrossSite, Unauthorized
from shoal.core.access.audit.entries import NewEntry, Outcome

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_REASON = (
    "sign in, or send a token in the header 'Authorization: Bearer …'; on the machine of the "
    "data folder its file 'token' holds one"
)

_bearer = HTTPBearer(
    scheme_name="token",
    description="An API token, or the one in the file `token` of the data folder.",
    auto_error=False,
)
_cookie = APIKeyCookie(
    name=COOKIE,
    scheme_name="session",
    description="The session of a browser: `POST /api/v1/login`.",
    auto_error=False,
)


async def documented_credentials(
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    __: Annotated[str | None, Security(_cookie)],
) -> None:
    """Dependency of every router but the public one: it says in OpenAPI what is accepted."""


async def authenticate(request: Request) -> Caller:
    """Return who has sent a request. Raises Unauthorized, CrossSite, DatabaseUnavailable."""
    scheme, given = _authorization(request)
    if scheme == "bearer":
        return await _found(request, Credential(given), "Bearer")
    cookie = request.cookies.get(COOKIE)
    if scheme or not cookie:
        raise Unauthorized(_REASON, headers={"WWW-Authenticate": "Bearer"})
    if request.method not in _SAFE_METHODS:
        require_own_page(request)
    return await _found(request, Credential(cookie, is_session=True), "Bearer")


async def require_browser(request: Request) -> None:
    """Dependency of pages for browsers. Raises Unauthorized with a challenge they understand."""
    scheme, given = _authorization(request)
    challenge = 'Basic realm="Shoal: any user name, a token as password", charset="UTF-8"'
    if scheme == "basic":
        given = _password(given)
    if scheme in ("bearer", "basic"):
        await _found(request, Credential(given), challenge)
        return
    if cookie := request.cookies.get(COOKIE):
        await _found(request, Credential(cookie, is_session=True), challenge)
        return
    raise Unauthorized(_REASON, headers={"WWW-Authenticate": challenge})


def require_own_page(request: Request) -> None:
    """Return if a browser's request comes from a page of ours. Raises CrossSite.

    Every browser of today says where a request comes from, and no page can say it instead.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin")
        is_ours = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if not is_ours:
        raise CrossSite(
            "a session of a browser can change something from the pages of this API alone; "
            "programs send a token instead of a cookie"
        )


def require_no_other_page(request: Request) -> None:
    """Return unless a page of another site makes a browser sign in. Raises CrossSite.

    Programs, which sign in too, say nothing of sites.
    """
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        require_own_page(request)


async def _found(request: Request, credential: Credential, challenge: str) -> Caller:
    access = access_of(request)
    found = await access.identities.find(credential)
    if found is None:
        if not credential.is_session:
            access.auditor.note(
                NewEntry(
                    at=access.clock(),
                    action="token.use",
                    outcome=Outcome.REFUSED,
                    address=address_of(request),
                )
            )
        reason = "the session is over: sign in again" if credential.is_session else _REASON
        raise Unauthorized(reason, headers={"WWW-Authenticate": challenge})
    return Caller(found, credential, access.identities, access.homes)


def _authorization(request: Request) -> tuple[str, str]:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower(), given.strip()


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
