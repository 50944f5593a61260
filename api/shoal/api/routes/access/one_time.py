"""One-time codes: how who can read the data folder signs in to the UI."""

from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated

from fastapi import Body, Request, Response

from shoal.api.access.audit import Recording
from shoal.api.access.authentication import COOKIE, require_own_page
from shoal.api.access.callers import Calling
from shoal.api.access.one_time import CODE_LIFE_S
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import public_router, strict_router
from shoal.api.operations.accounts import Browser, note_refused_session
from shoal.api.schemas.platform.one_time import OneTimeCodeIn, OneTimeCodeOut
from shoal.api.services import Shoal
from shoal.api.web.errors import CrossSite, Forbidden, Unauthorized
from shoal.api.web.problems import documented
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.permissions import Permission
from shoal.core.access.principals import BREAK_GLASS_NAME, PrincipalKind

public = public_router("account")
router = strict_router("account")


@router.post("/sign-in-codes", summary="Make a one-time code", status_code=201)
@needs(Permission.SIGNED_IN, audit="one-time-code.make")
async def create_sign_in_code(
    shoal: Shoal, caller: Calling, request: Request, record: Recording
) -> OneTimeCodeOut:
    """For a program that has the token of the data folder, on the machine of the API.

    A browser signs in with it once, within a minute: `shoal ui` does both.
    """
    _require_this_machine(request)
    if caller.principal.kind is not PrincipalKind.BREAK_GLASS or caller.credential.is_session:
        raise Forbidden("one-time codes are for the token of the data folder; sign in by name")
    record.note()
    return OneTimeCodeOut(code=shoal.one_time.make(), valid_s=CODE_LIFE_S)


@public.post(
    "/login/one-time",
    summary="Sign in with a one-time code",
    status_code=204,
    responses=documented(400, 401, 403, 413, 415),
)
async def login_by_one_time_code(
    shoal: Shoal, request: Request, response: Response, body: Annotated[OneTimeCodeIn, Body()]
) -> None:
    """Begins a session of the data folder's administrator. Pages of this API alone may ask."""
    require_own_page(request)
    _require_this_machine(request)
    address = request.client.host if request.client else ""
    browser = Browser(address, request.headers.get("user-agent", ""))
    if not shoal.one_time.redeem(body.code.get_secret_value()):
        note_refused_session(shoal, browser, "one-time code")
        raise Unauthorized("the link was used, or is older than a minute; run `shoal ui` again")
    shoal.auditor.note(
        NewEntry(
            shoal.clock(),
            "session.begin",
            principal=BREAK_GLASS_NAME,
            address=address,
            detail={"way": "one-time code"},
        )
    )
    life = timedelta(hours=shoal.settings.session_hours)
    response.set_cookie(
        COOKIE,
        shoal.identities.sealed.make(life),
        max_age=round(life.total_seconds()),
        secure=True,
        httponly=True,
        samesite="strict",
    )


def _require_this_machine(request: Request) -> None:
    """Raise CrossSite unless the request comes from the machine of the API."""
    host = request.client.host if request.client else ""
    try:
        is_here = ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        is_here = False
    if not is_here:
        raise CrossSite("one-time codes are for browsers on the machine of the API alone")
