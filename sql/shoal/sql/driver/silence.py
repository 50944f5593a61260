"""Connections to PostgreSQL whose answers do not come: gone, or at work?

If the server's host vanishes, or the network between forgets a connection, there is no sign: a
wait for an answer then lasts as long as the kernel likes, although another server might answer at
once. A deadline alone cannot distinguish that from a statement that takes long or waits for a
lock. So the server is asked, over a new connection: is the session of the old one at work? If it
is, the wait goes on. If the server knows nothing of it, or the session waits for *us*, the answer
or the request was lost: the connection is given up, and so are the free ones of the pool. If no
server can be asked, the wait lasts for ``Patience.answer_s`` and no longer.

To give a connection up is to shut its socket down: a wait for it meets the end of the
connection, as if the server had closed it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol
from weakref import WeakSet

import structlog

from shoal.sql.driver.patience import Patience
from shoal.sql.driver.translation import FOREIGN
from shoal.sql.errors import DatabaseUnavailable

log = structlog.get_logger()

# The server's name of a session: its process and when that began, so that no other is mistaken
# for it, on another server either.
Session = tuple[int, str]

_CHECK_S = 0.25  # between checks, while a caller waits
# In parts of ``doubt_s``. A wait of this length is checked together with those in doubt:
_SUSPECT = 1 / 3
# How long an answer may be on its way while the server is asked:
_CROSSING = 1 / 6


class SilentWait(Protocol):
    """A connection, and what it waits for. Times are monotonic."""

    session: Session | None  # None: not known yet
    is_waiting: bool
    exchange: int  # the number of the exchange under way
    begun_s: float  # when that began
    heard_s: float  # since when nothing has come
    at_work_s: float  # when the server was last found at work on it
    limit_s: float  # how long it may be at work

    def give_up(self, reason: str) -> None:
        """Shut the socket down; ``reason`` is what its caller gets."""


class SilenceWatch:
    """Watches the connections of one pool. It costs a timer while a caller waits long."""

    def __init__(
        self,
        patience: Patience,
        ask: Callable[[Collection[Session]], Awaitable[set[Session]]],
        on_gone: Callable[[], None],
    ) -> None:
        """``ask`` says, over a new connection, which sessions are at work; ``on_gone`` is called
        after connections were found to be gone, when others may be gone as well."""
        self.patience = patience
        self.answered_s = time.monotonic()  # when any of the connections last had an answer
        self._suspect_s = _SUSPECT * patience.doubt_s
        self._ask, self._on_gone = ask, on_gone
        self._connections: WeakSet[SilentWait] = WeakSet()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._in_haste = False

    def add(self, connection: SilentWait) -> None:
        """Watch another one. It calls ``waits`` whenever it begins to wait."""
        self._connections.add(connection)

    def waits(self) -> None:
        """A caller begins to wait for more than a moment."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self._look)

    def hurry(self) -> None:
        """From now on wait for no server that might be gone: this process is to end."""
        self._in_haste = True

    def abandon(self, reason: str) -> None:
        """Give up whatever waits for an answer by now."""
        for connection in self._waiting():
            connection.give_up(reason)

    async def close(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _waiting(self) -> list[SilentWait]:
        return [one for one in self._connections if one.is_waiting]

    def _look(self) -> None:
        self._timer = None
        now_s = time.monotonic()
        waiting = self._waiting()
        for one in waiting:
            silent_s = now_s - max(one.heard_s, one.at_work_s)
            if silent_s >= (self._suspect_s if self._in_haste else self.patience.answer_s):
                one.give_up(f"no answer from the database for {now_s - one.heard_s:.1f} s")
            elif now_s - one.begun_s >= one.limit_s:
                one.give_up(
                    f"the database was at work for {now_s - one.begun_s:.0f} s on what should take "
                    f"{one.limit_s:g} s at most"
                )
            elif silent_s >= self.patience.doubt_s and self._asking is None:
                self._asking = asyncio.create_task(self._resolve(), name="silent database")
        if waiting:
            self.waits()

    async def _resolve(self) -> None:
        """Ask about those that have waited for some time, and give up those that are gone."""
        now_s = time.monotonic()
        asked = {
            one: (one.exchange, one.heard_s)
            for one in self._waiting()
            if now_s - one.heard_s >= self._suspect_s
        }
        try:
            async with asyncio.timeout(self.patience.answer_s):
                at_work = await self._ask([one.session for one in asked if one.session])
            await asyncio.sleep(_CROSSING * self.patience.doubt_s)
            gone = 0
            for one, before in asked.items():
                if not one.is_waiting or (one.exchange, one.heard_s) != before:
                    continue  # it has been heard of meanwhile
                if one.session in at_work:
                    one.at_work_s = time.monotonic()
                elif one.session is not None:
                    gone += 1
                    one.give_up("the connection to the database was lost without a sign")
            if gone:
                log.warning("database connections were silent and are given up", count=gone)
                self._on_gone()
        except (TimeoutError, DatabaseUnavailable, *FOREIGN) as error:
            log.warning("the database is silent and takes no new connections", error=str(error))
        finally:
            self._asking = None
