"""Put messages: once for each id, in order for each key."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from shoal.coordination import background
from shoal.coordination.errors import (
    MessageTooLarge,
    NoNode,
    NotEmpty,
    SessionClosed,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.keys import partition_of
from shoal.coordination.messages.message import Message, encode
from shoal.coordination.messages.paths import PartitionPaths, parent
from shoal.coordination.messages.tail import Tail
from shoal.coordination.messages.topic import DEFAULT_PARTITIONS, DeadLetter, open_topic
from shoal.coordination.session.nodes import Delete, Operation
from shoal.coordination.session.session import ZkSession

MAX_BYTES = 64 * 1024  # of a message, unless the producer says otherwise
MOST_BYTES = 512 * 1024  # ZooKeeper takes no packet above 1 MB
ID_WINDOW_S = 300.0  # in which a repeated id adds nothing


class Producer:
    """Put messages into ``topic``; an ``async with`` block. Share one for each session.

    A key's messages go to the partition ``partition_of(key)``. ``partitions`` matters only to
    the first user of the topic. ``max_bytes`` bounds a message: payload, key and id together.
    ``clock`` gives seconds since 1970, for ``put_at_s`` of the messages alone.
    """

    def __init__(
        self,
        session: ZkSession,
        topic: str,
        *,
        partitions: int = DEFAULT_PARTITIONS,
        max_bytes: int = MAX_BYTES,
        id_window_s: float = ID_WINDOW_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < max_bytes <= MOST_BYTES:
            raise ValueError(f"max_bytes must be 1 to {MOST_BYTES}, not {max_bytes}")
        self._session, self.topic = session, topic
        self._partitions, self._max_bytes = partitions, max_bytes
        self._id_window_s, self._clock = id_window_s, clock
        self._tails: dict[int, Tail] = {}
        self._forgetting: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Raises Mismatch."""
        self._partitions = await open_topic(self._session, self.topic, self._partitions)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._forgetting:
            task.cancel()
        await asyncio.gather(*self._forgetting, return_exceptions=True)

    async def put(self, key: str, payload: bytes, *, message_id: str) -> None:
        """Store a message. When this returns, it is stored once, and will be delivered.

        ``message_id`` is the caller's and the same in every try: a put that is repeated, by this
        process or another, within ``id_window_s`` (five minutes) of the one that stored the
        message adds nothing. Time is the server's. Puts of one producer with one key keep the order
        of their calls. Waits for as long as there is no connection; cancel it to give up. Raises
        MessageTooLarge.
        """
        data = encode(Message(message_id, key, payload, self._clock()))
        if len(data) > self._max_bytes:
            raise MessageTooLarge(self.topic, message_id, len(data), self._max_bytes)
        await self._add(partition_of(key, self._partitions), message_id, data)

    async def put_again(self, letter: DeadLetter) -> None:
        """Take a message from the dead letters and put it at the end of its partition.

        If another process has taken it, nothing happens.
        """
        dead = self._tail_paths(letter.partition).dead_letter(letter.number)
        # An id of its own: the message's may be remembered still.
        message_id = f"\0dead letter {letter.number}"
        try:
            await self._add(letter.partition, message_id, encode(letter.message), Delete(dead))
        except TransactionFailed as failure:
            if not isinstance(failure.cause, NoNode):
                raise
        with suppress(NoNode, NotEmpty):
            await self._session.delete(parent(dead))

    async def _add(self, partition: int, message_id: str, data: bytes, *also: Operation) -> None:
        if partition not in self._tails:
            paths = self._tail_paths(partition)
            self._tails[partition] = Tail(self._session, paths, self._id_window_s)
        tail, token = self._tails[partition], secrets.token_bytes(8)
        async with tail.lock:
            while True:
                try:
                    begins = await self._session.retry(
                        lambda: tail.add(message_id, data, token, *also)
                    )
                    break
                except SessionClosed:
                    raise
                except SessionLost:
                    continue  # it may be stored or not; the next session finds out
        if begins:
            task = background.start(tail.forget_ids(), f"ids of topic {self.topic}")
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

    def _tail_paths(self, partition: int) -> PartitionPaths:
        return PartitionPaths(self.topic, partition)
