"""Reading the first entries of one group's queue, bucket by bucket, and pruning on the way."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, lane_of_bucket, parse
from shoal.coordination.queue.pruner import Pruner, ignore
from shoal.coordination.queue.window import Line, LineKey
from shoal.coordination.session.nodes import Children
from shoal.coordination.session.session import ZkSession

FIRST_AT_ONCE, AT_ONCE = 2, 64  # buckets to list in one go: few at first, they may be full
WORTH_KEEPING = 200  # names; a longer list is not read again while its znode is unchanged


MOST_LANES = 64  # of one priority that one reading reads


@dataclass
class FirstEntries:
    """What a reading found. ``unread``: lanes that it has passed over."""

    lines: dict[LineKey, Line] = field(default_factory=dict)
    unread: set[LineKey] = field(default_factory=set)
    is_complete: bool = True  # there is nothing else in the queue

    @property
    def count(self) -> int:
        """How many entries it has."""
        return sum(len(line.entries) for line in self.lines.values())


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

    async def first(self, outers: Sequence[str], count: int) -> "FirstEntries":
        """Return the first entries of ``outers``: ``count`` of them, or all there are.

        All lanes of a priority are read, each for its share, before less urgent ones.
        """
        found = FirstEntries()
        buckets: defaultdict[int, dict[int, list[str]]] = defaultdict(dict)
        for outer in outers:
            priority, lane = lane_of_bucket(outer)
            buckets[priority].setdefault(lane, []).append(outer)
        for priority in sorted(buckets):
            if found.count >= count:
                found.is_complete = False
                break
            lanes = list(buckets[priority])
            if len(lanes) > MOST_LANES:  # others come with the next readings
                random.shuffle(lanes)
            share = max(1, -(-(count - found.count) // min(len(lanes), MOST_LANES)))
            for lane in lanes[:MOST_LANES]:
                line = await self._read_line(buckets[priority][lane], share)
                found.lines[priority, lane] = line
                found.is_complete &= line.is_complete
            found.unread |= {(priority, lane) for lane in lanes[MOST_LANES:]}
            found.is_complete &= not lanes[MOST_LANES:]
        return found

    async def _read_line(self, outers: Sequence[str], count: int) -> Line:
        """Return the ``count`` first entries of a lane, or all there are."""
        entries: list[QueueEntry] = []
        for outer in outers:
            if len(entries) >= count:
                break
            entries += await self._read_outer(outer, count - len(entries))
        # As many as were wanted: there may be more.
        return Line(entries, is_complete=len(entries) < count)

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
