"""Where commands are stored: those that arrive together share a transaction, and one notification.

A transaction costs about as much with fifty commands as with one: the way to the database, and
above all its commit, which waits for the disk.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from datetime import datetime
from itertools import zip_longest
from typing import Any, Protocol, Self

import structlog

from shoal.api.web.allowances import Allowance
from shoal.coordination.cluster.notifications import notify
from shoal.coordination.session.session import ZkSession
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.principals import Principal, PrincipalKind
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandState, NewCommand
from shoal.sql import Database, UnitOfWork

log = structlog.get_logger()

_MOST_TOGETHER = 500  # commands of one transaction; the others are in the next

Stored = tuple[Command, bool]  # False: its idempotency key was there before


class EntryOf(Protocol):
    """What is known of a request for the audit."""

    async def entry(self, uow: UnitOfWork) -> NewEntry:
        """Return the entry of what the request has changed."""
        ...


_Asked = tuple[NewCommand, EntryOf]


class Intake:
    """Stores commands and notifies the owners of their partitions.

    One event loop; an async context manager.
    """

    def __init__(
        self,
        database: Database,
        session: ZkSession,
        clock: Callable[[], datetime],
        rate: Allowance,
    ) -> None:
        self._database, self._session, self._clock = database, session, clock
        self._rate = rate
        self._waiting: list[tuple[_Asked, asyncio.Future[Stored | None]]] = []
        self._storing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Return when what is under way has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def begin(self, caller: Principal) -> None:
        """Count a request for commands. Raises TooManyRequests if the caller has sent too many.

        Who holds the token of the data folder runs the cluster and has no limit.
        """
        if caller.kind is not PrincipalKind.BREAK_GLASS:
            self._rate.take(caller.name)

    def __len__(self) -> int:
        """How many commands are not stored yet."""
        return len(self._waiting) + self._storing

    async def add(self, new: NewCommand, record: EntryOf) -> Stored:
        """Store a command durably, or find the one that has its key. Raises SqlError.

        ``record``: gives the entry in the audit that is stored with a new one.
        """
        asked = new, record
        if self._storing:
            future: asyncio.Future[Stored | None] = asyncio.get_running_loop().create_future()
            self._waiting.append((asked, future))
            if (stored := await future) is not None:
                return stored
            return (await self._store([asked]))[0]  # so a command that cannot be stored fails alone
        self._storing = True
        try:
            return (await self._store([asked]))[0]
        finally:
            self._go_on()

    def _go_on(self) -> None:
        """Store what has arrived meanwhile, in a task that no request's end can cancel."""
        self._storing = bool(self._waiting)
        if self._waiting:
            self._start(self._store_waiting())

    async def _store_waiting(self) -> None:
        together = self._waiting[:_MOST_TOGETHER]
        del self._waiting[:_MOST_TOGETHER]
        results: list[Stored] = []
        try:
            with suppress(ShoalError):
                results = await self._store([asked for asked, _ in together])
        finally:
            for (_, future), stored in zip_longest(together, results):
                if not future.done():  # its request may be over
                    future.set_result(stored)
            self._go_on()

    async def _store(self, asked: list[_Asked]) -> list[Stored]:
        async with self._database.unit_of_work() as uow:
            stored = await uow.commands.add_many([new for new, _ in asked], self._clock())
            records = [one for (_, one), (_, is_new) in zip(asked, stored, strict=True) if is_new]
            await uow.audit.add([await record.entry(uow) for record in records])
            await uow.commit()
        pending = {c.partition for c, _ in stored if c.state is CommandState.PENDING}
        if pending:
            self.notify(pending)
        return stored

    def notify(self, partitions: Collection[int]) -> None:
        """Notify the owners of partitions at once. A hint: no caller waits for its answer."""
        self._start(self._see_notified(notify(self._session, partitions), partitions))

    async def _see_notified(self, notified: Awaitable[None], partitions: Collection[int]) -> None:
        try:
            await notified
        except ShoalError as error:
            log.warning(
                "owners not notified; they poll",
                partitions=sorted(partitions),
                error=str(error),
            )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
