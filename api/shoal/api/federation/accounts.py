"""Who has signed in elsewhere becomes a session here: of which account, and in which groups."""

import re
from datetime import timedelta

import structlog

from shoal.api.access.control import AccessControl
from shoal.api.access.sessions import Browser
from shoal.api.access.tokens import digest
from shoal.api.federation.errors import AccountNameTaken, SignInFailed, SignInRefused
from shoal.api.federation.flow import (
    CODE_LASTS_S,
    LASTS_S,
    Flow,
)
from shoal.api.federation.identity import Identity, IssuerRules
from shoal.api.schemas.platform.access import ACCOUNT_PATTERN
from shoal.api.web.errors import Unauthorized
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.pkce import challenge_of
from shoal.core.access.principals import RESERVED_NAMES, PrincipalKind, key_of
from shoal.core.access.records import Account, NewAccount
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import AccountExists
from shoal.sql.repositories.access.sign_ins import SignInCode

log = structlog.get_logger()

_LONGEST_NAME, _LONGEST_FULL_NAME = 100, 200
_OVER = "this sign-in has come to its end already, or took too long; begin again"


async def enter(
    database: Database,
    access: AccessControl,
    identity: Identity,
    rules: IssuerRules,
    browser: Browser,
) -> str:
    """Begin a session of who has signed in at a directory; return its secret.

    Raises Unauthorized for a disabled account, SignInRefused, AccountNameTaken.
    """
    async with database.unit_of_work() as uow:
        account = await _account(access, uow, identity, rules)
        secret = await access.sessions.begin(
            uow, account.id, account.name, browser, identity.issuer
        )
        await uow.commit()
    access.identities.changed()
    access.auditor.soon()
    return secret


async def enter_by_flow(
    database: Database,
    access: AccessControl,
    flow: Flow,
    identity: Identity,
    rules: IssuerRules,
    browser: Browser,
) -> str | None:
    """End a sign-in at a provider with a session; return its secret.

    None: a command line waits for it, which gets a code. Raises SignInFailed if the sign-in has
    come to its end already, and what ``enter`` raises.
    """
    line = flow.command_line
    async with database.unit_of_work() as uow:
        account = await _account(access, uow, identity, rules)
        now = access.clock()
        code = None
        if line is not None:
            ends_at = now + timedelta(seconds=CODE_LASTS_S)
            code = SignInCode(digest(flow.code), line.challenge, ends_at)
        is_first = await uow.sign_ins.end(
            digest(flow.secret), account.id, now, now + timedelta(seconds=LASTS_S), code
        )
        if not is_first:
            raise SignInFailed(_OVER)
        secret = None
        if line is None:
            secret = await access.sessions.begin(
                uow, account.id, account.name, browser, identity.issuer
            )
        await uow.commit()
    access.identities.changed()
    access.auditor.soon()
    return secret


async def enter_by_code(
    database: Database, access: AccessControl, code: str, verifier: str, browser: Browser
) -> str:
    """Change the code of a command line into a session; return its secret. Raises SignInFailed."""
    async with database.unit_of_work() as uow:
        found = await uow.sign_ins.take(digest(code), challenge_of(verifier), access.clock())
        if found is None:
            raise SignInFailed(_OVER)
        account = await uow.principals.named(found)
        way = f"{account.issuer or 'provider'}, command line"
        secret = await access.sessions.begin(uow, found, account.name, browser, way)
        await uow.commit()
    access.auditor.soon()
    return secret


async def _account(
    access: AccessControl, uow: UnitOfWork, identity: Identity, rules: IssuerRules
) -> Account:
    found = await uow.principals.of_identity(identity.issuer, identity.subject)
    if found is None:
        found = await _made(access, uow, identity, rules)
    if found.disabled_at is not None or found.kind is not PrincipalKind.USER:
        raise Unauthorized("wrong name or password", headers={"WWW-Authenticate": "Bearer"})
    missing = await uow.groups.set_of_issuer(found.id, rules.own_groups(identity))
    if missing:
        log.warning("groups of the settings do not exist", groups=sorted(missing))
    return found


async def _made(
    access: AccessControl, uow: UnitOfWork, identity: Identity, rules: IssuerRules
) -> Account:
    """Make the account of a person who has none. A name that exists is never taken over."""
    if not rules.make_accounts:
        raise SignInRefused(
            "you have signed in, but there is no account for you here; an administrator can link "
            f"one: shoal user link NAME {identity.issuer} {identity.subject}"
        )
    name = identity.name or ""
    if len(name) > _LONGEST_NAME or re.fullmatch(ACCOUNT_PATTERN, name) is None:
        raise SignInRefused(
            "you have signed in, but no account can have the name that came with it; an "
            "administrator can make one with another name, and link it: shoal user link NAME "
            f"{identity.issuer} {identity.subject}"
        )
    full_name = "".join(one if one.isprintable() else " " for one in identity.full_name)
    new = NewAccount(
        PrincipalKind.USER,
        name,
        full_name=full_name[:_LONGEST_FULL_NAME].strip(),
        issuer=identity.issuer,
        subject=identity.subject,
    )
    try:
        if key_of(name) in RESERVED_NAMES:
            raise AccountExists(name)
        made = await uow.principals.add(new, access.clock())
    except AccountExists:
        # Of two first sign-ins of one person at once, one has made it.
        found = await uow.principals.of_identity(identity.issuer, identity.subject)
        if found is not None:
            return found
        raise AccountNameTaken(
            f"there is another account {name!r}, and it may belong to another person; if it is "
            f"yours, an administrator can link it: shoal user link {name} {identity.issuer} "
            f"{identity.subject}"
        ) from None
    await uow.audit.add(
        [
            NewEntry(
                access.clock(),
                "user.add",
                principal_id=made.id,
                principal=made.name,
                object=made.name,
                detail={"issuer": identity.issuer},
            )
        ]
    )
    log.info("account made", name=name, issuer=identity.issuer)
    return made
