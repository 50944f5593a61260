"""A topic "t" of a few partitions: what the tests of messages put into it and take out again."""

import asyncio
from typing import Any

from shoal.coordination import GroupSettings, ZkSession
from shoal.coordination.messages import Consumer, ConsumerSettings, MessageDelivery, Producer
from tests.support.waiting import DEADLINE_S

GROUP = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)
PATIENT = ConsumerSettings(ack_wait_s=300.0)  # nothing comes again by itself
PARTITIONS = 4


def consumer(
    session: ZkSession, name: str = "c", settings: ConsumerSettings = PATIENT, **options: Any
) -> Consumer:
    return Consumer(
        session,
        "t",
        name,
        settings=settings,
        group_settings=GROUP,
        partitions=PARTITIONS,
        **options,
    )


async def put(producer: Producer, *names: str, key: str | None = None) -> None:
    """Put messages whose names are "key-number"; the name is id and payload too."""
    for name in names:
        await producer.put(key or name.split("-")[0], name.encode(), message_id=name)


async def receive(consumer: Consumer, count: int) -> list[MessageDelivery]:
    """Return the next ``count`` deliveries."""
    async with asyncio.timeout(DEADLINE_S):
        return [await anext(consumer) for _ in range(count)]


async def receive_other(consumer: Consumer, than: str) -> MessageDelivery:
    """Return the next delivery of another message.

    ``than`` is acknowledged. It may have been delivered once more before, if this process stood
    still for as long as the ack wait.
    """
    while True:
        (delivery,) = await receive(consumer, 1)
        if delivery.id != than:
            return delivery
