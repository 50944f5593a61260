"""What a process does for the audit beside requests: links entries, and stores what is throttled.

Changes bring their entries themselves, in their own transactions. Refusals have none: they are
taken here, and stored a moment later; those that come in floods are counted.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import ClassVar, Self

import structlog

from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.audit.throttle import Throttle
from shoal.core.errors import ShoalError
from shoal.sql import Database

log = structlog.get_logger()

_LINKED_TOGETHER = 500  # entries
# A transaction that commits after so many later entries were linked is found at the next start.
_LOOKED_BACK = 10_000
_MOST_SEEN = 1_000  # addresses


class Auditor:
    """One per API process; an async context manager, one event loop."""

    GATHER_S: ClassVar[float] = 0.5  # entries of this time are linked together
    IDLE_S: ClassVar[float] = 10.0  # then look for what others have left behind
    HEAD_LOGGED_S: ClassVar[float] = 3600.0

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self.clock = database, clock
        self._throttle = Throttle()
        self._soon = asyncio.Event()
        self._seen_until_s: dict[str, float] = {}
        self._floor = 0
        self._head_logged_s = -self.HEAD_LOGGED_S
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="auditor")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Store what is counted and link what there is, if the database lets us."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        with suppress(ShoalError):
            await self.settle(everything=True)

    def note(self, entry: NewEntry) -> None:
        """Take an entry that belongs to no change; see ``Throttle``."""
        self._throttle.add(entry, time.monotonic())
        self._soon.set()

    def is_first(self, address: str, period_s: float) -> bool:
        """Say whether an address was not asked about for so long."""
        now_s = time.monotonic()
        if now_s < self._seen_until_s.get(address, 0.0):
            return False
        if len(self._seen_until_s) >= _MOST_SEEN:
            self._seen_until_s.clear()
        self._seen_until_s[address] = now_s + period_s
        return True

    def soon(self) -> None:
        """A change was stored with its entry."""
        self._soon.set()

    async def settle(self, *, everything: bool = False) -> None:
        """Store what is due and link all entries that are not linked. Raises SqlError."""
        due = self._throttle.take(time.monotonic(), everything=everything)
        if due:
            try:
                async with self._database.unit_of_work() as uow:
                    await uow.audit.add(due)
                    await uow.commit()
            except ShoalError:
                log.warning("entries of the audit are lost", count=len(due))
                raise
        while await self._link():
            pass

    async def _link(self) -> bool:
        """Link some entries; say whether there may be more."""
        async with self._database.unit_of_work(read_only=True) as uow:
            if not await uow.audit.pending(self._floor, 1):
                return False
        async with self._database.unit_of_work() as uow:
            pending = await uow.audit.pending(self._floor, _LINKED_TOGETHER)
            if not pending or not await uow.audit.link(pending):
                return False  # another process was faster
            await uow.commit()
        self._floor = max(self._floor, pending[0].id - _LOOKED_BACK)
        return len(pending) == _LINKED_TOGETHER

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.IDLE_S):
                    await self._soon.wait()
            if self._soon.is_set():
                await asyncio.sleep(self.GATHER_S)
            self._soon.clear()
            try:
                await self.settle()
                await self._log_head()
            except ShoalError as error:
                log.warning("audit not linked; it is tried again", error=str(error))

    async def _log_head(self) -> None:
        """Let the head stand in the log, too: what changes the database leaves that as it is."""
        now_s = time.monotonic()
        if now_s - self._head_logged_s < self.HEAD_LOGGED_S:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            head = await uow.audit.head()
        if head.position:
            log.info("head of the audit", head=str(head))
            self._head_logged_s = now_s
