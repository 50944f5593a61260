"""Who has signed in elsewhere becomes a session here: of which account, and in which groups."""

import re
from datetime import datetime, timedelta

import structlog

from shoal.api.access.tokens import digest
from shoal.api.federation.errors import AccountNameTaken, SignInFailed, SignInRefused
from shoal.api.federation.flow import (
    CODE_LASTS_S,
    LASTS_S,
    CommandLine,
    Flow,
)
from shoal.api.federation.identity import Identity, Rules
from shoal.api.operations.accounts import Browser, begin_session
from shoal.api.schemas.platform.access import ACCOUNT_PATTERN
from shoal.api.services import Services
from shoal.api.web.errors import Unauthorized
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.pkce import challenge_of
from shoal.core.access.principals import RESERVED_NAMES, PrincipalKind, key_of
from shoal.core.access.records import Account, NewAccount
from shoal.sql import UnitOfWork
from shoal.sql.errors import AccountExists
from shoal.sql.repositories.access.sign_ins import SignInCode

log = structlog.get_logger()

_LONGEST_NAME, _LONGEST_FULL_NAME = 100, 200
_OVER = "this sign-in has come to its end already, or took too long; begin again"


async def enter(services: Services, identity: Identity, rules: Rules, browser: Browser) -> str:
    """Begin a session of who has signed in at a directory; return its secret.

    Raises Unauthorized for a disabled account, SignInRefused, AccountNameTaken.
    """
    async with services.database.unit_of_work() as uow:
        account = await _account(services, uow, identity, rules)
        secret = await begin_session(
            services, uow, account.id, account.name, browser, identity.issuer
        )
        await uow.commit()
    services.identities.changed()
    services.auditor.soon()
    return secret


async def enter_by_flow(
    services: Services, flow: Flow, identity: Identity, rules: Rules, browser: Browser
) -> str | None:
    """End a sign-in at a provider with a session; return its secret.

    None: a command line waits for it, which gets a code. Raises SignInFailed if the sign-in has
    come to its end already, and what ``enter`` raises.
    """
    line = flow.command_line
    async with services.database.unit_of_work() as uow:
        account = await _account(services, uow, identity, rules)
        now = services.clock()
        is_first = await uow.sign_ins.end(
            digest(flow.secret),
            account.id,
            now,
            now + timedelta(seconds=LASTS_S),
            None if line is None else _code(flow, line, now),
        )
        if not is_first:
            raise SignInFailed(_OVER)
        secret = None
        if line is None:
            secret = await begin_session(
                services, uow, account.id, account.name, browser, identity.issuer
            )
        await uow.commit()
    services.identities.changed()
    services.auditor.soon()
    return secret


async def enter_by_code(services: Services, code: str, verifier: str, browser: Browser) -> str:
    """Change the code of a command line into a session; return its secret. Raises SignInFailed."""
    async with services.database.unit_of_work() as uow:
        found = await uow.sign_ins.take(digest(code), challenge_of(verifier), services.clock())
        if found is None:
            raise SignInFailed(_OVER)
        account = await uow.principals.named(found)
        way = f"{account.issuer or 'provider'}, command line"
        secret = await begin_session(services, uow, found, account.name, browser, way)
        await uow.commit()
    services.auditor.soon()
    return secret


def _code(flow: Flow, line: CommandLine, now: datetime) -> SignInCode:
    return SignInCode(digest(flow.code), line.challenge, now + timedelta(seconds=CODE_LASTS_S))


async def _account(
    services: Services, uow: UnitOfWork, identity: Identity, rules: Rules
) -> Account:
    found = await uow.principals.of_identity(identity.issuer, identity.subject)
    if found is None:
        found = await _made(services, uow, identity, rules)
    if found.disabled_at is not None or found.kind is not PrincipalKind.USER:
        raise Unauthorized("wrong name or password", headers={"WWW-Authenticate": "Bearer"})
    missing = await uow.groups.set_of_issuer(found.id, rules.own_groups(identity))
    if missing:
        log.warning("groups of the settings do not exist", groups=sorted(missing))
    return found


async def _made(services: Services, uow: UnitOfWork, identity: Identity, rules: Rules) -> Account:
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
    new = NewAccount(
        PrincipalKind.USER,
        name,
        full_name=_one_line(identity.full_name),
        issuer=identity.issuer,
        subject=identity.subject,
    )
    try:
        if key_of(name) in RESERVED_NAMES:
            raise AccountExists(name)
        made = await uow.principals.add(new, services.clock())
    except AccountExists:
        # Of two first sign-ins of one person at once, one has made it.
        found = await uow.principals.of_identity(identity.issuer, identity.subject)
        if found is not None:
            return found
        raise AccountNameTaken(
            f"there is another account {name!r}, and it may be somebody else's; if it is yours, an "
            f"administrator can link it: shoal user link {name} {identity.issuer} "
            f"{identity.subject}"
        ) from None
    await uow.audit.add(
        [
            NewEntry(
                services.clock(),
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


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)[:_LONGEST_FULL_NAME].strip()
