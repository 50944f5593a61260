"""Receive messages, at least once each, in order for each key."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

import structlog

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import CoordinationError, NotOwner
from shoal.coordination.group import GroupSettings
from shoal.coordination.messages.backlog import Backlog
from shoal.coordination.messages.owned import OwnedPartition
from shoal.coordination.messages.paths import PartitionPaths
from shoal.coordination.messages.topic import DEFAULT_PARTITIONS, open_topic
from shoal.coordination.recipes.fair_share import FairShare
from shoal.coordination.recipes.ownership import OwnerNodes, OwnershipListener
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

POLL_S = 5.0  # between checks, in a wait for a message, that the group has not ended


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """How a consumer treats messages; the same for all consumers of a topic."""

    # A message that is not acknowledged in this time is delivered again. A consumer that gives a
    # partition up waits as long for the last acknowledgements, so it has to be shorter than the
    # group's rebalance timeout.
    ack_wait_s: float = 5.0
    # After this many deliveries in vain it becomes a dead letter.
    max_deliveries: int = 5
    # How many one consumer may have, delivered and not acknowledged.
    max_in_flight: int = 16

    def __post_init__(self) -> None:
        for name in ("ack_wait_s", "max_deliveries", "max_in_flight"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class MessageDelivery:
    """A message that was delivered to us. ``attempt`` counts its deliveries, from 1."""

    id: str
    key: str
    payload: bytes
    put_at_s: float  # seconds since 1970 on the producer's clock
    partition: int
    number: int  # grows from message to message of the partition
    attempt: int
    _owned: OwnedPartition = field(repr=False, compare=False)

    async def ack(self) -> None:
        """Remove the message: it is done with, even as a dead letter. May be called twice.

        Raises NotOwner if the partition has another owner: that one has the message or will get
        it, and this acknowledgement counts for nothing. Raises ConnectionLoss if there was no
        answer for a session timeout; the message may be delivered again.
        """
        await self._owned.acknowledge(self.number)


class Consumer:
    """Share the messages of ``topic`` with all its other consumers, for the life of the block.

    ::

        async with Consumer(session, "mail", "me") as consumer:
            async for delivery in consumer:
                send(delivery.payload)
                await delivery.ack()

    Each partition has one consumer at a time, which every write is checked against. A message
    stays until it is acknowledged: without that it is delivered again after ``ack_wait_s``, or to
    the next owner as soon as there is one, if the consumer leaves or dies. Messages of one key
    are delivered one after the other, each when the one before is dealt with. Several tasks may
    iterate at once; ``stop`` ends that. ``partitions`` matters only to the first user of the
    topic.
    """

    def __init__(
        self,
        session: ZkSession,
        topic: str,
        consumer_id: str,
        *,
        settings: ConsumerSettings | None = None,
        group_settings: GroupSettings | None = None,
        partitions: int = DEFAULT_PARTITIONS,
    ) -> None:
        self._session, self.topic, self.consumer_id = session, topic, consumer_id
        self._settings = settings or ConsumerSettings()
        self._group_settings, self._partitions = group_settings, partitions
        self._owned: dict[int, OwnedPartition] = {}
        self._share: FairShare
        self._news = asyncio.Event()
        self._taking = 0  # deliveries that are being made
        self._turn = 0  # partitions take turns
        self._stopped = self._leaving = False

    async def __aenter__(self) -> Self:
        """Raises Mismatch, and what ``Group`` raises at entering."""
        count = await open_topic(self._session, self.topic, self._partitions)
        self._share = FairShare(
            self._session,
            f"messages: {self.topic}",
            {self.topic: count},
            OwnerNodes(lambda partition: self._paths(partition).owner, self.consumer_id),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=self._group_settings,
        )
        await self._share.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave; what is not acknowledged goes to the next owner at once."""
        self._leaving = True
        await self._share.__aexit__()

    @property
    def partitions(self) -> frozenset[int]:
        """What we own at this moment."""
        return frozenset(self._owned)

    def stop(self) -> None:
        """Let every iteration end, after the message at hand. For a signal handler."""
        self._stopped = True
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MessageDelivery:
        """Wait for a message. Raises what has ended our part in the group, if anything has."""
        while True:
            if self._stopped:
                raise StopAsyncIteration
            self._news.clear()
            self._share.group.poll()
            if delivery := await self._take():
                self._news.set()  # other waits may have missed it: let them try, too
                return delivery
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._news.wait()

    async def _take(self) -> MessageDelivery | None:
        """Return a message from the next partition that has one, if we may have one more."""
        self._turn += 1
        numbers = sorted(self._owned)
        start = self._turn % (len(numbers) or 1)
        for number in numbers[start:] + numbers[:start]:
            if self._in_flight + self._taking >= self._settings.max_in_flight:
                return None
            if owned := self._owned.get(number):
                self._taking += 1
                try:
                    if delivery := await self._deliver(number, owned):
                        return delivery
                finally:
                    self._taking -= 1
        return None

    async def _deliver(self, partition: int, owned: OwnedPartition) -> MessageDelivery | None:
        try:
            taken = await owned.deliver()
        except CoordinationError as error:
            if not (error.retriable or isinstance(error, NotOwner)):
                raise
            log.info("not delivered", topic=self.topic, partition=partition, error=str(error))
            await asyncio.sleep(0)  # the event of a lost connection is one turn of the loop away
            await self._session.connected()
            return None
        if taken is None:
            return None
        number, message, attempt = taken
        return MessageDelivery(
            id=message.id,
            key=message.key,
            payload=message.payload,
            put_at_s=message.put_at_s,
            partition=partition,
            number=number,
            attempt=attempt,
            _owned=owned,
        )

    @property
    def _in_flight(self) -> int:
        return sum(owned.backlog.in_flight for owned in self._owned.values())

    def _paths(self, partition: Partition) -> PartitionPaths:
        return PartitionPaths(self.topic, partition.index)

    # ------------------------------------------------------------------ ownership

    async def _acquired(self, partition: Partition, epoch: int) -> None:
        settings = self._settings
        owned = OwnedPartition(
            self._session,
            self._paths(partition),
            self.consumer_id,
            Backlog(settings.ack_wait_s, settings.max_deliveries),
            self._news.set,
            self._fail,
        )
        await owned.begin(epoch)
        self._owned[partition.index] = owned
        self._news.set()

    def _fail(self, error: CoordinationError) -> None:
        """Leave the group; an iteration that waits for a message raises ``error``."""
        self._share.fail(error)
        self._news.set()

    async def _released(self, partition: Partition) -> None:
        owned = self._owned.pop(partition.index, None)
        if owned is None:
            return  # it failed to begin
        try:
            if not self._leaving:  # a leaver acknowledges nothing more
                await owned.settle()
            await owned.correct_ledger()
        finally:
            await owned.end()

    async def _lost(self, partitions: frozenset[Partition]) -> None:
        for partition in partitions:
            if owned := self._owned.pop(partition.index, None):
                await owned.end()
        self._news.set()
