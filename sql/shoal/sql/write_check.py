"""Whether the database stores rows: an answer to a query says nothing about that.

A server is read-only during a switchover, a disk fills up, a file is moved away: queries are still
answered then. So a row is written now and then when a caller asks, at most every ``EVERY_S``
however many ask. What real writes were refused for counts as well, for ``REMEMBERED_S``: on a full
disk there may be room for a small row, but for no larger one.

A write that takes long does not count as a failure at first: a migration or a large purge may hold
the lock for some seconds. Callers do not wait for it, and get the result of the write before it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from shoal.sql.errors import DatabaseUnavailable, DatabaseUnwritable, SqlError

EVERY_S = 5.0  # between two writes
RETRY_S = 1.0  # after one that failed
REMEMBERED_S = 8.0  # a refused write of others
PATIENCE_S = 1.0  # of a caller
STUCK_S = 8.0  # after which a write that is under way has failed


class WriteCheck:
    """Writes with ``write``, which raises SqlError. One per process; callers share each result."""

    def __init__(self, write: Callable[[], Awaitable[None]]) -> None:
        self._write = write
        self._under_way: asyncio.Task[SqlError | None] | None = None
        self._failure: SqlError | None = None  # of the last write
        self._began_s = self._ended_s = float("-inf")  # of the newest write; monotonic
        self._refusal: tuple[DatabaseUnwritable, float] | None = None  # of others, and when

    @property
    def refusal(self) -> str | None:
        """Why writes are refused, as far as it is known now; None: they are not."""
        if self._refusal is not None:
            return str(self._refusal[0])
        return str(self._failure) if isinstance(self._failure, DatabaseUnwritable) else None

    def note(self, error: BaseException | None) -> None:
        """Remember that a transaction has failed with ``error``, if that is a refusal."""
        if isinstance(error, DatabaseUnwritable):
            self._refusal = (error, time.monotonic())

    async def require(self) -> None:
        """Return if the database stores rows. Raises SqlError otherwise."""
        if self._under_way is None and self._is_due():
            self._began_s = time.monotonic()
            self._under_way = asyncio.create_task(self._check(), name="database write check")
        failure = self._failure
        if (writing := self._under_way) is not None:
            await asyncio.wait([writing], timeout=PATIENCE_S)
            took_s = time.monotonic() - self._began_s
            if writing.done():
                failure = writing.result()
            elif took_s >= STUCK_S:
                raise DatabaseUnavailable(
                    f"the database has not stored a row for {took_s:.0f} s: another transaction "
                    "holds a lock, or its disk or a synchronous standby does not answer"
                )
        if failure is not None:
            raise failure
        if self._refusal is not None:
            raise self._refusal[0]

    async def close(self) -> None:
        """End the write that is under way."""
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)

    def _is_due(self) -> bool:
        is_well = self._failure is None and self._refusal is None
        return time.monotonic() - self._ended_s >= (EVERY_S if is_well else RETRY_S)

    async def _check(self) -> SqlError | None:
        try:
            await self._write()
        except SqlError as error:
            self._failure = error
        else:
            self._failure = None
            if self._refusal is not None and time.monotonic() - self._refusal[1] >= REMEMBERED_S:
                self._refusal = None
        finally:
            self._ended_s = time.monotonic()
            self._under_way = None
        return self._failure
