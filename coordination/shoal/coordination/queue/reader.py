"""Reading the first entries of one group's queue, bucket by bucket, and pruning on the way."""

import asyncio
from collections.abc import Callable, Sequence

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, parse
from shoal.coordination.queue.pruner import Pruner, ignore
from shoal.coordination.session.nodes import Children
from shoal.coordination.session.session import ZkSession

FIRST_AT_ONCE, AT_ONCE = 2, 64  # buckets to list in one go: few at first, they may be full
WORTH_KEEPING = 200  # names; a longer list is not read again while its znode is unchanged


class QueueReader:
    """Reads one queue. ``on_repaired`` is called when a foreign znode has been removed from it."""

    def __init__(
        self, session: ZkSession, group: str, pruner: Pruner, on_repaired: Callable[[], None]
    ) -> None:
        self._session, self._group = session, group
        self._path = layout.queue(group)
        self._pruner, self._on_repaired = pruner, on_repaired
        self._lists: dict[str, tuple[int, list[str]]] = {}  # long lists: path -> (pzxid, sorted)
        self._lists_needed = FIRST_AT_ONCE  # by the last reading

    async def outer_buckets(self) -> Sequence[str]:
        """Return the names of the outer buckets, in order. Raises NoNode."""
        return await self._list(self._path)

    async def first(self, outers: Sequence[str], count: int) -> list[QueueEntry]:
        """Return the ``count`` first entries of ``outers``, or all there are."""
        entries: list[QueueEntry] = []
        for outer in list(outers):
            if len(entries) >= count:
                break
            entries += await self._read_outer(outer, count - len(entries))
        return entries

    async def _read_outer(self, outer: str, count: int) -> list[QueueEntry]:
        """Return the ``count`` first entries of one outer bucket, or all there are; prune it."""
        path = f"{self._path}/{outer}"
        try:
            inners = await self._list(path)
        except NoNode:
            return []
        entries: list[QueueEntry] = []
        empty: list[str] = []
        needed, start, some = 0, 0, self._lists_needed
        while start < len(inners) and len(entries) < count:
            names = inners[start : start + some]
            start, some = start + some, min(4 * some, AT_ONCE)
            lists = [self._session.children(f"{path}/{inner}") for inner in names]
            found = await asyncio.gather(*lists, return_exceptions=True)
            for inner, children in zip(names, found, strict=True):
                needed += len(entries) < count
                if isinstance(children, Children):
                    first = sorted(children.names)[: count - len(entries)]
                    entries += self._parse_all(outer, inner, first)
                    if not children.names:
                        empty.append(f"{path}/{inner}")
                elif not isinstance(children, NoNode):
                    raise children
        self._lists_needed = min(max(FIRST_AT_ONCE, needed), AT_ONCE)
        self._prune([*empty, path] if len(empty) == len(inners) else empty)
        return entries

    def _parse_all(self, outer: str, inner: str, names: list[str]) -> list[QueueEntry]:
        entries = []
        for name in names:
            try:
                entries.append(parse(self._group, outer, inner, name))
            except ValueError as error:
                path = f"{self._path}/{outer}/{inner}/{name}"
                self._pruner.remove(path, str(error), self._on_repaired)
        return entries

    def _prune(self, buckets: list[str]) -> None:
        """Delete buckets that are empty; a put that comes in between makes them again."""
        for path in buckets:
            # Other claimers do the same, and the next reading finds what is left over.
            self._session.submit_delete(path).add_done_callback(ignore)

    async def _list(self, path: str) -> list[str]:
        """Return the children's names, sorted; long lists are kept while they are unchanged."""
        if kept := self._lists.get(path):
            stat = await self._session.exists(path)
            if stat and stat.pzxid == kept[0]:
                return kept[1]
            del self._lists[path]
        names, stat = await self._session.children(path)
        names.sort()
        if len(names) >= WORTH_KEEPING:
            if len(self._lists) >= AT_ONCE:
                self._lists.clear()
            self._lists[path] = (stat.pzxid, names)
        return names
