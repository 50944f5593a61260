"""Deleting buckets that claims have left empty, some time afterwards."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from shoal.coordination.nodes import Delete
from shoal.coordination.queue.entry import Entry
from shoal.coordination.session import ZkSession
from shoal.coordination.wire import Stat

# An instance's bucket is empty between two of its tasks: who puts the next soon shall find it.
IDLE_S = 1.0
AT_ONCE = 16  # buckets; fewer wait for more, or for the next reading of the queue


class Pruner:
    """Inner buckets that one claimer has taken entries from.

    What it leaves behind, because somebody interfered or the claimer ended, is found and deleted
    by whoever reads the queue next.
    """

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._used: dict[str, float] = {}  # path -> when; the oldest first

    def used(self, entries: Iterable[Entry]) -> None:
        """Note that ``entries`` have been taken; delete what has long been left empty."""
        now = time.monotonic()
        for path in {entry.inner for entry in entries}:
            self._used.pop(path, None)
            self._used[path] = now
        if len(self._used) >= AT_ONCE:
            self._prune([path for path, used in self._used.items() if used < now - IDLE_S])

    def _prune(self, idle: Sequence[str]) -> None:
        if len(idle) < AT_ONCE:
            return
        for path in idle:
            del self._used[path]
        looks = asyncio.gather(*map(self._session.exists, idle), return_exceptions=True)
        looks.add_done_callback(partial(self._delete_empty, idle))

    def _delete_empty(self, paths: Sequence[str], looks: "asyncio.Future[list[Any]]") -> None:
        """A put that comes in between spoils the transaction, and nothing is deleted."""
        if looks.cancelled():
            return
        stats = zip(paths, looks.result(), strict=True)
        empty = [Delete(path) for path, stat in stats if _is_empty(stat)]
        if empty:
            self._session.multi(empty).add_done_callback(ignore)


def _is_empty(stat: object) -> bool:
    return isinstance(stat, Stat) and not stat.children


def ignore(answer: "asyncio.Future[Any]") -> None:
    """A callback for answers that do not matter."""
    if not answer.cancelled():
        answer.exception()
