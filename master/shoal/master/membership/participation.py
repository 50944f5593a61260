"""A master's part in the group that shares the partitions: it leaves while its database is away.

A master without the database can do nothing for its partitions, and would keep them for as long as
its session lasts, which may be for ever. So while its breaker is open it leaves the group and stays
registered, and its database is suspended, so that nothing delays the leaving. But only if another
master reports that the database answers *it*: when the database itself is away, leaving does not
help, and partitions without an owner would only have to be taken again. Masters report that they
get no answers long before they leave, and the others' reports are read at the moment of the
decision; so when all lose the database together they all know before the first could leave.

It joins again when the database answers quickly, at once or, if it has left several times, after a
while that doubles each time; and also when no master is left that the database answers, for then
it is as good as any other.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import structlog

from shoal.coordination import CoordinationError, FairShare, Members, Membership
from shoal.master.membership.database_health import DatabaseHealth, says_it_answers
from shoal.runtime.breaker import BreakerState
from shoal.sql import Database

log = structlog.get_logger()

# In parts of the session timeout:
_INTERVAL = 0.05  # between two checks
_FIRST_STAY = 0.2  # out of the group after the database is back, doubled each time
_LONGEST_STAY = 6.0
_FORGIVEN = 60.0  # after so long in the group, what was before does not count


class Participation:
    """Leaves the group and joins it again, for the life of an ``async with`` block."""

    def __init__(
        self,
        share: FairShare,
        membership: Membership,
        members: Members,
        about: Mapping[str, Any],
        database: Database,
        health: DatabaseHealth,
        session_timeout_s: float,
        news: Callable[[], Mapping[str, Any]],
    ) -> None:
        """``share`` is entered before this is, and left after it.

        ``about`` is what the master says of itself besides; ``members`` are the masters; ``news``
        returns what it says that may change.
        """
        self._share = share
        self._membership, self._members, self._about = membership, members, about
        self._database, self._health = database, health
        self._timeout_s, self._news = session_timeout_s, news
        self._changing = asyncio.Lock()  # joining or leaving
        self._over = False
        self._reported: dict[str, Any] | None = None
        self._joined_s = 0.0  # monotonic
        self._left_times = 0  # not long ago

    async def __aenter__(self) -> Self:
        self._joined_s = time.monotonic()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        async with self._changing:
            pass  # what has begun is ended

    async def run(self) -> None:
        """Run until the block is left. Raises what has ended the group."""
        while not self._over:
            await asyncio.sleep(_INTERVAL * self._timeout_s)
            self._share.group.raise_failure()
            await self._report()
            try:
                await self._reconsider()
            except CoordinationError as error:
                log.debug("other masters not seen", error=str(error))

    async def _report(self) -> None:
        """Report the state of the database and the news, if any of that has changed."""
        database = {**self._health.state.as_data(), "shares": self._share.has_joined}
        data = {"database": database, **self._news()}
        if data != self._reported:
            self._reported = data
            await self._membership.update({**self._about, **data})

    async def _reconsider(self) -> None:
        if self._health.state.breaker is BreakerState.CLOSED:
            doubled = _FIRST_STAY * (1 << min(max(self._left_times - 1, 0), 10))
            stay_s = min(doubled, _LONGEST_STAY) * self._timeout_s
            is_back = time.monotonic() - self._health.closed_s >= stay_s
            if is_back and not self._share.has_joined:
                await self._change(joins=True)
        elif self._share.has_joined == await self._others_can():
            await self._change(joins=not self._share.has_joined)

    async def _others_can(self) -> bool:
        """Whether another master says that the database answers it."""
        return any(
            says_it_answers(member.data)
            for member in (await self._members.refresh()).values()
            if member.id != self._membership.member_id
        )

    async def _change(self, *, joins: bool) -> None:
        async with self._changing:
            if self._over:
                return
            if joins:
                log.info("sharing the partitions again")
                self._database.resume()
                await self._share.join()
                self._joined_s = time.monotonic()
                return
            log.warning("the database answers others, not us: giving the partitions up")
            if time.monotonic() - self._joined_s > _FORGIVEN * self._timeout_s:
                self._left_times = 0
            self._left_times += 1
            self._database.suspend("the database does not answer this master; others have its work")
            await self._share.leave()
