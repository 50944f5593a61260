"""Users, for administrators."""

from typing import Annotated, Any

from fastapi import Body, Path, Response

from shoal.api.access.callers import Calling
from shoal.api.access.tokens import token_out
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.access.account import TokenId
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import AccountOut, NewUserOut, TokenOut, UserChange, UserIn
from shoal.api.schemas.platform.sign_in import IdentityIn
from shoal.api.services import (
    AccessDep,
    FederationDep,
    IdentitiesDep,
    StoreDep,
)
from shoal.api.web.answers import by_name, shown
from shoal.api.web.errors import FieldError, Forbidden, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.access.principals import RESERVED_NAMES, PrincipalKind, key_of
from shoal.core.access.records import Account, NewAccount
from shoal.sql import UnitOfWork
from shoal.sql.errors import AccountExists, NotFound

router = strict_router("users")

UserName = Annotated[str, Path(max_length=100, examples=["ada"])]


@router.get("/users", summary="List users")
@needs(Permission.USER_MANAGE)
async def list_users(store: StoreDep, limit: Limit = 50, cursor: Cursor = None) -> Page[AccountOut]:
    """All users by name, disabled ones too."""
    after = decode_cursor("users", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.principals.list(
            PrincipalKind.USER, after[0] if after else None, limit + 1
        )
    items, more = page(found, limit)
    return Page(
        items=shown("user", items, AccountOut.model_validate, by_name),
        next=encode_cursor("users", items[-1].name) if more else None,
    )


@router.post(
    "/users",
    summary="Make a user",
    status_code=201,
    responses=documented(400, 409, 413, 415, 429),
)
@needs(Permission.USER_MANAGE, audit="user.add")
async def post_user(
    store: StoreDep, access: AccessDep, identities: IdentitiesDep, body: Annotated[UserIn, Body()]
) -> NewUserOut:
    """The password is for the first sign-in alone: it has to be changed then."""
    if key_of(body.name) in RESERVED_NAMES:
        raise AccountExists(body.name)
    given = None if body.password is None else body.password.get_secret_value()
    hashed, made = await access.passwords.hash_new(body.name, given)
    new = NewAccount(
        PrincipalKind.USER,
        body.name,
        full_name=body.full_name,
        is_admin=body.is_admin,
        password=hashed,
        must_change_password=True,
    )
    async with store.unit_of_work() as uow:
        account = await uow.principals.add(new, store.clock())
        await uow.commit()
    identities.changed()
    return NewUserOut(**_values(account), password=made)


@router.get("/users/{name}", summary="Show a user", responses=documented(404))
@needs(Permission.USER_MANAGE)
async def get_user(store: StoreDep, name: UserName, response: Response) -> AccountOut:
    """One user."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, AccountOut.model_validate(await _user(uow, name)))


@router.patch(
    "/users/{name}",
    summary="Change a user",
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.USER_MANAGE, audit="user.change")
async def patch_user(
    store: StoreDep,
    identities: IdentitiesDep,
    caller: Calling,
    name: UserName,
    body: Annotated[UserChange, Body()],
    condition: Condition,
) -> AccountOut:
    """Disabling ends all sessions and tokens of the user within a second.

    At least one administrator remains. You cannot disable your own account.
    """
    async with store.unit_of_work() as uow:
        await uow.principals.hold(name)
        found = await _user(uow, name)
        await condition.check(lambda: _stored(uow, name), body.model_dump(exclude_unset=True))
        if body.full_name is not None:
            await uow.principals.describe(found.id, body.full_name)
        if body.is_admin is not None:
            await uow.principals.set_admin(found.id, body.is_admin)
        if body.disabled is False:
            await uow.principals.enable(found.id)
        if body.disabled:
            if found.id == caller.principal.id:
                raise Forbidden("you cannot disable your own account; ask another administrator")
            await uow.principals.disable(found.id, store.clock())
            await uow.sessions.end_all(found.id)
            await uow.tokens.revoke_all(found.id, store.clock())
        account = await uow.principals.get(name)
        await uow.commit()
    identities.changed()
    return condition.answer(AccountOut.model_validate(account))


@router.post(
    "/users/{name}/password-reset",
    summary="Give a user another password",
    responses=documented(404, 429),
)
@needs(Permission.USER_MANAGE, audit="user.reset-password")
async def reset_user_password(
    store: StoreDep, access: AccessDep, identities: IdentitiesDep, name: UserName
) -> NewUserOut:
    """Makes a random password, to be changed at the next sign-in; sessions and tokens end."""
    hashed, made = await access.passwords.hash_new(name, None)
    async with store.unit_of_work() as uow:
        found = await _user(uow, name)
        await uow.principals.set_password(found.id, hashed, must_change=True)
        await uow.sessions.end_all(found.id)
        await uow.tokens.revoke_all(found.id, store.clock())
        account = await uow.principals.get(name)
        await uow.commit()
    identities.changed()
    return NewUserOut(**_values(account), password=made)


@router.put(
    "/users/{name}/identity",
    summary="Let a user sign in elsewhere",
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.USER_MANAGE, audit="user.link")
async def put_identity(
    store: StoreDep,
    identities: IdentitiesDep,
    federation: FederationDep,
    name: UserName,
    body: Annotated[IdentityIn, Body()],
    condition: Condition,
) -> AccountOut:
    """Who is ``subject`` for ``issuer`` is this user. A password that was never used goes.

    `If-Match` takes the ETag of the user.
    """
    known = [one.settings.issuer for one in federation.providers.values()]
    if federation.directory is not None:
        known.append(federation.directory.issuer)
    if body.issuer not in known:
        listed = ", ".join(known) or "there is none in the settings"
        raise InvalidRequest([FieldError("issuer", f"is none of this API's: {listed}")])
    async with store.unit_of_work() as uow:
        await uow.principals.hold(name)
        found = await _user(uow, name)
        await condition.check(lambda: _stored(uow, name), body)
        await uow.principals.link(found.id, body.issuer, body.subject)
        account = await uow.principals.get(name)
        await uow.commit()
    identities.changed()
    return condition.answer(AccountOut.model_validate(account))


@router.delete(
    "/users/{name}/identity",
    summary="Remove a user's link to a provider",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.USER_MANAGE, audit="user.unlink")
async def delete_identity(
    store: StoreDep, identities: IdentitiesDep, name: UserName, condition: Condition
) -> None:
    """Its sessions and tokens end, and it leaves the groups that the issuer has put it into.

    `If-Match` takes the ETag of the user.
    """
    async with store.unit_of_work() as uow:
        await uow.principals.hold(name)
        found = await _user(uow, name)
        await condition.check(lambda: _stored(uow, name))
        if found.issuer is None:
            raise NotFound("identity of user", name)
        await uow.principals.unlink(found.id)
        await uow.sessions.end_all(found.id)
        await uow.tokens.revoke_all(found.id, store.clock())
        await uow.commit()
    identities.changed()


@router.get("/users/{name}/tokens", summary="List a user's tokens", responses=documented(404))
@needs(Permission.USER_MANAGE)
async def list_user_tokens(
    store: StoreDep, name: UserName, limit: Limit = 50, cursor: Cursor = None
) -> Page[TokenOut]:
    """Without their texts, the newest first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tokens.list((await _user(uow, name)).id)
    items, following = part_of("tokens", found, lambda one: one.id, limit, cursor, falling=True)
    return Page(items=[token_out(one) for one in items], next=following)


@router.delete(
    "/users/{name}/tokens/{token_id}",
    summary="Revoke a user's token",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.USER_MANAGE, audit="token.revoke")
async def revoke_user_token(
    store: StoreDep, identities: IdentitiesDep, name: UserName, token_id: TokenId
) -> None:
    """Makes it worthless, within a second."""
    async with store.unit_of_work() as uow:
        await uow.tokens.revoke((await _user(uow, name)).id, token_id, store.clock())
        await uow.commit()
    identities.changed()


async def _user(uow: UnitOfWork, name: str) -> Account:
    found = await uow.principals.get(name)
    if found.kind is not PrincipalKind.USER:
        raise NotFound("user", name)
    return found


async def _stored(uow: UnitOfWork, name: str) -> AccountOut:
    return AccountOut.model_validate(await _user(uow, name))


def _values(account: Account) -> dict[str, Any]:
    return AccountOut.model_validate(account).model_dump()
