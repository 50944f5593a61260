"""Reading whole queues: how much waits, who holds what, and every entry page by page.

Every call sends a bounded number of requests, however many entries wait; but a page behind another
one also counts the buckets before it, if several lanes take turns there.
"""

import asyncio
import random
import re
import sys
from collections import defaultdict, deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, lane_of_bucket, parse
from shoal.coordination.session.nodes import Children, Node
from shoal.coordination.session.session import ZkSession

T = TypeVar("T")

DIGITS = 2  # of a number that was estimated from a sample
_TASK = re.compile(r"[0-9]{1,14}", re.ASCII)


@dataclass(frozen=True)
class QueueLimits:
    """How much is read at once. A list is that of a bucket, with up to 1000 names each."""

    at_once: int = (
        500  # single requests in flight, and names that are read without a turn for others
    )
    lists_at_once: int = 50  # buckets that are counted, in flight
    page_lists_at_once: int = 10  # lists in flight
    most_lists: int = 1000  # in one page
    counted_buckets: int = 1000  # all of them; of more, a sample of this size


class QueuePosition(NamedTuple):
    """A bucket of a queue: names of znodes."""

    group: str
    outer: str
    inner: str


START = QueuePosition("", "", "")


@dataclass
class _LanePage:
    """What of a lane is still to be listed. ``skip``: its first entries, which have been."""

    lane: int
    outers: deque[str]
    inners: deque[tuple[str, str]] = field(default_factory=deque)
    entries: deque[QueueEntry] = field(default_factory=deque)
    skip: int = 0
    behind: QueueEntry | None = None


