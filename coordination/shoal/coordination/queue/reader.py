"""Reading the first entries of one group's queue, bucket by bucket, and pruning on the way."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, lane_of_bucket, parse
from shoal.coordination.queue.pruner import Pruner, ignore
from shoal.coordination.queue.window import MOST_ENTRIES, Line, LineKey
from shoal.coordination.session.nodes import Children
from shoal.coordination.session.session import ZkSession

FIRST_AT_ONCE, AT_ONCE = 2, 64  # buckets to list in one go: few at first, they may be full
WORTH_KEEPING = 200  # names; a longer list is not read again while its znode is unchanged
MOST_LANES = 64  # of one priority that are read at once; more if these have little
MOST_SEARCHED = 8 * MOST_ENTRIES  # of all lanes that are read at once


IsWanted = Callable[[QueueEntry], bool]


class LanePart:
    """The first entries of a lane: those up to the ``share``-th that is wanted, at most ``most``.

    Others are passed over, for they cannot be claimed now and must not hide those behind them.
    """

    def __init__(self, share: int, most: int, is_wanted: IsWanted) -> None:
        self.entries: list[QueueEntry] = []
        self.count = 0  # of those that are wanted
        self._share, self._most, self._is_wanted = share, most, is_wanted

    @property
    def is_full(self) -> bool:
        """Whether there may be more in the lane."""
        return self.has_share or len(self.entries) >= self._most

    @property
    def has_share(self) -> bool:
        """Whether it has as many wanted entries as it shall have."""
        return self.count >= self._share

    def add(self, entry: QueueEntry) -> None:
        """Add the next entry of the lane."""
        self.entries.append(entry)
        self.count += self._is_wanted(entry)


@dataclass
class FirstEntries:
    """What a reading found. ``unread``: lanes that it has passed over."""

    lines: dict[LineKey, Line] = field(default_factory=dict)
    wanted: dict[LineKey, int] = field(default_factory=dict)  # entries of a line
    unread: set[LineKey] = field(default_factory=set)
    has_rest: bool = False  # less urgent priorities were passed over
    is_searched: bool = False  # all lanes were searched, as far as that goes

    @property
    def count(self) -> int:
        """How many entries it has that are wanted."""
        return sum(self.wanted.values())

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing else in the queue."""
        lines_are = all(line.is_complete for line in self.lines.values())
        return lines_are and not self.unread and not self.has_rest


