"""A message is stored once however often it is put, and nothing of it is kept for ever."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from shoal.coordination import ZkSession
from shoal.coordination.errors import ConnectionLoss, Mismatch
from shoal.coordination.messages import MessageTooLarge, Producer, open_topic, waiting
from shoal.coordination.session.nodes import Operation
from tests.integration.coordination.conftest import connect, eventually, put_request
from tests.integration.coordination.messages.messaging import PARTITIONS, consumer, put, receive
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S


@pytest.fixture
async def producer(session: ZkSession) -> AsyncIterator[Producer]:
    async with Producer(session, "t", partitions=PARTITIONS) as producer:
        yield producer


async def nodes_below(session: ZkSession, path: str) -> list[str]:
    names = (await session.children(path)).names
    below = [await nodes_below(session, f"{path}/{name}") for name in names]
    return [f"{path}/{name}" for name in names] + [each for some in below for each in some]


async def test_a_repeated_put_adds_nothing_even_after_the_message_is_gone(
    session: ZkSession, producer: Producer
) -> None:
    await put(producer, "a-1")
    await put(producer, "a-1")
    async with Producer(session, "t") as another_process:
        await put(another_process, "a-1")
    assert await waiting(session, "t") == 1
    async with consumer(session) as receiver:
        (delivery,) = await receive(receiver, 1)
        await delivery.ack()
        await put(producer, "a-1", "a-2")
        (delivery,) = await receive(receiver, 1)
        assert delivery.id == "a-2"


async def test_put_whose_answer_was_lost_stores_the_message_once(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    async with Producer(proxied, "t", partitions=1) as producer:
        await put(producer, "a-1")  # now all the buckets that "a-1" needed are there
        zk_proxy.swallow_from = put_request()
        second = asyncio.create_task(put(producer, "a-2"))
        third = asyncio.create_task(put(producer, "a-3"))
        await eventually(lambda: zk_proxy.swallow_replies)
        zk_proxy.drop()
        zk_proxy.heal()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(second, third)
    assert await waiting(session, "t") == 3
    async with consumer(session) as receiver:
        for expected in ("a-1", "a-2", "a-3"):
            (delivery,) = await receive(receiver, 1)
            assert delivery.id == expected
            await delivery.ack()


async def test_producers_at_once_lose_nothing_and_number_without_gaps(
    session: ZkSession, zk_chroot: str
) -> None:
    async with (
        connect(zk_chroot) as other,
        Producer(session, "t", partitions=1) as one,
        Producer(other, "t") as two,
    ):
        names = [f"k-{number}" for number in range(40)]
        # Both put all of them: each is to be there once.
        await asyncio.gather(*(put(each, name) for name in names for each in (one, two)))
    assert await waiting(session, "t") == 40
    names_there = (await session.children("/messages/t/000/waiting/000000000")).names
    assert sorted(map(int, names_there)) == list(range(40))


TAIL, IDS = "/messages/t/000/tail", "/messages/t/000/ids"


async def generation(session: ZkSession) -> tuple[int, float]:
    """Return the number of the present generation of ids, and when it began."""
    _, number, begun_s = json.loads((await session.get(TAIL)).data)
    return number, begun_s


async def age(session: ZkSession, begun_s: float = 0.0) -> None:
    """Let the present generation of ids begin at ``begun_s``."""
    following, number, _ = json.loads((await session.get(TAIL)).data)
    await session.set(TAIL, json.dumps([following, number, begun_s]).encode())


async def test_ids_are_forgotten_after_two_generations(session: ZkSession) -> None:
    async with Producer(session, "t", partitions=1, id_window_s=0.001) as producer:
        await put(producer, "b-1")
        assert (await generation(session))[0] == 1
        for number in (2, 3):
            await age(session)
            await put(producer, f"c-{number}")
            assert (await generation(session))[0] == number
        await eventually(lambda: not producer._forgetting)
        assert sorted((await session.children(IDS)).names) == ["000002", "000003"]
        kept = [path for path in await nodes_below(session, IDS) if path.count("/") == 7]
        assert len(kept) == 2  # "c-2" and "c-3"


async def test_id_may_be_put_again_after_its_window_though_no_other_message_was_put(
    session: ZkSession,
) -> None:
    async with Producer(session, "t", partitions=1, id_window_s=0.05) as producer:
        await put(producer, "a-1")
        async with asyncio.timeout(DEADLINE_S):
            while await waiting(session, "t") < 3:
                await put(producer, "a-1")
        (path,) = [path for path in await nodes_below(session, IDS) if path.count("/") == 7]
        assert path.startswith(f"{IDS}/000001")


async def test_put_recognises_its_own_message_however_late_the_answer_comes(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Producer(session, "t", partitions=1, id_window_s=1e-9) as producer:
        await put(producer, "a-1")
        multi = session.multi

        async def lose_the_answer(operations: Sequence[Operation]) -> Any:
            await multi(operations)
            monkeypatch.undo()
            raise ConnectionLoss("the put")

        monkeypatch.setattr(session, "multi", lose_the_answer)
        await put(producer, "a-2")
        assert await waiting(session, "t") == 2


@pytest.mark.parametrize("ahead_s", [400.0, 86_400.0, -86_400.0, 1e11])
async def test_wall_clock_of_one_producer_decides_nothing_for_the_others(
    session: ZkSession, zk_chroot: str, ahead_s: float
) -> None:
    options: dict[str, Any] = {"partitions": 1, "clock": lambda: time.time() + ahead_s}
    async with (
        connect(zk_chroot) as other,
        Producer(session, "t", **options) as wrong,
        Producer(other, "t") as right,
    ):
        for number in range(3):
            await put(wrong, f"a-{number}", "a-again")
            await put(right, f"b-{number}", "a-again")
        assert await waiting(session, "t") == 7
        assert (await generation(session))[0] == 1
        # As an earlier version may have left it, which wrote its own clock's time.
        await age(session, time.time() + abs(ahead_s))
        await put(right, "b-3", "a-again")
        stamp_s = (await session.get(TAIL)).stat.mtime_ms / 1000
        assert (await generation(session))[1] <= stamp_s
        assert await waiting(session, "t") == 8


async def test_producers_forget_ids_at_the_same_time(session: ZkSession, zk_chroot: str) -> None:
    async with connect(zk_chroot) as other:
        producers = [Producer(line, "t", partitions=1) for line in (session, other)]
        async with producers[0], producers[1]:
            for number in range(6):
                await asyncio.gather(
                    *(put(each, *(f"k-{number}-{n}" for n in range(5))) for each in producers)
                )
                await age(session)
            # A producer that was about to put may have made an old generation anew; it goes with
            # the next.
            await put(producers[0], "k-last")
            await eventually(lambda: not any(each._forgetting for each in producers))
            await age(session)
            await put(producers[0], "k-end")
            await eventually(lambda: not producers[0]._forgetting)
        assert len((await session.children(IDS)).names) == 2
        assert await waiting(session, "t") == 32


async def test_too_large_a_message_is_refused_with_what_to_do(producer: Producer) -> None:
    with pytest.raises(MessageTooLarge, match=r"message 'big' .* 65536 are allowed; store the"):
        await producer.put("a", b"x" * 65536, message_id="big")
    await producer.put("a", b"x" * 65000, message_id="fits")
    with pytest.raises(ValueError, match="max_bytes"):
        Producer(producer._session, "t", max_bytes=10**6)


async def test_partitions_are_fixed_by_the_first_and_foreign_nodes_are_told(
    session: ZkSession,
) -> None:
    assert await open_topic(session, "t", 7) == 7
    assert await open_topic(session, "t", 128) == 7
    await session.create("/messages/foreign", b"hello")
    with pytest.raises(Mismatch, match="/messages/foreign is not a topic's"):
        await open_topic(session, "foreign")
    with pytest.raises(ValueError, match="1 to 1000"):
        await open_topic(session, "u", 0)
