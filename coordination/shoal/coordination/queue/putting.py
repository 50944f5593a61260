"""Putting entries into their buckets, which may or may not be there."""

import asyncio
from collections.abc import Collection, Iterable, Sequence

from shoal.coordination import layout
from shoal.coordination.errors import NodeExists, NoNode, TransactionFailed
from shoal.coordination.nodes import Create, Operation, SetData
from shoal.coordination.queue.entry import Entry
from shoal.coordination.session import ZkSession

FEW = 8  # entries; up to here one by one is quicker than a multi that may have to be repeated
KNOWN_BUCKETS = 20_000


class Putter:
    """Creates entries and the buckets they need; claimers prune buckets meanwhile."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._known: set[str] = set()  # buckets that we believe to exist

    async def put(self, group: str, batch: Sequence[Entry]) -> None:
        """Create the entries of one group and ring its bell. Raises NoNode without a tree."""
        if len(batch) > FEW:
            missing = [path for path in buckets_of(batch) if path not in self._known]
            creates: list[Operation] = [Create(path) for path in missing]
            creates += [Create(entry.path) for entry in batch]
            # Batches that are sent after this one may rely on its buckets.
            self._remember(missing)
            try:
                await self._session.multi([*creates, SetData(layout.queue(group), b"")])
                return
            except TransactionFailed:
                pass  # a bucket is there already, or was pruned, or an entry is there already
        await self._put_singly(group, batch)

    async def _put_singly(self, group: str, batch: Sequence[Entry]) -> None:
        """One request for each node and the bell, sent together; nodes may exist already."""
        root = layout.queue(group)
        left = list(batch)
        while left:
            root_was_known = root in self._known
            buckets = self.create_buckets(left)
            made = [self._session.create(entry.path) for entry in left]
            bell = self._session.set(root, b"")
            _, rung, *results = await asyncio.gather(buckets, bell, *made, return_exceptions=True)
            if isinstance(rung, BaseException) and not (
                isinstance(rung, NoNode) and root_was_known  # the tree was made anew: so do we
            ):
                raise rung
            again = []
            for entry, result in zip(left, results, strict=True):
                if isinstance(result, NoNode):
                    again.append(entry)  # a bucket was pruned meanwhile
                elif isinstance(result, BaseException) and not isinstance(result, NodeExists):
                    raise result
            self._known -= set(buckets_of(again))
            left = again

    def create_buckets(self, entries: Collection[Entry]) -> "asyncio.Future[None]":
        """Send the creation of what may be missing above ``entries`` now.

        Inner buckets come and go with every instance, so what we remember of them is worthless.
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
                self._known.difference_update(buckets_of(entries))  # an outer one was pruned
            else:
                self._remember(paths)

        return asyncio.ensure_future(answers())

    def _remember(self, buckets: Iterable[str]) -> None:
        if len(self._known) > KNOWN_BUCKETS:
            self._known.clear()
        self._known.update(buckets)

    def forget(self, buckets: Collection[str]) -> None:
        """They may have been deleted."""
        self._known.difference_update(buckets)


def buckets_of(entries: Collection[Entry]) -> list[str]:
    """Return the znodes above ``entries``, parents first."""
    roots = {layout.queue(entry.group) for entry in entries}
    outers = {entry.outer for entry in entries}
    inners = {entry.inner for entry in entries}
    return [*sorted(roots), *sorted(outers), *sorted(inners)]
