"""Reading whole queues: how much waits, who holds what, and every entry page by page.

Every call sends a bounded number of requests, however many entries wait.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, parse
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
        outer, inner = entry.outer.rsplit("/", 1)[1], entry.inner.rsplit("/", 1)[1]
        count = 0
        for name in sorted(await self._names(root)):
            if name > outer or count > most:
                break
            inners = sorted(await self._names(f"{root}/{name}"))
            before = [one for one in inners if (name, one) < (outer, inner)]
            for some in _batches(before, self._limits.lists_at_once):
                count += sum(await self._counts([f"{root}/{name}/{one}" for one in some]))
                if count > most:
                    break
        if count > most:
            return most
        names = await self._names(entry.inner)
        return count + sum(name < entry.name for name in names) if entry.name in names else None

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
        root = layout.queue(group)
        start = ("", "")
        if after is not None:
            start = (after.outer.rsplit("/", 1)[1], after.inner.rsplit("/", 1)[1])
        entries: list[QueueEntry] = []
        lists = 0
        for outer in sorted(await self._names(root)):
            if outer < start[0]:
                continue
            inners = sorted(await self._names(f"{root}/{outer}"))
            inners = [name for name in inners if (outer, name) >= start]
            for some in _batches(inners, self._limits.page_lists_at_once):
                read = [self._session.children(f"{root}/{outer}/{inner}") for inner in some]
                for inner, found in zip(some, await _gather(read, Children), strict=True):
                    parsed = _parsed(group, outer, inner, found.names if found else [])
                    entries += [
                        one for one in parsed if after is None or one.position > after.position
                    ]
                lists += len(some)
                # Empty buckets alone are not a page: there would be nothing to go on behind.
                if len(entries) > most or (entries and lists >= self._limits.most_lists):
                    return entries[:most], True
        return entries, False

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
