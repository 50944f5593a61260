"""Who owns which partition, as the reading side sees it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.coordination import ZkSession, prepare
from shoal.coordination.cluster import layout, owners
from shoal.coordination.cluster.owners import (
    Disagreement,
    OwnerInfo,
    Owners,
    disagreements,
    in_words,
)
from shoal.core.runs.records import PartitionRow
from tests.integration.coordination.conftest import connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.secure import access

PARTITIONS = 8


class CountingSession(ZkSession):
    """Counts what is read."""

    reads = 0

    def get(self, path: str, *args: Any, **options: Any) -> Any:
        self.reads += 1
        return super().get(path, *args, **options)

    def exists(self, path: str, *args: Any, **options: Any) -> Any:
        self.reads += 1
        return super().exists(path, *args, **options)


@pytest.fixture
async def reader(zk_chroot: str) -> AsyncIterator[CountingSession]:
    async with CountingSession(zk_chroot, session_timeout_s=30.0, **access(zk_chroot)) as session:
        await prepare(session, PARTITIONS)
        session.reads = 0
        yield session


async def own(session: ZkSession, number: int, owner: str) -> None:
    data = f'{{"owner_id": "{owner}", "address": "h:1"}}'.encode()
    await session.create(layout.owner(number), data, ephemeral=True)


async def names(found: Owners) -> dict[int, str]:
    return {n: one.owner_id for n, one in (await found.all_owners(PARTITIONS)).items()}


async def test_only_changes_are_read(
    reader: CountingSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Owners(reader)
    async with connect(zk_chroot) as session:
        for number in range(6):
            await own(session, number, "m1")
        assert await names(found) == dict.fromkeys(range(6), "m1")
        reader.reads = 0
        for _ in range(50):
            await names(found)
        assert reader.reads == 0
        await session.delete(layout.owner(0))  # gone
        await session.delete(layout.owner(1))  # another's
        await own(session, 1, "m2")
        await own(session, 6, "m3")  # came
        await session.set(layout.owner(2), b"junk")
        expected = {1: "m2", 3: "m1", 4: "m1", 5: "m1", 6: "m3"}
        await become(found, expected)

        reader.reads = 1
        async with asyncio.timeout(DEADLINE_S):
            while reader.reads:  # the watch of a node that was made anew may fire twice
                reader.reads = 0
                assert await names(found) == expected
                await asyncio.sleep(0)
        monkeypatch.setattr(owners, "REREAD_ALL_S", 0.0)
        found._reread_s = 0.0
        assert await names(found) == expected
        assert reader.reads >= PARTITIONS, "what watches have missed is found"


async def test_absent_owner_that_was_asked_for_alone_is_seen_when_it_comes(
    reader: CountingSession, zk_chroot: str
) -> None:
    found = Owners(reader)
    assert await found.owner_of(3) is None
    assert await names(found) == {}
    async with connect(zk_chroot) as session:
        await own(session, 3, "m1")
        await become(found, {3: "m1"})


async def test_all_are_read_again_after_a_lost_connection(
    zk_proxied: str, zk_proxy: TcpProxy, zk_chroot: str
) -> None:
    async with (
        connect(zk_proxied, session_timeout_s=30.0) as behind,
        connect(zk_chroot) as session,
    ):
        await prepare(session, PARTITIONS)
        found = Owners(behind)
        await own(session, 0, "m1")
        await become(found, {0: "m1"})
        zk_proxy.cut()
        await session.delete(layout.owner(0))
        await own(session, 5, "m2")
        zk_proxy.heal()
        await become(found, {5: "m2"})


async def become(found: Owners, expected: dict[int, str]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                if await names(found) == expected:
                    return
            except Exception:  # noqa: BLE001 - the connection is away
                pass
            await asyncio.sleep(0.02)


def test_owners_differ_by_name_or_by_an_epoch_that_the_database_does_not_have_yet() -> None:
    live = {
        0: OwnerInfo("m1", "h:1", 10),
        1: OwnerInfo("m1", "h:1", 11),
        2: OwnerInfo("m1", "h:1", 12),
        3: OwnerInfo("m1", "h:1", 13),
    }
    stored = [
        PartitionRow(0, 10, "m1"),
        PartitionRow(1, 500, "m1"),  # the epoch of a lost tree was superseded
        PartitionRow(2, 500, "m2"),
        PartitionRow(3, 9, "m1"),
        PartitionRow(4, 9, "m1"),  # has no owner: that is another thing
    ]
    assert disagreements(live, stored) == {
        2: Disagreement(2, "m1", 12, "m2", 500),
        3: Disagreement(3, "m1", 13, "m1", 9),
    }


def test_many_owners_are_named_in_short() -> None:
    found = [Disagreement(n, f"m{n % 3}", n, None, 100) for n in range(20)]
    assert in_words(found, 2) == (
        "0, 1, …; owners in ZooKeeper: m0, m1, … (epoch 0 to 19); in the database: no owner "
        "(epoch 100)"
    )
