"""Sessions of browsers: begun by a sign-in, with an entry in the audit, and sent as a cookie."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from fastapi import Request, Response

from shoal.api.access.audit import Auditor, address_of
from shoal.api.access.tokens import digest, new_session
from shoal.core.access.audit.entries import NewEntry, Outcome
from shoal.sql import UnitOfWork

COOKIE = "__Host-shoal"


@dataclass(frozen=True)
class Browser:
    """Where a sign-in comes from, as lists of sessions show it."""

    address: str
    agent: str

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the browser, or the program, that has sent a request."""
        return cls(address_of(request), request.headers.get("user-agent", ""))


class BrowserSessions:
    """Begins sessions. ``life``: how long each lasts at most; ``idle``: how long unused."""

    def __init__(self, auditor: Auditor, life: timedelta, idle: timedelta) -> None:
        self._auditor, self.life, self._idle = auditor, life, idle

    async def begin(
        self, uow: UnitOfWork, principal_id: int, name: str, browser: Browser, way: str = "password"
    ) -> str:
        """Begin a new session, with its entry in the audit; return its secret.

        ``way``: how the person has signed in.
        """
        secret, now = new_session(), self._auditor.clock()
        await uow.sessions.forget(now, now - self._idle)
        await uow.sessions.add(
            principal_id,
            digest(secret),
            now,
            now + self.life,
            address=browser.address[:100],
            agent=browser.agent[:200],
        )
        entry = self._entry(now, browser, way)
        await uow.audit.add([replace(entry, principal_id=principal_id, principal=name)])
        return secret

    def note_refusal(self, browser: Browser, way: str) -> None:
        """Note a refused sign-in in the audit, without the name: it may be a password."""
        entry = self._entry(self._auditor.clock(), browser, way)
        self._auditor.note(replace(entry, outcome=Outcome.REFUSED))

    def set_cookie(self, response: Response, secret: str) -> None:
        """Send a session to its browser, which returns it to pages of this API alone."""
        response.set_cookie(
            COOKIE,
            secret,
            max_age=round(self.life.total_seconds()),
            secure=True,
            httponly=True,
            samesite="strict",
        )

    def _entry(self, now: datetime, browser: Browser, way: str) -> NewEntry:
        return NewEntry(now, "session.begin", address=browser.address, detail={"way": way})
