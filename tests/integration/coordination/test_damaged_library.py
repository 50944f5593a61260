"""Damaged znodes of elections and messages are repaired under those who work with them."""

import asyncio

import pytest

from shoal.coordination import Election, ElectionListener, ZkSession, leader_of, raise_fence, znodes
from shoal.coordination.messages import Consumer, Producer, dead_letters
from shoal.coordination.messages.paths import PartitionPaths
from tests.integration.coordination.group.group_bench import QUICK
from tests.support.waiting import DEADLINE_S, eventually

JUNK = (b"", b"\xff\x00 not json", b"[[1]]", b"9" * 5000, b"{" * 50_000, b'["a", 1, 0]', b"-7")


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_fence_that_is_damaged_shuts_nobody_out_for_ever(
    session: ZkSession, junk: bytes
) -> None:
    old = await raise_fence(session, "/fence", 5)
    await session.set("/fence", junk)
    new = await raise_fence(session, "/fence", 6)
    assert (await session.get("/fence")).data == b"6"
    assert new.version > old.version


async def test_leader_whose_node_is_overwritten_is_found_again(session: ZkSession) -> None:
    path = f"{znodes.election('e')}/leader"
    async with Election(session, "e", "me", ElectionListener()) as election:
        await eventually(lambda: election.epoch)
        for junk in JUNK:
            await session.set(path, junk)
            async with asyncio.timeout(DEADLINE_S):
                while (leader := await leader_of(session, "e")) is None:
                    await asyncio.sleep(0.01)
            assert (leader.candidate_id, leader.epoch) == ("me", election.epoch)


async def test_messages_go_on_when_their_tail_is_damaged(session: ZkSession) -> None:
    paths = PartitionPaths("mail", 0)
    async with Producer(session, "mail", partitions=1) as producer:
        await producer.put("k", b"0", message_id="0")
        async with Consumer(session, "mail", "me", group_settings=QUICK) as consumer:
            for number, junk in enumerate(JUNK, start=1):
                async with asyncio.timeout(DEADLINE_S):
                    delivery = await anext(consumer)
                    assert delivery.payload == b"%d" % (number - 1)
                    await delivery.ack()
                await session.set(paths.tail, junk)
                await producer.put("k", b"%d" % number, message_id=str(number))
                await producer.put("k", b"again", message_id=str(number))  # still the same one


async def test_new_owner_finds_what_waits_behind_a_damaged_tail(session: ZkSession) -> None:
    paths = PartitionPaths("mail", 0)
    async with Producer(session, "mail", partitions=1) as producer:
        for number in range(3):
            await producer.put("k", b"%d" % number, message_id=str(number))
    await session.create(paths.ledger, b"\xff[")
    await session.set(paths.tail, b"\xff\x00")
    await session.create(f"{paths.waiting}/junk")
    await session.create(f"{paths.waiting_bucket(0)}/junk")
    async with Consumer(session, "mail", "me", group_settings=QUICK) as consumer:
        for number in range(3):
            async with asyncio.timeout(DEADLINE_S):
                delivery = await anext(consumer)
                assert delivery.payload == b"%d" % number
                await delivery.ack()


async def test_names_of_other_programs_among_messages_deliver_nothing_twice(
    session: ZkSession,
) -> None:
    paths = PartitionPaths("mail", 0)
    names = ("0", "00", "9" * 12, "9" * 5000, "junk", "\u0661", "000000000001")
    async with Producer(session, "mail", partitions=1) as producer:
        for number in range(3):
            await producer.put("k", b"%d" % number, message_id=str(number))
        for folder in (paths.waiting, paths.waiting_bucket(7), f"{paths.dead}/{0:09d}", paths.ids):
            await session.ensure(folder)
            for name in names:
                await session.create(f"{folder}/{name}")
        assert [each.number for each in await dead_letters(session, "mail")] == [1, 10**12 - 1]
        async with Consumer(session, "mail", "me", group_settings=QUICK) as consumer:
            for number in range(3):
                async with asyncio.timeout(DEADLINE_S):
                    delivery = await anext(consumer)
                    assert delivery.payload == b"%d" % number
                    await delivery.ack()
            await session.set(paths.tail, b"junk")
            await producer.put("k", b"last", message_id="last")
            async with asyncio.timeout(DEADLINE_S):
                assert (await anext(consumer)).payload == b"last"


async def test_tail_that_is_deleted_is_made_again_behind_what_waits(session: ZkSession) -> None:
    paths = PartitionPaths("mail", 0)
    for number in range(3):
        async with Producer(session, "mail", partitions=1) as producer:
            await producer.put("k", b"%d" % number, message_id=str(number))
        await session.delete(paths.tail)
    async with Consumer(session, "mail", "me", group_settings=QUICK) as consumer:
        await eventually(lambda: consumer.partitions)
        async with Producer(session, "mail", partitions=1) as producer:
            await producer.put("k", b"3", message_id="3")
        for number in range(4):
            async with asyncio.timeout(DEADLINE_S):
                delivery = await anext(consumer)
                assert delivery.payload == b"%d" % number
                await delivery.ack()
