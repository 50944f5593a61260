"""Putting entries into their buckets, which may or may not be there."""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NodeExists, NoNode, TransactionFailed
from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.queue.put_log import PutLog
from shoal.coordination.session.nodes import Create, Operation
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

KNOWN_BUCKETS = 20_000  # remembered as there; forgetting one costs a request
# Claimers leave a bucket alone for a while when they have taken the last entry out of it
# (pruner.py): within this time it is most likely still there.
FRESH_S = 0.5


class Putter:
    """Creates entries and the buckets they need; claimers prune buckets meanwhile."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        # Buckets that we believe to exist, and when we last put into them; the oldest first.
        self._known: dict[str, float] = {}
        self._put_logs: dict[str, PutLog] = {}

    async def put(self, group: str, batch: Sequence[QueueEntry]) -> None:
        """Create the entries of one group, in order, and notify its claimers.

        Raises NoNode without a tree.
        """
        now = time.monotonic()
        buckets = buckets_of(batch)  # the group's own first, which is never pruned
        missing = [path for path in buckets if path not in self._known]
        doubtful = [path for path in buckets[1:] if self._known.get(path, now) < now - FRESH_S]
        creates: list[Operation] = [Create(path) for path in missing]
        creates += [Create(entry.path) for entry in batch]
        notification, line = self._put_log(group).notification(batch)
        # Batches that are sent after this one may rely on its buckets.
        self._remember(buckets)
        ahead = [self._session.create(path) for path in doubtful]  # most likely refused: fine
        written = self._session.multi([*creates, notification])
        await asyncio.gather(*ahead, return_exceptions=True)
        try:
            notified = (await written)[-1]
        except TransactionFailed:
            # A bucket is there already, or was pruned, or an entry is there already.
            await self._put_singly(group, batch)
        else:
            assert isinstance(notified, Stat)
            self._put_log(group).record(line, notified)

    async def _put_singly(self, group: str, batch: Sequence[QueueEntry]) -> None:
        """One request for each node and the notification, sent together; nodes may exist already.

        The notification is empty, since not all that it could say may be true.
        """
        root = layout.queue(group)
        left = list(batch)
        while left:
            root_was_known = root in self._known
            buckets = self.create_buckets(left)
            made = [self._session.create(entry.path) for entry in left]
            notification = self._session.set(root, b"")
            _, notified, *results = await asyncio.gather(
                buckets, notification, *made, return_exceptions=True
            )
            if isinstance(notified, BaseException) and not (
                isinstance(notified, NoNode) and root_was_known  # the tree was made anew: so do we
            ):
                raise notified
            again = []
            for entry, result in zip(left, results, strict=True):
                if isinstance(result, NoNode):
                    again.append(entry)  # a bucket was pruned meanwhile
                elif isinstance(result, BaseException) and not isinstance(result, NodeExists):
                    raise result
            self.forget(buckets_of(again))
            left = again

    def create_buckets(self, entries: Collection[QueueEntry]) -> "asyncio.Future[None]":
        """Send the creation of what may be missing above ``entries`` now.

        Inner buckets come and go with every instance, so what we remember of them does not count.
        """
        inners = {entry.inner for entry in entries}
        paths = [p for p in buckets_of(entries) if p in inners or p not in self._known]
        sent = [self._session.create(path) for path in paths]

        async def answers() -> None:
            results = await asyncio.gather(*sent, return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException) and not isinstance(
                    result, NodeExists | NoNode
                ):
                    raise result
            if any(isinstance(result, NoNode) for result in results):
                self.forget(buckets_of(entries))  # an outer one was pruned
            else:
                self._remember(paths)

        return asyncio.ensure_future(answers())

    def _remember(self, buckets: Iterable[str]) -> None:
        now = time.monotonic()
        for path in buckets:
            self._known.pop(path, None)
            self._known[path] = now
        while len(self._known) > KNOWN_BUCKETS:
            del self._known[next(iter(self._known))]

    def forget(self, buckets: Collection[str]) -> None:
        """``buckets`` may have been deleted."""
        for path in buckets:
            self._known.pop(path, None)

    def _put_log(self, group: str) -> PutLog:
        if group not in self._put_logs:
            self._put_logs[group] = PutLog(group)
        return self._put_logs[group]


def buckets_of(entries: Collection[QueueEntry]) -> list[str]:
    """Return the znodes above ``entries``, parents first."""
    roots = {layout.queue(entry.group) for entry in entries}
    outers = {entry.outer for entry in entries}
    inners = {entry.inner for entry in entries}
    return [*sorted(roots), *sorted(outers), *sorted(inners)]
