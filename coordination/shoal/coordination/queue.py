"""The priority queue of tasks that wait for a worker, one for each worker group.

The database is the truth; the queue can be rebuilt from it. Entries are names (queue_entry.py).
A task is queued, or claimed by a live session, or neither, never both: one multi creates the
ephemeral claim and deletes the entry. Every method may raise ConnectionLoss and SessionLost;
``put``, ``remove`` and ``release`` may simply be repeated.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import structlog

from shoal.coordination import layout
from shoal.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.nodes import Create, Created, Delete, Node, Operation
from shoal.coordination.queue_entry import Claim, Entry
from shoal.coordination.queue_head import Head
from shoal.coordination.queue_putting import Putter
from shoal.coordination.session import ZkSession

log = structlog.get_logger()

BATCH = 250  # entries in one multi
BATCHES_AT_ONCE = 8
AT_ONCE = 2000  # single requests in flight
LISTS_AT_ONCE = 200  # lists of a bucket, with up to 1000 names each, in flight
RACES = 6  # that one claim takes part in
SPREAD = 64  # entries among which a claimer chooses after it has lost a race


class TaskQueue:
    """Put, claim and count entries. Belongs to one loop; share one for each session."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._heads: dict[str, Head] = {}
        self._putter = Putter(session)
        self._held: dict[int, int] = {}  # task instance -> session generation of our claim
        self._giving_back: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ masters

    async def put(self, entries: Iterable[Entry]) -> None:
        """Add ``entries`` and ring the bells of their groups. Those already queued are fine."""
        for group, members in groupby(sorted(entries), key=lambda entry: entry.group):
            queued = list(members)
            batches = [queued[start : start + BATCH] for start in range(0, len(queued), BATCH)]
            for start in range(0, len(batches), BATCHES_AT_ONCE):
                some = batches[start : start + BATCHES_AT_ONCE]
                await asyncio.gather(*(self._putter.put(group, batch) for batch in some))

    async def remove(self, entries: Collection[Entry]) -> None:
        """Take ``entries`` out of the queue; those already gone are fine."""
        await self._each(self._session.submit_delete, [entry.path for entry in entries], NoNode)
        inners = {entry.inner for entry in entries}
        outers = {entry.outer for entry in entries}
        await self._each(self._session.submit_delete, [*inners, *outers], (NoNode, NotEmpty))
        self._putter.forget(inners | outers)

    async def contains(self, entries: Collection[Entry]) -> set[Entry]:
        """Return those of ``entries`` that are in the queue, as of this call or later."""
        in_bucket: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            in_bucket[entry.inner].append(entry)
        found: set[Entry] = set()
        if in_bucket:
            await self._session.sync("/")  # our server may lag behind
        for buckets in _batches(list(in_bucket), LISTS_AT_ONCE):
            lists = await asyncio.gather(*(self._names(bucket) for bucket in buckets))
            for bucket, names in zip(buckets, lists, strict=True):
                present = set(names)
                found.update(entry for entry in in_bucket[bucket] if entry.name in present)
        return found

    async def claimed(self, task_instance_ids: Collection[int]) -> set[int]:
        """Return those that a live session has claimed, as of this call or later.

        A claim that was made before this call is seen, even if our server lags behind the one
        that the claimer is connected to.
        """
        listed = list(task_instance_ids)
        found: set[int] = set()
        if listed:
            await self._session.sync("/")
        for start in range(0, len(listed), AT_ONCE):
            some = listed[start : start + AT_ONCE]
            stats = await asyncio.gather(*(self._session.exists(layout.claim(i)) for i in some))
            found.update(i for i, stat in zip(some, stats, strict=True) if stat)
        return found

    # ------------------------------------------------------------------ workers

    async def claim(self, group: str, count: int, worker_id: str) -> list[Claim]:
        """Claim up to ``count`` of the first entries of ``group`` in this session.

        Alone, a claimer gets exactly the first. After losing a race it chooses among the first
        64 or so. If it is cancelled, what it gets goes back into the queue. Raises SessionLost
        when an answer was lost and the session with it: then whatever was claimed is neither
        queued nor claimed, and the tasks' master has to put it again.
        """
        if count <= 0:
            return []
        work = asyncio.create_task(self._claim(group, count, worker_id))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            rescue = asyncio.create_task(self._give_back_result(work))
            self._giving_back.add(rescue)
            rescue.add_done_callback(self._giving_back.discard)
            raise

    async def release(self, task_instance_ids: Iterable[int]) -> None:
        """Drop claims of this session; those already gone are fine."""
        ours = [i for i in task_instance_ids if self._held.get(i) == self._session.generation]
        await self._each(self._session.submit_delete, [layout.claim(i) for i in ours], NoNode)
        for i in ours:
            self._held.pop(i, None)
            for head in self._heads.values():
                head.unblock(i)

    async def give_back(self, claims: Iterable[Claim]) -> None:
        """Undo ``claims``: each goes from claimed to queued in one step."""
        left = [
            claim
            for claim in claims
            if self._held.get(claim.entry.task_instance_id) == self._session.generation
        ]
        groups = {claim.entry.group for claim in left}
        while left:
            await self._putter.create_buckets([claim.entry for claim in left])
            undone = [
                self._session.multi(
                    [
                        Delete(layout.claim(claim.entry.task_instance_id)),
                        Create(claim.entry.path),
                    ]
                )
                for claim in left
            ]
            results = await asyncio.gather(*undone, return_exceptions=True)
            again = []
            for claim, result in zip(left, results, strict=True):
                if isinstance(result, TransactionFailed) and isinstance(result.cause, NoNode):
                    if result.failed_at == 1:  # its bucket was pruned meanwhile
                        again.append(claim)
                elif isinstance(result, TransactionFailed):
                    await self.release([claim.entry.task_instance_id])  # it is queued already
                elif isinstance(result, BaseException):
                    raise result
                else:
                    self._held.pop(claim.entry.task_instance_id, None)
            left = again
        await self._each(self._ring, list(groups), NoNode)

    async def wait(self, *groups: str, timeout_s: float) -> bool:
        """Return True when one of ``groups`` may have entries, False after ``timeout_s``."""
        heads = [self._head(group) for group in groups]
        if any(head.may_have_entries for head in heads):
            return True
        bells = [asyncio.create_task(head.rung.wait()) for head in heads]
        try:
            done, _ = await asyncio.wait(
                bells, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            return bool(done)
        finally:
            for bell in bells:
                bell.cancel()

    # ------------------------------------------------------------------ status

    async def groups(self) -> list[str]:
        """Return the groups that ever had an entry, sorted."""
        names, _ = await self._session.children(layout.QUEUE)
        return sorted(layout.decode_name(name) for name in names)

    async def depth(self, group: str) -> int:
        """Return how many entries wait. Reads every bucket, some 1000 for a million entries."""
        total = 0
        root = layout.queue(group)
        for outer in await self._names(root):
            path = f"{root}/{outer}"
            inners = await self._names(path)
            stats = await asyncio.gather(
                *(self._session.exists(f"{path}/{inner}") for inner in inners)
            )
            total += sum(stat.children for stat in stats if stat)
        return total

    async def claims(self) -> dict[int, str]:
        """Return every live claim: task instance id -> worker id."""
        names = await self._names(layout.CLAIMS)
        found: dict[int, str] = {}
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            gets = [self._session.get(f"{layout.CLAIMS}/{name}") for name in some]
            nodes = await asyncio.gather(*gets, return_exceptions=True)
            for name, node in zip(some, nodes, strict=True):
                if isinstance(node, Node):
                    found[int(name)] = node.data.decode()
                elif not isinstance(node, NoNode):
                    raise node
        return found

    # ------------------------------------------------------------------ claiming

    async def _claim(self, group: str, count: int, worker_id: str) -> list[Claim]:
        head = self._head(group)
        claims: list[Claim] = []
        async with head.lock:
            races = 0
            while races < RACES and (wanted := min(count - len(claims), BATCH)):
                entries, fresh = await head.first(max(wanted, SPREAD) if races else wanted)
                if not entries:
                    break
                if not races:
                    taken = await self._take_together(head, entries, worker_id)
                    if taken is None:
                        races += fresh  # an old window is no sign of a rival
                else:
                    start = random.randrange(max(1, len(entries) - wanted + 1))
                    some = entries[start : start + wanted]
                    taken = await self._take_apart(head, some, worker_id)
                    races += 1
                claims += taken or []
        return claims

    async def _take_together(
        self, head: Head, entries: list[Entry], worker_id: str
    ) -> list[Claim] | None:
        """Claim all of ``entries`` in one multi. Returns None if somebody else has one of them."""
        operations = [part for entry in entries for part in _take(entry, worker_id)]
        generation = self._session.generation
        try:
            outcomes = await self._session.multi(operations)
        except TransactionFailed as failure:
            if self._is_blocked(head, entries[failure.failed_at // 2], failure):
                return []
            head.expire()
            return None
        except ConnectionLoss:
            return await self._recover(head, entries, worker_id, generation)
        created = [outcome for outcome in outcomes if isinstance(outcome, Created)]
        return self._taken(head, entries, worker_id, [node.czxid for node in created])

    async def _take_apart(self, head: Head, entries: list[Entry], worker_id: str) -> list[Claim]:
        """Claim each of ``entries`` that is still there."""
        generation = self._session.generation
        multis = [self._session.multi(_take(entry, worker_id)) for entry in entries]
        results = await asyncio.gather(*multis, return_exceptions=True)
        claims: list[Claim] = []
        unknown: list[Entry] = []
        for entry, result in zip(entries, results, strict=True):
            if isinstance(result, TransactionFailed):
                self._is_blocked(head, entry, result)
            elif isinstance(result, ConnectionLoss):
                unknown.append(entry)
            elif isinstance(result, BaseException):
                raise result
            elif isinstance(result[1], Created):
                claims += self._taken(head, [entry], worker_id, [result[1].czxid])
        if unknown:
            claims += await self._recover(head, unknown, worker_id, generation)
        if len(claims) * 2 < len(entries):
            head.expire()
        return claims

    def _is_blocked(self, head: Head, entry: Entry, failure: TransactionFailed) -> bool:
        """Drop an entry that we did not get; tell whether it is still there."""
        match failure.failed_at % 2, failure.cause:
            case (0, NoNode()):  # somebody else was quicker
                head.drop([entry])
                return False
            case (1, NodeExists()):  # put again while it runs: its turn comes after that claim
                head.block(entry)
                return True
            case _:
                raise failure

    async def _recover(
        self, head: Head, entries: list[Entry], worker_id: str, generation: int
    ) -> list[Claim]:
        """Find out which of ``entries`` we claimed with a multi whose answer was lost."""

        async def read() -> list[Node | None]:
            # First a sync: what the old connection sent is done, or never will be.
            sent: list[asyncio.Future[Any]] = [self._session.sync("/")]
            sent += [self._session.get(layout.claim(e.task_instance_id)) for e in entries]
            answers = await asyncio.gather(*sent, return_exceptions=True)
            if self._session.generation != generation:
                raise SessionLost(f"a claim in group {head.group}")
            for answer in answers:
                if isinstance(answer, BaseException) and not isinstance(answer, NoNode):
                    raise answer
            return [answer if isinstance(answer, Node) else None for answer in answers[1:]]

        head.expire()
        nodes = await self._session.retry(read)
        claims: list[Claim] = []
        for entry, node in zip(entries, nodes, strict=True):
            if (
                node is not None
                and node.stat.session_id == self._session.session_id
                and node.data == worker_id.encode()
                and self._held.get(entry.task_instance_id) != generation  # of an earlier claim
            ):
                claims += self._taken(head, [entry], worker_id, [node.stat.czxid])
        return claims

    def _taken(
        self, head: Head, entries: list[Entry], worker_id: str, epochs: list[int]
    ) -> list[Claim]:
        head.drop(entries)
        for entry in entries:
            self._held[entry.task_instance_id] = self._session.generation
        return [
            Claim(entry, worker_id, epoch) for entry, epoch in zip(entries, epochs, strict=True)
        ]

    async def _give_back_result(self, work: "asyncio.Task[list[Claim]]") -> None:
        try:
            claims = await work
            await self._session.retry(lambda: self.give_back(claims))
        except SessionLost as error:
            log.info("cancelled claim lost with its session", error=str(error))

    # ------------------------------------------------------------------ helpers

    async def _ring(self, group: str) -> None:
        await self._session.set(layout.queue(group), b"")

    def _head(self, group: str) -> Head:
        if group not in self._heads:
            self._heads[group] = Head(self._session, group)
        return self._heads[group]

    async def _names(self, path: str) -> list[str]:
        try:
            return (await self._session.children(path)).names
        except NoNode:
            return []

    async def _each(
        self,
        call: Callable[[str], Awaitable[object]],
        arguments: Sequence[str],
        fine: type[CoordinationError] | tuple[type[CoordinationError], ...],
    ) -> None:
        """Send ``call`` for each argument, many at once; raise the first error not ``fine``."""
        for start in range(0, len(arguments), AT_ONCE):
            sent = [call(argument) for argument in arguments[start : start + AT_ONCE]]
            for error in await asyncio.gather(*sent, return_exceptions=True):
                if isinstance(error, BaseException) and not isinstance(error, fine):
                    raise error


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _take(entry: Entry, worker_id: str) -> list[Operation]:
    claim = layout.claim(entry.task_instance_id)
    # In this order: who loses a race fails at the first, a task that still runs at the second.
    return [Delete(entry.path), Create(claim, worker_id.encode(), ephemeral=True)]
