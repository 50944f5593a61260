"""What several routes do with accounts: sign in, make tokens, set passwords."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from fastapi import Response

from shoal.api.access.authentication import COOKIE
from shoal.api.access.passwords import Passwords, problems, random_password
from shoal.api.access.tokens import digest, new_session, new_token
from shoal.api.schemas.platform.access import NewTokenOut, TokenIn, TokenOut
from shoal.api.services import Services
from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests, Unauthorized
from shoal.core.access.audit.entries import NewEntry, Outcome
from shoal.core.access.permissions import GIVES_RIGHTS, OF_PROJECT, Permission
from shoal.core.access.principals import TokenScope, key_of
from shoal.core.access.records import ApiToken
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound
from shoal.sql.repositories.access.principals import PasswordHash


async def signed_in(
    services: Services, name: str, password: str, address: str, agent: str
) -> tuple[str, int]:
    """Check a password and begin a session; return its secret and the principal's id.

    Raises Unauthorized, with the same words whatever is wrong; TooManyRequests.
    """
    key = key_of(name)
    entry = NewEntry(at=services.clock(), action="session.begin", address=address)
    try:
        services.attempts.begin(key, address)
    except TooManyRequests:
        services.auditor.note(replace(entry, outcome=Outcome.REFUSED))
        raise
    async with services.database.unit_of_work(read_only=True) as uow:
        found = await uow.principals.password(name)
    hashed = None if found is None or found.is_disabled else found.hash
    if not await services.passwords.matches(hashed, password) or found is None:
        # A name that nobody has may be a password in the wrong field.
        refused = replace(entry, outcome=Outcome.REFUSED, principal="" if found is None else name)
        services.auditor.note(refused)
        raise Unauthorized("wrong name or password", headers={"WWW-Authenticate": "Bearer"})
    services.attempts.succeeded(key, address)
    newer = await _rehashed(services.passwords, found, password)
    async with services.database.unit_of_work() as uow:
        if newer is not None:
            await uow.principals.rehash(found.principal_id, newer)
        browser = Browser(address, agent)
        secret = await begin_session(services, uow, found.principal_id, name, browser)
        await uow.commit()
    services.auditor.soon()
    return secret, found.principal_id


@dataclass(frozen=True)
class Browser:
    """Where a request comes from, as lists of sessions show it."""

    address: str
    agent: str


async def begin_session(
    services: Services,
    uow: UnitOfWork,
    principal_id: int,
    name: str,
    browser: Browser,
    way: str = "password",
) -> str:
    """Begin a session, which is always a new one, with its entry in the audit; return its secret.

    ``way``: how the person has signed in.
    """
    secret, now, settings = new_session(), services.clock(), services.settings
    expires_at = now + timedelta(hours=settings.session_hours)
    await uow.sessions.forget(now, now - timedelta(minutes=settings.session_idle_minutes))
    await uow.sessions.add(
        principal_id,
        digest(secret),
        now,
        expires_at,
        address=browser.address[:100],
        agent=browser.agent[:200],
    )
    begun = NewEntry(
        now,
        "session.begin",
        principal_id=principal_id,
        principal=name,
        address=browser.address,
        detail={"way": way},
    )
    await uow.audit.add([begun])
    return secret


def note_refused_session(services: Services, browser: Browser, way: str) -> None:
    """Note in the audit that somebody could not sign in. No name: it may be a password."""
    services.auditor.note(
        NewEntry(
            services.clock(),
            "session.begin",
            Outcome.REFUSED,
            address=browser.address,
            detail={"way": way},
        )
    )


def set_session(services: Services, response: Response, secret: str) -> None:
    """Give a browser its session: pages of this API alone send it."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=round(services.settings.session_hours * 3600),
        secure=True,
        httponly=True,
        samesite="strict",
    )


async def _rehashed(passwords: Passwords, found: PasswordHash, password: str) -> str | None:
    if found.hash is None or not passwords.is_outdated(found.hash):
        return None
    return await passwords.hash(password)


async def hashed_or_random(
    services: Services, name: str, password: str | None, field: str = "password"
) -> tuple[str, str | None]:
    """Return the hash of a new password, and the password if it was made here.

    Raises InvalidRequest if the given one is too easily guessed.
    """
    made = random_password() if password is None else None
    chosen = made if password is None else password
    assert chosen is not None
    if made is None and (wrong := list(problems(chosen, name))):
        raise InvalidRequest([FieldError(field, text) for text in wrong])
    return await services.passwords.hash(chosen), made


async def scope_of(uow: UnitOfWork, body: TokenIn, visible: Iterable[str] | None) -> TokenScope:
    """Return what a token is limited to. Raises NotFound for projects that cannot be seen.

    ``visible``: the names of the projects that the owner sees; None: all.
    """
    permissions = None
    if given := sorted(GIVES_RIGHTS.intersection(body.permissions or ())):
        reason = f"{', '.join(given)}: a token that is limited to permissions gives no rights"
        raise InvalidRequest([FieldError("permissions", reason)])
    if body.permissions is not None:
        permissions = frozenset(body.permissions)
        if permissions & OF_PROJECT:  # what cannot be read cannot be changed
            permissions |= {Permission.PROJECT_READ}
    if body.projects is None:
        return TokenScope(permissions)
    seen = None if visible is None else frozenset(visible)
    ids = set()
    for name in dict.fromkeys(body.projects):
        if seen is not None and name not in seen:
            raise NotFound("project", name)
        ids.add((await uow.projects.get(name)).id)
    return TokenScope(permissions, frozenset(ids))


async def make_token(
    services: Services, principal_id: int, body: TokenIn, visible: Iterable[str] | None
) -> NewTokenOut:
    """Make a token of a principal; the answer holds its text, this once."""
    text, now = new_token(), services.clock()
    expires_at = None if body.days is None else now + timedelta(days=body.days)
    async with services.database.unit_of_work() as uow:
        scope = await scope_of(uow, body, visible)
        stored = await uow.tokens.add(principal_id, body.name, digest(text), scope, now, expires_at)
        await uow.commit()
    return NewTokenOut(**_values(stored), token=text)


def token_out(token: ApiToken) -> TokenOut:
    """Return a token as answers have it."""
    return TokenOut(**_values(token))


def _values(token: ApiToken) -> dict[str, object]:
    known = TokenOut.model_fields
    return {name: value for name, value in asdict(token).items() if name in known}
