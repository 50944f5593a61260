"""One-time codes: how who can read the data folder signs in to the UI."""

from ipaddress import ip_address
from typing import Annotated

from fastapi import Body, Request, Response

from shoal.api.access.audit import Recording, address_of
from shoal.api.access.authentication import require_own_page
from shoal.api.access.callers import Calling
from shoal.api.access.one_time import CODE_LIFE_S
from shoal.api.access.sessions import Browser
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import public_router, strict_router
from shoal.api.schemas.platform.one_time import OneTimeCodeIn, OneTimeCodeOut
from shoal.api.services import AccessDep
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
    access: AccessDep, caller: Calling, request: Request, record: Recording
) -> OneTimeCodeOut:
    """For a program that has the token of the data folder, on the machine of the API.

    A browser signs in with it once, within a minute: `shoal ui` does both.
    """
    _require_this_machine(request)
    if caller.principal.kind is not PrincipalKind.BREAK_GLASS or caller.credential.is_session:
        raise Forbidden("one-time codes are for the token of the data folder; sign in by name")
    record.note()
    return OneTimeCodeOut(code=access.one_time.make(), valid_s=CODE_LIFE_S)


@public.post(
    "/login/one-time",
    summary="Sign in with a one-time code",
    status_code=204,
    responses=documented(400, 401, 403, 413, 415),
)
async def login_by_one_time_code(
    access: AccessDep, request: Request, response: Response, body: Annotated[OneTimeCodeIn, Body()]
) -> None:
    """Begins a session of the data folder's administrator. Pages of this API alone may ask."""
    require_own_page(request)
    _require_this_machine(request)
    browser = Browser.of(request)
    if not access.one_time.redeem(body.code.get_secret_value()):
        access.sessions.note_refusal(browser, "one-time code")
        raise Unauthorized("the link was used, or is older than a minute; run `shoal ui` again")
    access.auditor.note(
        NewEntry(
            access.clock(),
            "session.begin",
            principal=BREAK_GLASS_NAME,
            address=browser.address,
            detail={"way": "one-time code"},
        )
    )
    sessions = access.sessions
    sessions.set_cookie(response, access.identities.sealed.make(sessions.life))


def _require_this_machine(request: Request) -> None:
    """Raise CrossSite unless the request comes from the machine of the API."""
    host = address_of(request)
    try:
        is_here = ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        is_here = False
    if not is_here:
        raise CrossSite("one-time codes are for browsers on the machine of the API alone")
