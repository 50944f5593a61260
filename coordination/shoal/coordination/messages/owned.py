"""One partition of a topic in the hands of its owner."""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

import structlog

from shoal.coordination import background
from shoal.coordination.errors import (
    CoordinationError,
    NodeExists,
    NoNode,
    NotEmpty,
    NotOwner,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.messages.backlog import Backlog
from shoal.coordination.messages.message import Message, decode
from shoal.coordination.messages.paths import BUCKET, PartitionPaths, parent
from shoal.coordination.messages.tail import numbers_in, read_tail
from shoal.coordination.recipes.fence import raise_fence
from shoal.coordination.session.defaults import REREAD_S, RETRY_S
from shoal.coordination.session.documents import read_json
from shoal.coordination.session.nodes import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    SetData,
    WatchEvent,
)
from shoal.coordination.session.session import ZkSession
from shoal.core.untrusted import read_count

log = structlog.get_logger()

LOOK_AHEAD = 1000  # messages of a partition that are known at a time
AT_ONCE = 100  # messages that are read in one go


class OwnedPartition:
    """Knows the first messages of a partition, hands them out, and removes what is acknowledged.

    Every write carries the fence, so what comes after a takeover is refused with NotOwner. Then
    there is nothing left to do: the message has another owner. ``on_news`` is called when there
    may be something to deliver, ``on_failure`` with an error that no repetition helps.
    """

    def __init__(
        self,
        session: ZkSession,
        paths: PartitionPaths,
        owner_id: str,
        backlog: Backlog,
        on_news: Callable[[], None],
        on_failure: Callable[[CoordinationError], None],
    ) -> None:
        self._session, self._paths, self._owner_id = session, paths, owner_id
        self.backlog, self._on_news, self._on_failure = backlog, on_news, on_failure
        self._fence: Check
        self._counts: dict[int, int] = {}  # deliveries by the owners before us
        self._listed: deque[int] = deque()  # numbers found, but not read yet
        self._buckets: deque[int] = deque()  # those that were there when we began; not listed yet
        self._position = 0  # first number that is in none of these
        self._next = 0  # the tail's, as we know it
        self._unfinished: Counter[int] = Counter()  # bucket -> its messages in the backlog
        self._finished: set[int] = set()  # buckets that may be empty
        self._changes = asyncio.Event()
        self._wakes_at_s = float("-inf")
        self._dealt_with = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._is_settling = self._is_over = False
        self._ledger_is_ahead = False  # it may count a delivery that did not happen
        self._task: asyncio.Task[None] | None = None

    async def begin(self, epoch: int) -> None:
        """Shut the owners before us out, and find out what they left. Raises StaleEpoch."""
        self._fence = await raise_fence(self._session, self._paths.fence, epoch)
        await self._session.retry(self._look_back)
        self._task = background.keep_running(self._run, f"messages of {self._paths.root}")

    async def end(self) -> None:
        """Stop deliveries, and refuse acknowledgements."""
        self._is_over = True
        await background.stop(self._task)

    async def settle(self) -> None:
        """Stop deliveries; return when none is open: acknowledged, or for too long."""
        self._is_settling = True
        async with self._delivering:
            pass  # a delivery that is being stored is granted, or taken back
        while (last_s := self.backlog.last_deadline_s) is not None:
            left_s = last_s - time.monotonic()
            if left_s <= 0:
                return
            self._dealt_with.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._dealt_with.wait()

    async def correct_ledger(self) -> None:
        """Stop deliveries, and take a count back if its delivery has not happened.

        To be called by an owner that gives the partition up, before ``end``: otherwise the next
        owner would count a delivery that no consumer has seen.
        """
        self._is_settling = True
        async with self._delivering:
            if self._ledger_is_ahead and not self._is_over:
                with suppress(CoordinationError):  # then it counts, as after a crash
                    await self._fenced(SetData(self._paths.ledger, self._ledger()))

    # ------------------------------------------------------------------ for the consumer

    async def deliver(self) -> tuple[int, Message, int] | None:
        """Return the next message with its number and how often it was delivered, this included.

        None if there is nothing to deliver now. Raises NotOwner; ConnectionLoss, after which the
        message is delivered to the next caller.
        """
        async with self._delivering:
            if self._is_over or self._is_settling:
                return None
            number = self.backlog.take()
            if number is None:
                return None
            try:
                message = await self._record(number)
            except BaseException:
                self.backlog.untake(number)
                self._on_news()
                raise
            if self._is_over:  # while we waited for the answer: another owner may have it by now
                return None
            if self._is_settling:  # nothing is begun any longer
                self.backlog.untake(number)
                self._ledger_is_ahead = True
                return None
            if message is None:
                self._done(number)
                return None
            # The ack wait runs from here: what the server needed to store it is not the consumer's.
            if not self.backlog.grant(number, time.monotonic()):
                return None  # acknowledged meanwhile, from its delivery before
            deadline_s = self.backlog.next_deadline_s
            if deadline_s is not None and deadline_s < self._wakes_at_s:
                self._changes.set()
            return number, message, self.backlog.deliveries.get(number, 1)

    async def _record(self, number: int) -> Message | None:
        """Store that a message is delivered, and return it; None if it is gone."""
        self._ledger_is_ahead = True  # also if we never learn that it was written
        node, written = await asyncio.gather(
            self._session.get(self._paths.message(number)),
            self._fenced(SetData(self._paths.ledger, self._ledger())),
            return_exceptions=True,
        )
        if isinstance(written, BaseException):
            raise written
        self._ledger_is_ahead = isinstance(node, BaseException)
        if isinstance(node, NoNode):
            return None
        if isinstance(node, BaseException):
            raise node
        return decode(node.data)

    def _ledger(self) -> bytes:
        return json.dumps(self._counts | self.backlog.deliveries).encode()

    async def acknowledge(self, number: int) -> None:
        """Remove a message for good, also if it has become a dead letter.

        Raises NotOwner, ConnectionLoss.
        """
        grave = self._paths.dead_letter(number)

        async def remove() -> None:
            if self._is_over:
                raise NotOwner(self._paths.partition, self._owner_id)
            try:
                await self._fenced(Delete(self._paths.message(number)))
            except NoNode:
                # By an earlier try whose answer was lost, or it came too late and is a dead letter.
                with suppress(NoNode, NotEmpty):
                    await self._fenced(Delete(grave))
                    await self._session.delete(parent(grave))

        await self._session.retry(remove, timeout_s=self._session.timeout_s)
        self._done(number)

    # ------------------------------------------------------------------ the loop

    async def _look_back(self) -> None:
        with suppress(NodeExists):
            await self._session.create(self._paths.ledger, b"{}", makepath=True)
        await self._session.sync(self._paths.root)
        self._counts = counts_of((await self._session.get(self._paths.ledger)).data)
        await self._read_tail()
        self._position = self._next
        # After the tail: whatever has a number below it is in one of these.
        self._buckets = deque(await numbers_in(self._session, self._paths.waiting))

    async def _run(self) -> None:
        while True:
            self._changes.clear()
            pause_s = REREAD_S
            try:
                await self._read_tail()
                await self._load()
                await self._bury()
                # Buckets that are empty and stay so.
                for bucket in filter(self._is_complete, list(self._finished)):
                    with suppress(NoNode, NotEmpty):
                        await self._session.delete(self._paths.waiting_bucket(bucket))
                    self._finished.discard(bucket)
            except CoordinationError as error:
                if error.retriable:
                    await self._session.connected()
                    continue
                if error.is_final:
                    self._on_failure(error)
                    return
                log.warning("partition not read", path=self._paths.root, error=str(error))
                pause_s = RETRY_S
            except Exception:
                log.exception("partition not read", path=self._paths.root)
                pause_s = RETRY_S
            await self._pause(pause_s)
            if self.backlog.expire(time.monotonic()):
                self._on_news()

    async def _pause(self, longest_s: float) -> None:
        """Wait until there is something to read, or something that was out comes back."""
        self._wakes_at_s = time.monotonic() + longest_s
        if (deadline_s := self.backlog.next_deadline_s) is not None:
            self._wakes_at_s = min(self._wakes_at_s, deadline_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wakes_at_s - time.monotonic()):
                await self._changes.wait()

    def _changed(self, _: WatchEvent) -> None:
        self._changes.set()

    async def _read_tail(self) -> None:
        """Learn how far the messages reach; a watch says when that changes."""
        try:
            node = await self._session.get(self._paths.tail, watch=self._changed)
        except NoNode:
            if await self._session.exists(self._paths.tail, watch=self._changed):
                self._changes.set()  # it came in between
            return
        state = await read_tail(self._session, self._paths, node)
        if state is None:
            self._changes.set()  # it has been written anew
        else:
            self._next = max(self._next, state.next)

    async def _load(self) -> None:
        """Read messages until as many are known as are to be, or all."""
        while len(self.backlog) < LOOK_AHEAD and (numbers := await self._following()):
            gets = [self._session.get(self._paths.message(number)) for number in numbers]
            nodes = await asyncio.gather(*gets, return_exceptions=True)
            for number, node in zip(numbers, nodes, strict=True):
                if isinstance(node, Node):
                    count = self._counts.pop(number, 0)
                    self._unfinished[number // BUCKET] += 1
                    self.backlog.add(number, decode(node.data).key, count)
                elif not isinstance(node, NoNode):
                    self._listed.extendleft(reversed([n for n in numbers if n >= number]))
                    raise node
            self._on_news()

    async def _following(self) -> list[int]:
        """Return the next numbers to read, in order; none if all are known."""
        while not self._listed and self._buckets:
            await self._list(self._buckets[0])
            self._buckets.popleft()
        if self._listed:
            return [self._listed.popleft() for _ in range(min(AT_ONCE, len(self._listed)))]
        self._counts.clear()  # all that was delivered before us has been read, or is gone
        numbers = list(range(self._position, min(self._position + AT_ONCE, self._next)))
        self._position += len(numbers)
        return numbers

    async def _list(self, bucket: int) -> None:
        """List what our predecessors left in a bucket."""
        numbers = await numbers_in(self._session, self._paths.waiting_bucket(bucket))
        # What came after we began is found by its number.
        first = [
            number for number in numbers if number < self._position and number // BUCKET == bucket
        ]
        self._listed.extend(first)
        if not first:
            self._finished.add(bucket)

    # ------------------------------------------------------------------ dealing with messages

    async def _bury(self) -> None:
        """Put what was delivered too often among the dead letters."""
        for number in sorted(self.backlog.exhausted):
            path, grave = self._paths.message(number), self._paths.dead_letter(number)
            try:
                data = (await self._session.get(path)).data
            except NoNode:  # by an earlier try whose answer was lost, or acknowledged very late
                self._done(number)
                continue
            await self._session.ensure(parent(grave))
            await self._fenced(Create(grave, data), Delete(path))
            log.error(
                "message not acknowledged after its last delivery: now a dead letter",
                topic=self._paths.topic,
                partition=self._paths.partition,
                number=number,
                message=decode(data).id,
                deliveries=self.backlog.deliveries.get(number),
            )
            self._done(number)

    def _done(self, number: int) -> None:
        self._dealt_with.set()
        if not self.backlog.remove(number):
            return  # it was done before
        bucket = number // BUCKET
        self._unfinished[bucket] -= 1
        if not self._unfinished[bucket]:
            del self._unfinished[bucket]
            self._finished.add(bucket)
            if self._is_complete(bucket):
                self._changes.set()
        there_is_more = self._listed or self._buckets or self._position < self._next
        if there_is_more and len(self.backlog) < LOOK_AHEAD // 2:
            self._changes.set()
        self._on_news()

    def _is_complete(self, bucket: int) -> bool:
        """Whether no further message will fall into it."""
        return bucket < self._next // BUCKET

    async def _fenced(self, *operations: Operation) -> None:
        """Do all in one step, as the owner. Raises NotOwner, or why an operation failed."""
        try:
            await self._session.multi([self._fence, *operations])
        except TransactionFailed as failure:
            if failure.failed_at == 0:
                self._is_over = True
                raise NotOwner(self._paths.partition, self._owner_id) from failure
            raise failure.cause from failure
        except SessionLost as error:
            raise NotOwner(self._paths.partition, self._owner_id) from error


def counts_of(ledger: bytes) -> dict[int, int]:
    """Return the deliveries by message; none where another program has written.

    Then a message may be delivered more often than it should before it is a dead letter.
    """
    try:
        found = read_json(ledger)
    except ValueError:
        return {}
    counts = found.items() if isinstance(found, dict) else ()
    return {
        number: count
        for name, count in counts
        if (number := read_count(name)) is not None and type(count) is int and 0 < count < 10**6
    }