class QueueReader:
    """Reads one queue. ``on_repaired`` is called when a foreign znode has been removed from it."""

    def __init__(
        self, session: ZkSession, group: str, pruner: Pruner, on_repaired: Callable[[], None]
    ) -> None:
        self._session, self._group = session, group
        self._path = layout.queue(group)
        self._pruner, self._on_repaired = pruner, on_repaired
        self._lists: dict[str, tuple[int, list[str]]] = {}  # long lists: path -> (pzxid, sorted)
        self._lists_needed = FIRST_AT_ONCE  # of one outer bucket, by the last reading

    async def outer_buckets(self) -> Sequence[str]:
        """Return the names of the outer buckets, in order. Raises NoNode."""
        return await self._list(self._path)

    async def first(
        self, outers: Sequence[str], count: int, is_wanted: IsWanted = lambda _: True
    ) -> FirstEntries:
        """Return the first entries of ``outers``: ``count`` that are wanted, or all there are.

        All lanes of a priority are read, each for its share, before less urgent ones; and these
        only if the lanes have no more that is wanted, as far as they are searched. Entries that
        come before wanted ones may be among what is returned.
        """
        found = FirstEntries()
        lanes_of: defaultdict[int, dict[int, list[str]]] = defaultdict(dict)
        for outer in outers:
            priority, lane = lane_of_bucket(outer)
            lanes_of[priority].setdefault(lane, []).append(outer)
        for priority in sorted(lanes_of):
            if found.count >= count:
                found.has_rest = True
                break
            await self._read_priority(found, priority, lanes_of[priority], count, is_wanted)
        found.is_searched = found.count < count
        return found

    async def _read_priority(
        self,
        found: FirstEntries,
        priority: int,
        lanes: Mapping[int, Sequence[str]],
        count: int,
        is_wanted: IsWanted,
    ) -> None:
        """Add to ``found`` what its lanes have, until there are ``count`` entries."""

        async def read(some: Sequence[int], shares: Sequence[int]) -> list[int]:
            """Read ``some`` lanes for their shares; return those that may have more."""
            at_once = max(FIRST_AT_ONCE, min(self._lists_needed, AT_ONCE // len(some)))
            most = max(*shares, min(MOST_ENTRIES, MOST_SEARCHED // len(some)))
            parts = [LanePart(share, most, is_wanted) for share in shares]
            needed = await asyncio.gather(
                *(
                    self._read_lane(part, lanes[lane], at_once)
                    for part, lane in zip(parts, some, strict=True)
                )
            )
            self._lists_needed = min(max(FIRST_AT_ONCE, *needed), AT_ONCE)
            for part, lane in zip(parts, some, strict=True):
                found.lines[priority, lane] = Line(part.entries, is_complete=not part.is_full)
                found.wanted[priority, lane] = part.count
            return [lane for part, lane in zip(parts, some, strict=True) if part.has_share]

        cut: list[int] = []
        left = list(lanes)
        if len(left) > MOST_LANES:  # others come with the next readings
            random.shuffle(left)
        while left and found.count < count:
            some, left = left[:MOST_LANES], left[MOST_LANES:]
            share = -(-(count - found.count) // len(some))
            cut += await read(some, [share] * len(some))
        found.unread |= {(priority, lane) for lane in left}
        if cut and found.count < count:  # what short lanes leave over is for the others
            more = -(-(count - found.count) // len(cut))
            await read(cut, [found.wanted[priority, lane] + more for lane in cut])

    async def _read_lane(self, part: LanePart, outers: Sequence[str], at_once: int) -> int:
        """Read the first entries of a lane; return how many lists of a bucket that needed."""
        needed = 0
        for outer in outers:
            if part.is_full:
                break
            needed = max(needed, await self._read_outer(part, outer, at_once))
        return needed

    async def _read_outer(self, part: LanePart, outer: str, at_once: int) -> int:
        """Add the first entries of one outer bucket, or all there are; prune it."""
        path = f"{self._path}/{outer}"
        try:
            inners = await self._list(path)
        except NoNode:
            return 0
        empty: list[str] = []
        needed, start, some = 0, 0, at_once
        while start < len(inners) and not part.is_full:
            names = inners[start : start + some]
            start, some = start + some, min(4 * some, AT_ONCE)
            lists = [self._session.children(f"{path}/{inner}") for inner in names]
            found = await asyncio.gather(*lists, return_exceptions=True)
            for inner, children in zip(names, found, strict=True):
                needed += not part.is_full
                if isinstance(children, Children):
                    self._add_all(part, outer, inner, sorted(children.names))
                    if not children.names:
                        empty.append(f"{path}/{inner}")
                elif not isinstance(children, NoNode):
                    raise children
        self._prune([*empty, path] if len(empty) == len(inners) else empty)
        return needed

    def _add_all(self, part: LanePart, outer: str, inner: str, names: Sequence[str]) -> None:
        for name in names:
            if part.is_full:
                return
            try:
                part.add(parse(self._group, outer, inner, name))
            except ValueError as error:
                path = f"{self._path}/{outer}/{inner}/{name}"
                self._pruner.remove(path, str(error), self._on_repaired)

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
            self._lists.pop(path, None)
        names, stat = await self._session.children(path)
        names.sort()
        if len(names) >= WORTH_KEEPING:
            if len(self._lists) >= AT_ONCE:
                self._lists.clear()
            self._lists[path] = (stat.pzxid, names)
        return names
