"""Reading whole queues: how much waits, who holds what, and every entry page by page.

Every call sends a bounded number of requests, however many entries wait.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.entry import QueueEntry, parse
from shoal.coordination.session.nodes import Children, Node
from shoal.coordination.session.session import ZkSession

T = TypeVar("T")

AT_ONCE = 500  # single requests in flight, and names that are read without a turn for others
LISTS_AT_ONCE = 50  # buckets that are counted, in flight
PAGE_LISTS_AT_ONCE = 10  # lists of a bucket, with up to 1000 names each, in flight
MOST_LISTS = 1000  # in one page
COUNTED_BUCKETS = 1000  # all of them; of more, a sample of this size
DIGITS = 2  # of a number that was estimated from a sample
_TASK = re.compile(r"[0-9]{1,14}", re.ASCII)


class QueuePosition(NamedTuple):
    """A bucket of a queue: names of znodes."""

    group: str
    outer: str
    inner: str


START = QueuePosition("", "", "")


async def depth(session: ZkSession, group: str) -> int:
    """Return how many entries of ``group`` wait: see TaskQueue.depth."""
    root = layout.queue(group)
    outers = [f"{root}/{name}" for name in await _names(session, root)]
    sizes = await _counts(session, outers)
    total = sum(sizes)
    # A sample of whole outer buckets, so that few lists have to be read.
    order = list(range(len(outers)))
    if total > COUNTED_BUCKETS:
        random.shuffle(order)
    inners: list[str] = []
    for index in order:
        if len(inners) >= COUNTED_BUCKETS:
            break
        names = await _names(session, outers[index])
        inners += [f"{outers[index]}/{name}" for name in names]
    if total > COUNTED_BUCKETS and len(inners) > COUNTED_BUCKETS:
        inners = random.sample(inners, COUNTED_BUCKETS)
    counted = sum(await _counts(session, inners))
    if total <= COUNTED_BUCKETS or not inners:
        return counted
    return _rounded(counted * total / len(inners))


async def ahead(session: ZkSession, entry: QueueEntry, most: int) -> int | None:
    """Return how many entries of its group are before ``entry``: see TaskQueue.ahead."""
    root = layout.queue(entry.group)
    outer, inner = entry.outer.rsplit("/", 1)[1], entry.inner.rsplit("/", 1)[1]
    count = 0
    for name in sorted(await _names(session, root)):
        if name > outer or count > most:
            break
        inners = sorted(await _names(session, f"{root}/{name}"))
        before = [one for one in inners if (name, one) < (outer, inner)]
        for some in _batches(before, LISTS_AT_ONCE):
            count += sum(await _counts(session, [f"{root}/{name}/{one}" for one in some]))
            if count > most:
                break
    if count > most:
        return most
    names = await _names(session, entry.inner)
    return count + sum(name < entry.name for name in names) if entry.name in names else None


async def claims(session: ZkSession) -> dict[int, str]:
    """Return every live claim: task instance id -> worker id."""
    buckets = [layout.claim_bucket(number) for number in range(layout.CLAIM_BUCKETS)]
    listed = await asyncio.gather(*(_names(session, bucket) for bucket in buckets))
    tasks = [int(name) for names in listed for name in names if _TASK.fullmatch(name)]
    found: dict[int, str] = {}
    for some in _batches(tasks, AT_ONCE):
        nodes = await _gather([session.get(layout.claim(task)) for task in some], Node)
        found |= {
            task: node.data.decode("utf-8", "replace")
            for task, node in zip(some, nodes, strict=True)
            if node and node.stat.session_id
        }
    return found


async def page(
    session: ZkSession, after: QueuePosition, most: int
) -> tuple[list[QueueEntry], QueuePosition]:
    """Return entries of all groups that follow ``after``: see TaskQueue.page."""
    entries: list[QueueEntry] = []
    lists = paused_at = 0
    for element in sorted(await _names(session, layout.QUEUE)):
        if element < after.group:
            continue
        group = znodes.decode_name(element)
        root = layout.queue(group)
        for outer in sorted(await _names(session, root)):
            if (element, outer) < after[:2]:
                continue
            inners = sorted(await _names(session, f"{root}/{outer}"))
            inners = [name for name in inners if (element, outer, name) > after]
            for some in _batches(inners, PAGE_LISTS_AT_ONCE):
                read = [session.children(f"{root}/{outer}/{inner}") for inner in some]
                for inner, found in zip(some, await _gather(read, Children), strict=True):
                    entries += _parsed(group, outer, inner, found.names if found else [])
                    lists += 1
                    if len(entries) >= most or lists >= MOST_LISTS:
                        return entries, QueuePosition(element, outer, inner)
                    if len(entries) - paused_at >= AT_ONCE:
                        paused_at = len(entries)
                        await asyncio.sleep(0)
    return entries, START


async def waiting(
    session: ZkSession, group: str, after: QueueEntry | None, most: int
) -> tuple[list[QueueEntry], bool]:
    """Return entries of one group in order: see TaskQueue.waiting."""
    root = layout.queue(group)
    start = ("", "")
    if after is not None:
        start = (after.outer.rsplit("/", 1)[1], after.inner.rsplit("/", 1)[1])
    entries: list[QueueEntry] = []
    lists = 0
    for outer in sorted(await _names(session, root)):
        if outer < start[0]:
            continue
        inners = sorted(await _names(session, f"{root}/{outer}"))
        inners = [name for name in inners if (outer, name) >= start]
        for some in _batches(inners, PAGE_LISTS_AT_ONCE):
            read = [session.children(f"{root}/{outer}/{inner}") for inner in some]
            for inner, found in zip(some, await _gather(read, Children), strict=True):
                parsed = _parsed(group, outer, inner, found.names if found else [])
                entries += [one for one in parsed if after is None or one.position > after.position]
            lists += len(some)
            # Empty buckets alone are not a page: there would be nothing to go on behind.
            if len(entries) > most or (entries and lists >= MOST_LISTS):
                return entries[:most], True
    return entries, False


def _parsed(group: str, outer: str, inner: str, names: Sequence[str]) -> list[QueueEntry]:
    entries = []
    for name in sorted(names):
        try:
            entries.append(parse(group, outer, inner, name))
        except ValueError:
            continue  # the claimers of this queue warn of foreign znodes
    return entries


async def _names(session: ZkSession, path: str) -> list[str]:
    try:
        return (await session.children(path)).names
    except NoNode:
        return []


async def _counts(session: ZkSession, paths: Sequence[str]) -> list[int]:
    """Return how many children each of ``paths`` has; 0 for those that are gone."""
    counts: list[int] = []
    for some in _batches(paths, AT_ONCE):
        stats = await asyncio.gather(*(session.exists(path) for path in some))
        counts += [stat.children if stat else 0 for stat in stats]
    return counts


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
