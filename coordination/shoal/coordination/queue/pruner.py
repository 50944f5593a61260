"""Deleting buckets that claims have left empty, some time afterwards."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

import structlog

from shoal.coordination import background, quarantine
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError, NoNode
from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.session.nodes import Delete
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

REPAIRS = 256  # under way at once

# An instance's bucket is empty between two of its tasks: a put soon after shall find it.
IDLE_S = 1.0
AT_ONCE = 16  # buckets; fewer wait for more, or for the next reading of the queue


class Pruner:
    """Inner buckets that one claimer has taken entries from.

    What it leaves behind, because another process interfered or the claimer ended, is found and
    deleted by the next reading of the queue.
    """

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._used: dict[str, float] = {}  # path -> when; the oldest first
        self._repairs: dict[str, asyncio.Task[None]] = {}  # under way, by path

    def used(self, entries: Iterable[QueueEntry]) -> None:
        """Note that ``entries`` have been taken; delete what has long been left empty."""
        now = time.monotonic()
        for path in {entry.inner for entry in entries}:
            self._used.pop(path, None)
            self._used[path] = now
        if len(self._used) >= AT_ONCE:
            self._prune([path for path, used in self._used.items() if used < now - IDLE_S])

    def remove(self, path: str, reason: str, done: Callable[[], None]) -> None:
        """Quarantine what stands among the entries and is none, in the background; then ``done``.

        It would be read again and again, and many of them would hide the entries behind them.
        """

        async def remove() -> None:
            await quarantine.isolate_name(self._session, path, reason)
            done()

        self._repair(path, remove())

    def remove_lasting_claim(self, entry: QueueEntry) -> None:
        """A claim is held by a session: one that is not would keep its task waiting for ever."""
        path = layout.claim(entry.task_instance_id)
        self._repair(path, self._remove_if_lasting(path))

    async def _remove_if_lasting(self, path: str) -> None:
        try:
            node = await self._session.get(path)
        except NoNode:
            return
        if not node.stat.session_id:
            await quarantine.isolate(self._session, path, node, "no claim: it lasts")

    def make_claim_bucket(self, entry: QueueEntry) -> None:
        """Make the znode in which the claim of ``entry`` is to stand."""
        path = layout.claim_bucket(entry.task_instance_id % layout.CLAIM_BUCKETS)
        self._repair(path, self._session.ensure(path))

    def _repair(self, path: str, work: Coroutine[Any, Any, Any]) -> None:
        if path in self._repairs or len(self._repairs) >= REPAIRS:
            work.close()  # what is left is found again by the next reading
            return

        async def repair() -> None:
            try:
                await work
            except CoordinationError as error:
                log.info("not repaired", path=path, error=str(error))
            finally:
                del self._repairs[path]

        self._repairs[path] = background.start(repair(), f"repair {path}")

    def _prune(self, idle: Sequence[str]) -> None:
        if len(idle) < AT_ONCE:
            return
        for path in idle:
            del self._used[path]
        read = asyncio.gather(*map(self._session.exists, idle), return_exceptions=True)
        read.add_done_callback(partial(self._delete_empty, idle))

    def _delete_empty(self, paths: Sequence[str], read: "asyncio.Future[list[Any]]") -> None:
        """A put that comes in between spoils the transaction, and nothing is deleted."""
        if read.cancelled():
            return
        stats = zip(paths, read.result(), strict=True)
        empty = [
            Delete(path) for path, stat in stats if isinstance(stat, Stat) and not stat.children
        ]
        if empty:
            self._session.multi(empty).add_done_callback(ignore)


def ignore(answer: "asyncio.Future[Any]") -> None:
    """A callback for answers that do not matter."""
    if not answer.cancelled():
        answer.exception()
