"""Messages are delivered at least once, in order for each key, and go only when acknowledged."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import NotOwner, ZkSession, partition_of
from shoal.coordination.errors import SessionLost
from shoal.coordination.messages import (
    Consumer,
    ConsumerSettings,
    Producer,
    dead_letters,
    waiting,
)
from shoal.coordination.messages.paths import PartitionPaths
from shoal.coordination.session.nodes import Operation
from tests.integration.coordination.conftest import connect, eventually
from tests.integration.coordination.messages.messaging import (
    PARTITIONS,
    consumer,
    put,
    receive,
    receive_other,
)
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.server import expire_session

HASTY = ConsumerSettings(ack_wait_s=0.3, max_deliveries=3)


@pytest.fixture
async def producer(session: ZkSession) -> AsyncIterator[Producer]:
    async with Producer(session, "t", partitions=PARTITIONS) as producer:
        yield producer


# ---------------------------------------------------------------------- one consumer


async def test_messages_arrive_and_go_when_they_are_acknowledged(
    session: ZkSession, producer: Producer
) -> None:
    names = [f"k{number}-0" for number in range(10)]
    await put(producer, *names)
    assert await waiting(session, "t") == 10
    async with consumer(session) as receiver:
        received = await receive(receiver, 10)
        assert sorted(each.id for each in received) == sorted(names)
        assert all(each.payload.decode() == each.id for each in received)
        assert all(each.partition == partition_of(each.key, PARTITIONS) for each in received)
        assert {each.attempt for each in received} == {1}
        assert await waiting(session, "t") == 10
        for each in received:
            await each.ack()
            await each.ack()  # once more does no harm
        assert await waiting(session, "t") == 0
        await put(producer, "late-1")
        (late,) = await receive(receiver, 1)
        assert late.id == "late-1"


async def test_messages_of_a_key_are_delivered_one_after_the_other(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "a-1", "a-2", "a-3", "b-1", "b-2")
    seen: defaultdict[str, list[str]] = defaultdict(list)
    async with consumer(session) as receiver:
        first = await receive(receiver, 2)
        assert {each.id for each in first} == {"a-1", "b-1"}
        for each in first:
            seen[each.key].append(each.id)
            await each.ack()
        for _ in range(3):
            (each,) = await receive(receiver, 1)
            seen[each.key].append(each.id)
            await each.ack()
    assert seen == {"a": ["a-1", "a-2", "a-3"], "b": ["b-1", "b-2"]}


async def test_unacknowledged_message_is_delivered_again_before_the_next_of_its_key(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "a-1", "a-2")
    async with consumer(session, settings=ConsumerSettings(ack_wait_s=0.3)) as receiver:
        first, again = await receive(receiver, 2)
        assert (first.id, first.attempt) == ("a-1", 1)
        assert (again.id, again.attempt) == ("a-1", 2)
        await first.ack()  # late, but the message is ours: that will do
        assert (await receive_other(receiver, "a-1")).id == "a-2"


async def test_no_more_are_out_than_may_be(session: ZkSession, producer: Producer) -> None:
    await put(producer, *(f"k{number}-0" for number in range(6)))
    settings = ConsumerSettings(ack_wait_s=300, max_in_flight=2)
    async with consumer(session, settings=settings) as receiver:
        first, second = await receive(receiver, 2)
        third = asyncio.create_task(anext(receiver))
        await put(producer, "more-0")
        done, _ = await asyncio.wait([third], timeout=0.5)
        assert not done
        await second.ack()
        async with asyncio.timeout(DEADLINE_S):
            await third
        assert first.id != third.result().id


async def test_several_tasks_may_iterate_and_none_starves(
    session: ZkSession, producer: Producer
) -> None:
    names = [f"k{number % 20}-{number}" for number in range(100)]
    seen: list[str] = []
    enough = asyncio.Event()

    async def work(receiver: Consumer) -> None:
        async for delivery in receiver:
            seen.append(delivery.id)
            await delivery.ack()
            if len(seen) == len(names):
                enough.set()

    async with consumer(session) as receiver:
        tasks = [asyncio.create_task(work(receiver)) for _ in range(5)]
        await put(producer, *names)
        async with asyncio.timeout(DEADLINE_S):
            await enough.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(seen) == sorted(names)
    assert await waiting(session, "t") == 0


@pytest.mark.parametrize("what", ["tail", "waiting"])
async def test_message_that_comes_while_a_partition_is_taken_over_is_not_overlooked(
    session: ZkSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with connect(zk_chroot) as other, Producer(other, "t", partitions=1) as producer:
        put_already: list[bool] = []

        def putting_after(read: Any) -> Any:
            async def read_then_put(path: str, **options: Any) -> Any:
                try:
                    return await read(path, **options)
                finally:
                    if path == f"/messages/t/000/{what}" and not put_already:
                        put_already.append(True)
                        await put(producer, "a-1")

            return read_then_put

        for call in ("get", "children"):
            monkeypatch.setattr(session, call, putting_after(getattr(session, call)))
        async with consumer(session) as receiver:
            (delivery,) = await receive(receiver, 1)
            assert delivery.id == "a-1"
            assert put_already


async def test_bytes_that_no_producer_wrote_are_delivered_as_they_are(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "a-1")
    place = PartitionPaths("t", partition_of("a", PARTITIONS))
    await session.set(place.message(0), b"\xff\x00 not a message")
    async with consumer(session) as receiver:
        (delivery,) = await receive(receiver, 1)
        assert (delivery.id, delivery.payload) == ("", b"\xff\x00 not a message")
        await delivery.ack()
    assert await waiting(session, "t") == 0


# ---------------------------------------------------------------------- poison


async def test_message_delivered_in_vain_too_often_becomes_a_dead_letter(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "bad-1", "bad-2")
    async with consumer(session, settings=HASTY) as receiver:
        attempts = Counter[str]()
        while not attempts["bad-2"]:
            (delivery,) = await receive(receiver, 1)
            attempts[delivery.id] += 1
            if delivery.id == "bad-2":
                await delivery.ack()
        assert attempts["bad-1"] == HASTY.max_deliveries
        (letter,) = await dead_letters(session, "t")
        assert (letter.message.id, letter.message.payload) == ("bad-1", b"bad-1")
        assert await waiting(session, "t") == 0

        await producer.put_again(letter)
        await producer.put_again(letter)  # somebody else was quicker
        again = await receive_other(receiver, "bad-2")
        assert (again.id, again.attempt) == ("bad-1", 1)
        await again.ack()
        assert await dead_letters(session, "t") == []
        assert await waiting(session, "t") == 0


async def test_message_that_kills_its_consumers_is_counted_across_them(
    session: ZkSession, producer: Producer, zk_chroot: str
) -> None:
    await put(producer, "bad-1", "bad-2")
    settings = ConsumerSettings(ack_wait_s=300, max_deliveries=2)
    for attempt in (1, 2):
        async with connect(zk_chroot) as dying, consumer(dying, settings=settings) as receiver:
            (delivery,) = await receive(receiver, 1)
            assert (delivery.id, delivery.attempt) == ("bad-1", attempt)
    async with consumer(session, settings=settings) as receiver:
        (delivery,) = await receive(receiver, 1)
        assert delivery.id == "bad-2"
        (letter,) = await dead_letters(session, "t")
        assert letter.message.id == "bad-1"


async def test_delivery_that_takes_longer_to_store_than_the_ack_wait_is_not_repeated_or_dead(
    session: ZkSession, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    multi, clock = session.multi, SimpleNamespace(now_s=0.0)
    clock.monotonic = lambda: clock.now_s
    monkeypatch.setattr("shoal.coordination.messages.owned.time", clock)

    async def stand_still(operations: Sequence[Operation]) -> Any:
        if not clock.now_s and any(each.path.endswith("/ledger") for each in operations):
            clock.now_s = 3.0
        return await multi(operations)

    monkeypatch.setattr(session, "multi", stand_still)
    settings = ConsumerSettings(ack_wait_s=1, max_deliveries=1)
    async with consumer(session, settings=settings) as receiver:
        await put(producer, "a-1")
        (slow,) = await receive(receiver, 1)
        place = partition_of("a", PARTITIONS)
        other = next(k for k in "bcdefghij" if partition_of(k, PARTITIONS) == place)
        for number in range(5):  # the partition looks each time for what comes back
            await put(producer, f"b-{number}", key=other)
            (delivery,) = await receive(receiver, 1)
            assert (delivery.id, delivery.attempt) == (f"b-{number}", 1)
            await delivery.ack()
        assert await dead_letters(session, "t") == []
        await slow.ack()
    assert await waiting(session, "t") == 0


async def test_delivery_that_no_consumer_has_seen_does_not_count_for_the_next_owner(
    session: ZkSession, producer: Producer, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ConsumerSettings(ack_wait_s=300, max_deliveries=1)
    await put(producer, "a-1")
    async with connect(zk_chroot) as other:
        multi, stored = other.multi, asyncio.Event()

        async def multi_without_answer(operations: Sequence[Operation]) -> Any:
            outcomes = await multi(operations)
            if any(operation.path.endswith("/ledger") for operation in operations):
                monkeypatch.undo()
                stored.set()
                await asyncio.Event().wait()
            return outcomes

        async with consumer(other, settings=settings) as receiver:
            monkeypatch.setattr(other, "multi", multi_without_answer)
            wait = asyncio.create_task(anext(receiver))
            async with asyncio.timeout(DEADLINE_S):
                await stored.wait()
            wait.cancel()
            await asyncio.gather(wait, return_exceptions=True)
    async with consumer(session, settings=settings) as receiver:
        (delivery,) = await receive(receiver, 1)
        assert (delivery.id, delivery.attempt) == ("a-1", 1)
    assert await dead_letters(session, "t") == []


async def test_late_acknowledgement_removes_a_dead_letter(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "a-1", "a-2")
    settings = ConsumerSettings(ack_wait_s=0.05, max_deliveries=1)
    async with consumer(session, settings=settings) as receiver:
        (late,) = await receive(receiver, 1)
        await receive(receiver, 1)  # the first is a dead letter now, so the next can come
        assert "a-1" in {letter.message.id for letter in await dead_letters(session, "t")}
        await late.ack()
        await late.ack()
        assert "a-1" not in {letter.message.id for letter in await dead_letters(session, "t")}


# ---------------------------------------------------------------------- several consumers


async def test_consumers_share_and_a_leaver_hands_over_at_once(
    session: ZkSession, producer: Producer, zk_chroot: str
) -> None:
    async with consumer(session, "stays") as staying:
        await eventually(lambda: len(staying.partitions) == PARTITIONS)
        async with connect(zk_chroot) as other:
            async with consumer(other, "leaves") as leaving:
                await eventually(lambda: len(leaving.partitions) == PARTITIONS // 2)
                theirs = leaving.partitions
                assert not theirs & staying.partitions
                key = next(k for k in map(str, range(99)) if partition_of(k, PARTITIONS) in theirs)
                await put(producer, f"{key}-1")
                (first,) = await receive(leaving, 1)
            with pytest.raises(NotOwner):
                await first.ack()
            (again,) = await receive(staying, 1)  # long before the ack wait is over
            assert (again.id, again.attempt) == (f"{key}-1", 2)
            await again.ack()
    assert await waiting(session, "t") == 0


async def test_who_gives_a_partition_up_waits_for_what_is_being_worked_on(
    session: ZkSession, producer: Producer, zk_chroot: str
) -> None:
    keys = {partition_of(str(n), PARTITIONS): str(n) for n in range(50)}
    await put(producer, *(f"{key}-1" for key in keys.values()))
    async with consumer(session, "old") as old:
        received = await receive(old, PARTITIONS)
        async with connect(zk_chroot) as other:
            entering = asyncio.create_task(consumer(other, "new").__aenter__())
            await eventually(lambda: len(old.partitions) == PARTITIONS // 2)
            for delivery in received:  # also of those that are about to move
                await delivery.ack()
            async with asyncio.timeout(DEADLINE_S):
                new = await entering
            try:
                await eventually(lambda: len(new.partitions) == PARTITIONS // 2)
                assert await waiting(session, "t") == 0
            finally:
                await new.__aexit__(None, None, None)


async def test_owner_that_lost_its_session_cannot_acknowledge_any_more(
    session: ZkSession, producer: Producer, zk_chroot: str, zookeeper: ZooKeeperServer
) -> None:
    await put(producer, "a-1")
    async with connect(zk_chroot) as other, consumer(other) as receiver:
        (first,) = await receive(receiver, 1)
        await expire_session(other, zookeeper)
        (again,) = await receive(receiver, 1)
        assert (again.id, again.attempt) == ("a-1", 2)
        with pytest.raises(NotOwner):
            await first.ack()
        assert await waiting(session, "t") == 1
        await again.ack()
        assert await waiting(session, "t") == 0


async def test_the_server_itself_refuses_an_old_owner(
    session: ZkSession, producer: Producer, zk_chroot: str
) -> None:
    await put(producer, "a-1")
    async with consumer(session) as receiver:
        (first,) = await receive(receiver, 1)
        fence = PartitionPaths("t", first.partition).fence
        epoch = int((await session.get(fence)).data)
        # As a successor does that this process has not heard of yet.
        await session.set(fence, str(epoch + 1).encode())
        with pytest.raises(NotOwner):
            await first.ack()
        assert await waiting(session, "t") == 1


async def test_cut_off_consumer_is_replaced_and_its_acknowledgement_refused(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy, producer: Producer
) -> None:
    await put(producer, "a-1")
    async with consumer(proxied, "cut off") as first:
        (old,) = await receive(first, 1)
        zk_proxy.freeze()
        async with consumer(session, "next") as second:
            (new,) = await receive(second, 1)
            assert (new.id, new.attempt) == ("a-1", 2)
            zk_proxy.heal()
            with pytest.raises((NotOwner, SessionLost)):
                await old.ack()
            assert await waiting(session, "t") == 1
            await new.ack()


# ---------------------------------------------------------------------- many


async def test_a_long_backlog_is_taken_over_in_order_and_leaves_no_znodes(
    session: ZkSession, zk_chroot: str
) -> None:
    count = 1300  # two buckets, and more than are looked ahead
    async with Producer(session, "t", partitions=1) as producer:
        batches = [range(start, min(start + 100, count)) for start in range(0, count, 100)]
        for batch in batches:
            await asyncio.gather(*(put(producer, f"k{n % 7}-{n}") for n in batch))
    seen: defaultdict[str, list[int]] = defaultdict(list)

    async def consume(receiver: Consumer, wanted: int) -> None:
        for _ in range(wanted):
            (delivery,) = await receive(receiver, 1)
            seen[delivery.key].append(int(delivery.id.split("-")[1]))
            await delivery.ack()

    async with connect(zk_chroot) as other, consumer(other) as receiver:
        await consume(receiver, 600)
    async with consumer(session) as receiver:
        await consume(receiver, 700)
        full = "/messages/t/000/waiting/000000000"
        gone = asyncio.Event()
        if await session.exists(full, watch=lambda _: gone.set()):
            async with asyncio.timeout(DEADLINE_S):
                await gone.wait()
        assert not await session.exists(full)
    assert {key: sorted(numbers) for key, numbers in seen.items()} == seen
    assert sorted(number for numbers in seen.values() for number in numbers) == list(range(count))
    assert await waiting(session, "t") == 0
