"""Who is behind a credential, now: what an API process remembers of it, and for how long.

Rights are read once and remembered until the number of their changes in the database is another
one. It is looked at before a remembered answer is trusted, though not twice within ``LOOK_S``: so
lost permissions are lost on every API process within that time.
"""

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic

import structlog

from shoal.api.access.one_time import SealedSessions
from shoal.api.access.tokens import digest, is_token
from shoal.core.access.principals import BREAK_GLASS, Principal
from shoal.core.errors import ShoalError
from shoal.sql import Database
from shoal.sql.repositories.access.rights import SignedIn

log = structlog.get_logger()

LOOK_S = 0.5
NOTED_EVERY = timedelta(minutes=5)  # that a token or a session is in use
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Credential:
    """What a request shows: the text of a token or of a session's cookie."""

    text: str
    is_session: bool = False


class Identities:
    """Finds out whose a credential is. One event loop."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        break_glass: str,
        idle: timedelta,
        clock_s: Callable[[], float] = monotonic,
    ) -> None:
        self._clock_s, self.look_s = clock_s, LOOK_S
        self._database, self._clock = database, clock
        self._break_glass = break_glass.encode()
        self._idle = idle
        self.sealed = SealedSessions(break_glass, clock)
        self._noted_every = min(NOTED_EVERY, self._idle / 10)  # else what is in use seems idle
        self._known: OrderedDict[Credential, SignedIn] = OrderedDict()
        self._version: int | None = None
        self._looked_s = -LOOK_S
        self._watched: set[_RightsWatch] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, credential: Credential) -> SignedIn | None:
        """Return the identity; None: unknown or ended. Raises DatabaseUnavailable."""
        given = credential.text.encode()
        if not credential.is_session and hmac.compare_digest(given, self._break_glass):
            return SignedIn(BREAK_GLASS, None, None)
        if credential.is_session and (until := self.sealed.until(credential.text)):
            return SignedIn(BREAK_GLASS, until, None)
        if not credential.is_session and not is_token(credential.text):
            return None  # without a query of the database
        await self._forget_what_has_changed()
        found = self._known.get(credential)
        if found is None or self._is_over(found):
            found = await self._read(credential)
        if found is not None:
            self._note_use(credential, found)
        return found

    def changed(self) -> None:
        """Rights were changed by this process: look at once."""
        self._looked_s = -LOOK_S

    @asynccontextmanager
    async def watching(
        self, credential: Credential, keeps: Callable[[Principal], bool]
    ) -> AsyncIterator[asyncio.Event]:
        """Return an event that is set when the credential is no longer valid.

        Or when ``keeps`` says so of the principal behind it, whose rights may have changed.
        """
        watch = _RightsWatch(credential, keeps, asyncio.Event())
        self._watched.add(watch)
        if len(self._watched) == 1:
            self._start(self._watch())
        try:
            yield watch.ended
        finally:
            self._watched.discard(watch)

    async def aclose(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- reading ---------------------------------------------------------------------------

    async def _forget_what_has_changed(self) -> None:
        now_s = self._clock_s()
        if now_s - self._looked_s < self.look_s:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            version = await uow.rights.version()
        if version != self._version:
            self._known.clear()
            self._version = version
        self._looked_s = now_s  # when it was asked, not when it was answered

    async def _read(self, credential: Credential) -> SignedIn | None:
        now, version = self._clock(), self._version
        async with self._database.unit_of_work(read_only=True) as uow:
            if credential.is_session:
                found = await uow.rights.of_session(digest(credential.text), now, now - self._idle)
            else:
                found = await uow.rights.of_token(digest(credential.text), now)
        if found is None:
            self._known.pop(credential, None)
            return None
        if self._version != version:
            return found  # rights have changed meanwhile: it may be from before, so only this once
        self._known[credential] = found
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _is_over(self, found: SignedIn) -> bool:
        now = self._clock()
        if found.until is not None and found.until <= now:
            return True
        is_idle = found.used_at is not None and found.used_at <= now - self._idle
        return found.session_id is not None and is_idle

    # -- writing ---------------------------------------------------------------------------

    def _note_use(self, credential: Credential, found: SignedIn) -> None:
        now = self._clock()
        if found.used_at is not None and now - found.used_at < self._noted_every:
            return
        if credential in self._known:
            self._known[credential] = replace(found, used_at=now)
        self._start(self._store_use(found, now))

    async def _store_use(self, found: SignedIn, now: datetime) -> None:
        with suppress(ShoalError):  # the next request tries again in some minutes
            async with self._database.unit_of_work() as uow:
                if found.session_id is not None:
                    await uow.sessions.touch(found.session_id, now)
                if found.token_id is not None:
                    await uow.tokens.touch(found.token_id, now)
                await uow.commit()

    # -- watching --------------------------------------------------------------------------

    async def _watch(self) -> None:
        while self._watched:
            await asyncio.sleep(self.look_s)
            for watch in tuple(self._watched):
                try:
                    found = await self.find(watch.credential)
                except ShoalError as error:
                    log.warning("rights not read", error=str(error))
                    break  # requests fail meanwhile; streams go on with what they had
                if found is None or not watch.keeps(found.principal):
                    watch.ended.set()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(frozen=True, eq=False)
class _RightsWatch:
    credential: Credential
    keeps: Callable[[Principal], bool]
    ended: asyncio.Event
