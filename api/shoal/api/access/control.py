"""What one API process uses to decide who calls, and to sign people in."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from fastapi import Request

from shoal.api.access.audit import Auditor
from shoal.api.access.callers import HomeCache
from shoal.api.access.failed_logins import FailedLogins
from shoal.api.access.identities import Identities
from shoal.api.access.one_time import OneTimeCodes
from shoal.api.access.passwords import Passwords
from shoal.api.access.sessions import Browser, BrowserSessions
from shoal.api.web.errors import TooManyRequests, Unauthorized
from shoal.core.access.audit.entries import NewEntry, Outcome
from shoal.core.access.principals import key_of
from shoal.sql import Database


@dataclass(frozen=True)
class AccessControl:
    """The parts share one event loop. They are entered already and belong to the caller."""

    identities: Identities
    homes: HomeCache
    passwords: Passwords
    failed_logins: FailedLogins
    auditor: Auditor
    sessions: BrowserSessions
    one_time: OneTimeCodes = field(repr=False)

    @property
    def clock(self) -> Callable[[], datetime]:
        """The cluster's time."""
        return self.auditor.clock

    async def sign_in(self, database: Database, name: str, password: str, browser: Browser) -> str:
        """Check a password and begin a session; return its secret.

        Raises Unauthorized, with the same words whatever is wrong; TooManyRequests.
        """
        key, address = key_of(name), browser.address
        entry = NewEntry(
            at=self.clock(), action="session.begin", outcome=Outcome.REFUSED, address=address
        )
        try:
            self.failed_logins.begin(key, address)
        except TooManyRequests:
            self.auditor.note(entry)
            raise
        async with database.unit_of_work(read_only=True) as uow:
            found = await uow.principals.password(name)
        hashed = None if found is None or found.is_disabled else found.hash
        if not await self.passwords.matches(hashed, password) or found is None:
            # A name that no account has may be a password in the wrong field.
            self.auditor.note(replace(entry, principal="" if found is None else name))
            raise Unauthorized("wrong name or password", headers={"WWW-Authenticate": "Bearer"})
        self.failed_logins.succeeded(key, address)
        newer = None
        if found.hash is not None and self.passwords.is_outdated(found.hash):
            newer = await self.passwords.hash(password)
        async with database.unit_of_work() as uow:
            if newer is not None:
                await uow.principals.rehash(found.principal_id, newer)
            secret = await self.sessions.begin(uow, found.principal_id, name, browser)
            await uow.commit()
        self.auditor.soon()
        return secret


def access_of(request: Request) -> AccessControl:
    """Return the access control of the application that serves ``request``."""
    found = request.app.state.services.access
    assert isinstance(found, AccessControl)
    return found
