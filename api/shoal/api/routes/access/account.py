"""One's own account: sign in and out, the password, sessions, tokens."""

from typing import Annotated

from fastapi import Body, Path, Request, Response

from shoal.api.access.audit import address_of
from shoal.api.access.authentication import require_no_other_page
from shoal.api.access.callers import Caller, Calling
from shoal.api.access.sessions import COOKIE, Browser
from shoal.api.access.tokens import make_token, token_out
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import public_router, strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import (
    LoginIn,
    MeOut,
    NewTokenOut,
    PasswordIn,
    RoleOut,
    SessionOut,
    TokenIn,
    TokenOut,
)
from shoal.api.services import AccessDep, IdentitiesDep, StoreDep
from shoal.api.web.errors import FieldError, Forbidden, InvalidRequest
from shoal.api.web.paging import MAX_ID, Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.access.principals import EVERYTHING, PrincipalKind, key_of

public = public_router("account")
router = strict_router("account")

_NOBODY = 0  # an id that no account has
SessionId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[5])]
TokenId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[3])]


@public.post(
    "/login",
    summary="Sign in",
    status_code=204,
    responses=documented(400, 401, 403, 413, 415, 429),
)
async def login(
    store: StoreDep,
    access: AccessDep,
    request: Request,
    response: Response,
    body: Annotated[LoginIn, Body()],
) -> None:
    """Begins a session: the answer sets a cookie that pages of this API alone are sent with."""
    require_no_other_page(request)
    password, browser = body.password.get_secret_value(), Browser.of(request)
    secret = await access.sign_in(store.database, body.name, password, browser)
    access.sessions.set_cookie(response, secret)


@router.post("/logout", summary="Sign out", status_code=204)
@needs(Permission.SIGNED_IN, audit="session.end")
async def logout(
    store: StoreDep, identities: IdentitiesDep, caller: Calling, response: Response
) -> None:
    """Ends the session that asks. A token stays what it is: revoke it instead."""
    signed = caller.signed_in
    identities.sealed.end(caller.credential.text)
    if signed.session_id is not None and signed.principal.id is not None:
        async with store.unit_of_work() as uow:
            await uow.sessions.end(signed.principal.id, signed.session_id)
            await uow.commit()
        identities.changed()
    response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")


@router.get("/me", summary="Show who one is")
@needs(Permission.SIGNED_IN)
async def get_me(store: StoreDep, caller: Calling) -> MeOut:
    """The caller, its roles, and what its token is limited to."""
    who = caller.principal
    limit = who.scope.projects
    async with store.unit_of_work(read_only=True) as uow:
        named = await uow.projects.named({*who.roles, *(limit or ())})
        own = None if who.id is None else await uow.principals.named(who.id)
    roles = [
        RoleOut(project=named[one], role=role)
        for one, role in who.roles.items()
        if one in named and (limit is None or one in limit)
    ]
    permissions = who.scope.permissions
    return MeOut.of_record(
        who,
        has_password=own is not None and own.has_password,
        issuer=None if own is None else own.issuer,
        roles=sorted(roles, key=lambda role: role.project),
        permissions=None if permissions is None else sorted(permissions),
        projects=None if limit is None else sorted(named[one] for one in limit if one in named),
    )