class Survey:
    """Reads the queues of one session."""

    def __init__(self, session: ZkSession, limits: QueueLimits) -> None:
        self._session, self._limits = session, limits

    async def depth(self, group: str) -> int:
        """Return how many entries of ``group`` wait: see TaskQueue.depth."""
        root = layout.queue(group)
        outers = [f"{root}/{name}" for name in await self._names(root)]
        sizes = await self._counts(outers)
        total = sum(sizes)
        # A sample of whole outer buckets, so that few lists have to be read.
        order = list(range(len(outers)))
        if total > self._limits.counted_buckets:
            random.shuffle(order)
        inners: list[str] = []
        for index in order:
            if len(inners) >= self._limits.counted_buckets:
                break
            names = await self._names(outers[index])
            inners += [f"{outers[index]}/{name}" for name in names]
        if total > self._limits.counted_buckets and len(inners) > self._limits.counted_buckets:
            inners = random.sample(inners, self._limits.counted_buckets)
        counted = sum(await self._counts(inners))
        if total <= self._limits.counted_buckets or not inners:
            return counted
        return _rounded(counted * total / len(inners))

    async def ahead(self, entry: QueueEntry, most: int) -> int | None:
        """Return how many entries of its group are before ``entry``: see TaskQueue.ahead."""
        root = layout.queue(entry.group)
        priorities = _lanes(await self._names(root))
        count = 0
        for priority in sorted(priorities):
            if priority < entry.workflow_priority and count <= most:
                outers = [outer for some in priorities[priority].values() for outer in some]
                count += await self._size(root, outers, most + 1)
        lanes = priorities.get(entry.workflow_priority, {})
        own = await self._before(root, lanes.get(entry.lane, ()), entry, most + 1)
        if count + own > most:
            return most
        if entry.name not in await self._names(entry.inner):
            return None
        # The other lanes have as many turns before it, those that come first in a turn one more.
        count += own
        others = [lane for lane in sorted(lanes) if lane != entry.lane]
        for some in _batches(others, self._limits.page_lists_at_once):
            turns = [own + (lane < entry.lane) for lane in some]
            sizes = [
                self._size(root, lanes[lane], n) for lane, n in zip(some, turns, strict=True) if n
            ]
            count += sum(await asyncio.gather(*sizes))
            if count > most:
                return most
        return count

    async def _before(self, root: str, outers: Sequence[str], entry: QueueEntry, most: int) -> int:
        """Return how many entries of its lane are before ``entry``, at most ``most``."""
        outer, inner = _buckets(entry)
        count = await self._size(root, [name for name in outers if name < outer], most)
        if outer not in outers or count >= most:
            return count
        inners = sorted(name for name in await self._names(f"{root}/{outer}") if name <= inner)
        before = [f"{root}/{outer}/{name}" for name in inners if name < inner]
        for some in _batches(before, self._limits.lists_at_once):
            count += sum(await self._counts(some))
            if count >= most:
                return most
        names = await self._names(entry.inner) if inner in inners else []
        return min(most, count + sum(name < entry.name for name in names))

    async def _size(self, root: str, outers: Sequence[str], most: int) -> int:
        """Return how many entries outer buckets have, at most ``most``."""
        count = 0
        for outer in outers:
            inners = sorted(await self._names(f"{root}/{outer}"))
            for some in _batches(inners, self._limits.lists_at_once):
                count += sum(await self._counts([f"{root}/{outer}/{inner}" for inner in some]))
                if count >= most:
                    return most
        return count

    async def claims(self) -> dict[int, str]:
        """Return every live claim: task instance id -> worker id."""
        buckets = [layout.claim_bucket(number) for number in range(layout.CLAIM_BUCKETS)]
        listed = await asyncio.gather(*(self._names(bucket) for bucket in buckets))
        tasks = [int(name) for names in listed for name in names if _TASK.fullmatch(name)]
        found: dict[int, str] = {}
        for some in _batches(tasks, self._limits.at_once):
            nodes = await _gather([self._session.get(layout.claim(task)) for task in some], Node)
            found |= {
                task: node.data.decode("utf-8", "replace")
                for task, node in zip(some, nodes, strict=True)
                if node and node.stat.session_id
            }
        return found

    async def page(self, after: QueuePosition, most: int) -> tuple[list[QueueEntry], QueuePosition]:
        """Return entries of all groups that follow ``after``: see TaskQueue.page."""
        entries: list[QueueEntry] = []
        lists = paused_at = 0
        for element in sorted(await self._names(layout.QUEUE)):
            if element < after.group:
                continue
            group = znodes.decode_name(element)
            root = layout.queue(group)
            for outer in sorted(await self._names(root)):
                if (element, outer) < after[:2]:
                    continue
                inners = sorted(await self._names(f"{root}/{outer}"))
                inners = [name for name in inners if (element, outer, name) > after]
                for some in _batches(inners, self._limits.page_lists_at_once):
                    read = [self._session.children(f"{root}/{outer}/{inner}") for inner in some]
                    for inner, found in zip(some, await _gather(read, Children), strict=True):
                        entries += _parsed(group, outer, inner, found.names if found else [])
                        lists += 1
                        if len(entries) >= most or lists >= self._limits.most_lists:
                            return entries, QueuePosition(element, outer, inner)
                        if len(entries) - paused_at >= self._limits.at_once:
                            paused_at = len(entries)
                            await asyncio.sleep(0)
        return entries, START

    async def waiting(
        self, group: str, after: QueueEntry | None, most: int
    ) -> tuple[list[QueueEntry], bool]:
        """Return entries of one group in order: see TaskQueue.waiting."""
        priorities = _lanes(await self._names(layout.queue(group)))
        entries: list[QueueEntry] = []
        lists = 0
        for priority in sorted(priorities):
            if after is not None and priority < after.workflow_priority:
                continue
            behind = after if after and after.workflow_priority == priority else None
            lanes = await self._lane_pages(group, priorities[priority], behind)
            at_once = max(1, self._limits.page_lists_at_once // len(lanes))
            turn = [one for one in lanes if behind is None or one.lane > behind.lane]
            while lanes:
                for one in turn:
                    if not one.entries:
                        # Empty buckets alone are not a page: nothing to go on behind.
                        if entries and lists >= self._limits.most_lists:
                            return entries, True
                        lists += await self._read_on(group, one, at_once)
                    if one.entries:
                        entries.append(one.entries.popleft())
                        if len(entries) > most:
                            return entries[:most], True
                    else:
                        lanes.remove(one)
                turn = list(lanes)
        return entries, False

    async def _lane_pages(
        self, group: str, lanes: Mapping[int, Sequence[str]], behind: QueueEntry | None
    ) -> list["_LanePage"]:
        """Return the lanes of a priority in the order of a turn, each to go on behind an entry."""
        pages = [_LanePage(lane, deque(lanes[lane])) for lane in sorted(lanes)]
        if behind is None:
            return pages
        turns = 0  # that its lane has had, and so each of the others
        if len(pages) > 1 and behind.lane in lanes:
            outers = lanes[behind.lane]
            turns = await self._before(layout.queue(group), outers, behind, sys.maxsize)
            turns += behind.name in await self._names(behind.inner)
        for page in pages:
            if page.lane == behind.lane:
                page.behind = behind
            else:
                page.skip = turns if page.lane < behind.lane else max(0, turns - 1)
        return pages

    async def _read_on(self, group: str, page: "_LanePage", at_once: int) -> int:
        """Read a lane until there are entries, or to its end; return how many lists that took."""
        root = layout.queue(group)
        start = _buckets(page.behind) if page.behind else ("", "")
        lists = 0
        while not page.entries and (page.inners or page.outers):
            if not page.inners:
                outer = page.outers.popleft()
                if outer >= start[0]:
                    names = sorted(await self._names(f"{root}/{outer}"))
                    page.inners.extend((outer, name) for name in names if (outer, name) >= start)
                continue
            if page.skip:
                some = list(islice(page.inners, self._limits.lists_at_once))
                sizes = await self._counts([f"{root}/{outer}/{inner}" for outer, inner in some])
                for size in sizes:
                    if size > page.skip:
                        break
                    page.skip -= size
                    page.inners.popleft()
                else:
                    continue
            some = [page.inners.popleft() for _ in range(min(at_once, len(page.inners)))]
            read = [self._session.children(f"{root}/{outer}/{inner}") for outer, inner in some]
            for (outer, inner), found in zip(some, await _gather(read, Children), strict=True):
                parsed = _parsed(group, outer, inner, found.names if found else [])
                if page.behind is not None:
                    parsed = [one for one in parsed if one.place > page.behind.place]
                page.entries.extend(parsed[page.skip :])
                page.skip = max(0, page.skip - len(parsed))
            lists += len(some)
        return lists

    async def _names(self, path: str) -> list[str]:
        try:
            return (await self._session.children(path)).names
        except NoNode:
            return []

    async def _counts(self, paths: Sequence[str]) -> list[int]:
        """Return how many children each of ``paths`` has; 0 for those that are gone."""
        counts: list[int] = []
        for some in _batches(paths, self._limits.at_once):
            stats = await asyncio.gather(*(self._session.exists(path) for path in some))
            counts += [stat.children if stat else 0 for stat in stats]
        return counts


def _lanes(outers: Sequence[str]) -> dict[int, dict[int, list[str]]]:
    """Return outer buckets, in order, by priority and lane."""
    found: defaultdict[int, dict[int, list[str]]] = defaultdict(dict)
    for outer in sorted(outers):
        priority, lane = lane_of_bucket(outer)
        found[priority].setdefault(lane, []).append(outer)
    return found


def _buckets(entry: QueueEntry) -> tuple[str, str]:
    """Return the names of the outer and the inner bucket of an entry."""
    return entry.outer.rsplit("/", 1)[1], entry.inner.rsplit("/", 1)[1]


def _parsed(group: str, outer: str, inner: str, names: Sequence[str]) -> list[QueueEntry]:
    entries = []
    for name in sorted(names):
        try:
            entries.append(parse(group, outer, inner, name))
        except ValueError:
            continue  # the claimers of this queue warn of foreign znodes
    return entries


async def _gather(sent: Sequence[Awaitable[T]], kind: type[T]) -> list[T | None]:
    """Return the answers; None for nodes that are gone."""
    answers: list[T | None] = []
    for answer in await asyncio.gather(*sent, return_exceptions=True):
        if isinstance(answer, BaseException) and not isinstance(answer, NoNode):
            raise answer
        answers.append(answer if isinstance(answer, kind) else None)
    return answers


def _rounded(number: float) -> int:
    """Return ``number`` with two digits that count: 12,345 becomes 12,000."""
    return int(float(f"{number:.{DIGITS}g}"))


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
