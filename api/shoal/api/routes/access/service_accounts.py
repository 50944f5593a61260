"""Service accounts: programs that belong to a project, and sign in with tokens alone.

Outside of its project an account is called PROJECT/NAME.
"""

from typing import Annotated

from fastapi import Body, Path

from shoal.api.access.tokens import make_token, token_out
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.access.account import TokenId
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import (
    AccountOut,
    NewTokenOut,
    ServiceAccountIn,
    TokenIn,
    TokenOut,
)
from shoal.api.services import IdentitiesDep, StoreDep
from shoal.api.web.answers import by_name, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.access.principals import PrincipalKind
from shoal.core.access.records import Account, HolderKind, NewAccount
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("service accounts")

_OF_PROJECT = "/projects/{project}/service-accounts"
_TOKENS = _OF_PROJECT + "/{name}/tokens"
Name = Annotated[str, Path(max_length=100, examples=["loader"])]


@router.get(_OF_PROJECT, summary="List service accounts", responses=documented(404))
@needs(Permission.PROJECT_MANAGE)
async def list_service_accounts(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[AccountOut]:
    """The service accounts of a project by name, disabled ones too."""
    after = decode_cursor("service-accounts", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.principals.list(
            PrincipalKind.SERVICE_ACCOUNT, after[0] if after else None, limit + 1, project
        )
    items, more = page(found, limit)
    return Page(
        items=shown("service account", items, AccountOut.model_validate, by_name),
        next=encode_cursor("service-accounts", items[-1].name) if more else None,
    )


@router.post(
    _OF_PROJECT,
    summary="Make a service account",
    status_code=201,
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.PROJECT_MANAGE, audit="service-account.add")
async def post_service_account(
    store: StoreDep, project: ProjectName, body: Annotated[ServiceAccountIn, Body()]
) -> AccountOut:
    """It has a role in this project from the start, and can be given some in others."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.get(project)
        name = f"{home.name}/{body.name}"
        new = NewAccount(PrincipalKind.SERVICE_ACCOUNT, name, project_id=home.id)
        account = await uow.principals.add(new, store.clock())
        await uow.members.put(home.id, HolderKind.SERVICE_ACCOUNT, name, body.role)
        await uow.commit()
    return AccountOut.model_validate(account)


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Disable a service account",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="service-account.disable")
async def disable_service_account(
    store: StoreDep, identities: IdentitiesDep, project: ProjectName, name: Name
) -> None:
    """All its tokens are worthless within a second. Its name is not given again."""
    async with store.unit_of_work() as uow:
        account = await _account(uow, project, name)
        await uow.principals.disable(account.id, store.clock())
        await uow.tokens.revoke_all(account.id, store.clock())
        await uow.commit()
    identities.changed()


@router.get(_TOKENS, summary="List a service account's tokens", responses=documented(404))
@needs(Permission.PROJECT_MANAGE)
async def list_service_account_tokens(
    store: StoreDep, project: ProjectName, name: Name, limit: Limit = 50, cursor: Cursor = None
) -> Page[TokenOut]:
    """Without their texts, the newest first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tokens.list((await _account(uow, project, name)).id)
    items, following = part_of("tokens", found, lambda one: one.id, limit, cursor, falling=True)
    return Page(items=[token_out(one) for one in items], next=following)


@router.post(
    _TOKENS,
    summary="Make a token of a service account",
    status_code=201,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_MANAGE, audit="token.add")
async def post_service_account_token(
    store: StoreDep, project: ProjectName, name: Name, body: Annotated[TokenIn, Body()]
) -> NewTokenOut:
    """It may do what the account may at that moment, within its own limits."""
    async with store.unit_of_work(read_only=True) as uow:
        account = await _account(uow, project, name)
    return await make_token(store.database, store.clock(), account.id, body, [project])


@router.delete(
    _TOKENS + "/{token_id}",
    summary="Revoke a token of a service account",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="token.revoke")
async def revoke_service_account_token(
    store: StoreDep, identities: IdentitiesDep, project: ProjectName, name: Name, token_id: TokenId
) -> None:
    """Makes it worthless, within a second."""
    async with store.unit_of_work() as uow:
        account = await _account(uow, project, name)
        await uow.tokens.revoke(account.id, token_id, store.clock())
        await uow.commit()
    identities.changed()


async def _account(uow: UnitOfWork, project: str, name: str) -> Account:
    found = await uow.principals.get(f"{project}/{name}")
    if found.kind is not PrincipalKind.SERVICE_ACCOUNT or found.project != project:
        raise NotFound("service account", f"{project}/{name}")
    return found