@router.put(
    "/me/password",
    summary="Change one's password",
    status_code=204,
    responses=documented(400, 413, 415, 429),
)
@needs(Permission.SIGNED_IN, audit="password.change")
async def change_password(
    store: StoreDep,
    access: AccessDep,
    identities: IdentitiesDep,
    caller: Calling,
    request: Request,
    body: Annotated[PasswordIn, Body()],
) -> None:
    """Needs the present one. All other sessions end, and all tokens unless they are kept."""
    principal_id = _own(caller)
    async with store.unit_of_work(read_only=True) as uow:
        own = await uow.principals.named(principal_id)
    if own.issuer is not None and not own.has_password:
        raise Forbidden(f"{own.name} has no password here: it signs in at {own.issuer}")
    address = address_of(request)
    key = key_of(caller.name)
    access.failed_logins.begin(key, address)
    async with store.unit_of_work(read_only=True) as uow:
        stored = await uow.principals.password(caller.name)
    current = body.current.get_secret_value()
    hashed = None if stored is None else stored.hash
    if not await access.passwords.matches(hashed, current):
        raise InvalidRequest([FieldError("current", "is not the present password")])
    access.failed_logins.succeeded(key, address)
    new = body.new.get_secret_value()
    if new == current:
        raise InvalidRequest([FieldError("new", "is the present password")])
    made, _ = await access.passwords.hash_new(caller.name, new, "new")
    async with store.unit_of_work() as uow:
        await uow.principals.set_password(principal_id, made, must_change=False)
        await uow.sessions.end_all(principal_id, but=caller.signed_in.session_id)
        if not body.keep_tokens:
            await uow.tokens.revoke_all(principal_id, store.clock())
        await uow.commit()
    identities.changed()


@router.get("/me/sessions", summary="List one's sessions")
@needs(Permission.SIGNED_IN)
async def list_sessions(
    store: StoreDep, caller: Calling, limit: Limit = 50, cursor: Cursor = None
) -> Page[SessionOut]:
    """The browsers in which one is signed in, the newest first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.sessions.list(caller.principal.id or _NOBODY, store.clock())
    items, following = part_of("sessions", found, lambda one: one.id, limit, cursor, falling=True)
    return Page(
        items=[
            SessionOut.of_record(one, is_this=one.id == caller.signed_in.session_id)
            for one in items
        ],
        next=following,
    )


@router.delete(
    "/me/sessions/{session_id}",
    summary="End a session of one's own",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.SIGNED_IN, audit="session.end")
async def end_session(
    store: StoreDep, identities: IdentitiesDep, caller: Calling, session_id: SessionId
) -> None:
    """Signs a browser out, within a second."""
    async with store.unit_of_work() as uow:
        await uow.sessions.end(_own(caller), session_id)
        await uow.commit()
    identities.changed()


@router.get("/me/tokens", summary="List one's tokens")
@needs(Permission.SIGNED_IN)
async def list_tokens(
    store: StoreDep, caller: Calling, limit: Limit = 50, cursor: Cursor = None
) -> Page[TokenOut]:
    """One's tokens, without their texts, the newest first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tokens.list(caller.principal.id or _NOBODY)
    items, following = part_of("tokens", found, lambda one: one.id, limit, cursor, falling=True)
    return Page(items=[token_out(one) for one in items], next=following)


@router.post(
    "/me/tokens",
    summary="Make a token",
    status_code=201,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.SIGNED_IN, audit="token.add")
async def post_token(
    store: StoreDep, caller: Calling, body: Annotated[TokenIn, Body()]
) -> NewTokenOut:
    """A token may do what its owner may at that moment, within its own limits.

    A token makes no tokens: sign in for that.
    """
    principal_id = _own(caller)
    if caller.signed_in.session_id is None or caller.principal.must_change_password:
        raise Forbidden("sign in with the password first: a token makes no tokens")
    names = await caller.visible_names(store)
    return await make_token(store.database, store.clock(), principal_id, body, names)


@router.delete(
    "/me/tokens/{token_id}",
    summary="Revoke a token of one's own",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.SIGNED_IN, audit="token.revoke")
async def revoke_token(
    store: StoreDep, identities: IdentitiesDep, caller: Calling, token_id: TokenId
) -> None:
    """Makes it worthless, within a second."""
    async with store.unit_of_work() as uow:
        await uow.tokens.revoke(_own(caller), token_id, store.clock())
        await uow.commit()
    identities.changed()


def _own(caller: Caller) -> int:
    """Return the id of the account that asks. Raises Forbidden for who has none.

    And for a token with limits: it changes nothing of its account.
    """
    who = caller.principal
    if who.scope != EVERYTHING:
        raise Forbidden("a token with limits changes nothing of its account; sign in for that")
    if who.id is None or who.kind is PrincipalKind.BREAK_GLASS:
        raise Forbidden("the token of the data folder belongs to no account; sign in as a user")
    return who.id
