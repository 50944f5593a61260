"""Partitions whose owner znode stands while the database has another owner for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from structlog.testing import capture_logs

from shoal.coordination import Members, Membership, ZkSession
from shoal.coordination.cluster import layout
from shoal.coordination.errors import BindingRefused
from shoal.core.runs.commands import CommandType
from shoal.master.engine.engine import ClusterFacts, Engine
from shoal.master.main import serve
from shoal.master.membership import partitions
from shoal.master.settings import MasterSettings
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from shoal.sql.errors import BoundElsewhere, Fenced
from shoal.sql.tree_binding import TreeBinding
from tests.integration.master.conftest import DIAMOND, PARTITIONS, Bench
from tests.integration.master.membership.keeper_harness import Master, running, until
from tests.support.clock import utc_now
from tests.support.database.databases import migrated
from tests.support.waiting import DEADLINE_S


@pytest.fixture
async def database(sqlite_url: str) -> AsyncIterator[Database]:
    async with migrated(sqlite_url, 1) as database:
        yield database


@asynccontextmanager
async def giving_up(session: ZkSession, database: Database) -> AsyncIterator[Master]:
    """A master's keeper that hears what fences refuse."""
    async with running(session, database) as master:
        database.on_fenced(master.keeper.fenced)
        work = asyncio.create_task(master.keeper.give_up_fenced())
        try:
            yield master
            assert not work.done(), work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def write(master: Master, epoch: int) -> None:
    """Write something on behalf of partition 0, as a service does."""
    async with master.database.unit_of_work() as uow:
        await uow.fence({0: epoch})
        await uow.commit()


async def test_owner_that_is_fenced_while_its_znode_stands_takes_a_new_epoch(
    zk_chroot: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "FIRST_PAUSE_S", 0.5)
    async with (
        ZkSession(zk_chroot, session_timeout_s=30.0) as session,
        giving_up(session, database) as master,
    ):
        epoch = await master.own()
        before = (await session.get(layout.owner(0))).stat.czxid
        await master.raise_epoch(epoch + 1000)
        with pytest.raises(Fenced):
            await write(master, epoch)
        await until(lambda: 0 not in master.engine.epochs)
        await until_absent(session)  # in the pause others could have it
        renewed = await master.own()
        assert renewed > epoch + 1000
        assert (await session.get(layout.owner(0))).stat.czxid > before
        await write(master, renewed)
        assert master.keeper.given_up.times == 1
        assert master.keeper.given_up.partitions == 1


async def until_absent(session: ZkSession) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await session.exists(layout.owner(0)):
            await asyncio.sleep(0.01)


async def test_idle_owner_finds_out_without_a_write(zk_chroot: str, database: Database) -> None:
    async with (
        ZkSession(zk_chroot, session_timeout_s=30.0) as session,
        giving_up(session, database) as master,
    ):
        epoch = await master.own()
        await master.keeper.compare()
        await asyncio.sleep(0.2)
        assert master.engine.epochs == {0: epoch}, "what agrees stays"
        await master.raise_epoch(epoch + 1000)
        await master.keeper.compare()
        await until(lambda: master.engine.epochs.get(0, 0) > epoch + 1000)


async def test_late_refusals_of_former_epochs_give_nothing_up(
    zk_chroot: str, database: Database
) -> None:
    async with (
        ZkSession(zk_chroot, session_timeout_s=30.0) as session,
        giving_up(session, database) as master,
    ):
        epoch = await master.own()
        master.keeper.fenced({0: epoch - 1, 7: epoch})
        await asyncio.sleep(0.3)
        assert master.engine.epochs == {0: epoch}
        assert master.keeper.given_up.times == 0


async def test_pauses_grow_while_two_take_a_partition_from_each_other(
    zk_chroot: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masters in two trees with one database, as an earlier version would allow."""
    monkeypatch.setattr(partitions, "FIRST_PAUSE_S", 1.0)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with AsyncExitStack() as stack:
        masters: list[Master] = []
        for path in ("/one", "/two"):
            session = await stack.enter_async_context(
                ZkSession(zk_chroot + path, session_timeout_s=30.0)
            )
            own = await stack.enter_async_context(Database(database.address))
            masters.append(await stack.enter_async_context(giving_up(session, own)))
        one, two = masters
        async with asyncio.timeout(DEADLINE_S):
            while min(master.keeper.given_up.times for master in masters) < 3:
                for master in masters:
                    await master.keeper.compare()
                    # At no time both may write: not when the second did, between two of the first.
                    assert not (await _may_write(one) and await _may_write(two)) or (
                        not await _may_write(one)
                    )
                await asyncio.sleep(0.05)
        most, passed_s = max(one.keeper.given_up.times for one in masters), loop.time() - began_s
    # 1, 2, 4 … seconds lie between them.
    assert 2.0 ** (most - 1) - 1 <= passed_s


async def _may_write(master: Master) -> bool:
    epoch = master.engine.epochs.get(0)
    if epoch is None:
        return False
    try:
        await write(master, epoch)
    except Fenced:
        return False
    return True


async def test_pause_is_bounded_and_forgotten(master_keeper: partitions.PartitionKeeper) -> None:
    pauses = [master_keeper._pause_s([3]) for _ in range(30)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(pauses) == partitions.LONGEST_PAUSE_S
    assert master_keeper._pause_s([4]) == 1.0


@pytest.fixture
async def master_keeper(
    zk_chroot: str, database: Database
) -> AsyncIterator[partitions.PartitionKeeper]:
    async with (
        ZkSession(zk_chroot, session_timeout_s=30.0) as session,
        running(session, database) as master,
    ):
        yield master.keeper


# -- whole masters -------------------------------------------------------------------------------


async def epochs_of(bench: Bench) -> dict[int, tuple[int, str | None]]:
    async with bench.database.unit_of_work(read_only=True) as uow:
        return {row.index: (row.epoch, row.owner) for row in await uow.partitions.all()}


async def taken(bench: Bench) -> dict[int, tuple[int, str | None]]:
    """Return the epochs as soon as all partitions are taken."""
    async with asyncio.timeout(DEADLINE_S):
        while len(found := await epochs_of(bench)) < PARTITIONS or any(
            owner is None for _, owner in found.values()
        ):
            await asyncio.sleep(0.02)
    return found


async def test_master_in_another_tree_takes_nothing(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    wrong = with_path(bench.cluster, "/typo")
    async with bench.master():
        before = await taken(bench)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(BindingRefused, match="/typo") as refused:
                await serve(MasterSettings(), wrong)
        assert bench.cluster.zookeeper in str(refused.value)
        assert await epochs_of(bench) == before
        command = await bench.command(CommandType.START, workflow, "k")
        assert command.result_instance_id is not None


async def test_stranger_that_raises_all_epochs_does_not_freeze_the_cluster(bench: Bench) -> None:
    """An earlier version does not know the binding."""
    workflow = await bench.publish(DIAMOND)
    with capture_logs() as logs:
        async with bench.master():
            before = await taken(bench)
            async with bench.database.unit_of_work() as uow:
                every = {number: epoch + 10_000 for number, (epoch, _) in before.items()}
                await uow.partitions.raise_epochs(every, "stranger")
                await uow.commit()
            command = await bench.command(CommandType.START, workflow, "k")
            assert command.result_instance_id is not None
            after = await taken(bench)
            async with asyncio.timeout(DEADLINE_S):
                while any(owner == "stranger" for _, owner in after.values()):
                    await asyncio.sleep(0.05)
                    after = await epochs_of(bench)
            assert all(after[number][0] > every[number] for number in every)
    assert any("giving partitions up" in line["event"] for line in logs)


async def test_master_ends_when_its_database_is_bound_to_another_tree(bench: Bench) -> None:
    async with bench.master() as master:
        await taken(bench)
        store = TreeBinding(bench.database)
        seen = await store.read()
        assert await store.bind("t2", "elsewhere:2181/", seen, even_if_alive=True)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(BoundElsewhere, match="elsewhere:2181/"):
                await asyncio.shield(master)


async def test_partition_is_not_taken_while_the_database_is_bound_elsewhere(bench: Bench) -> None:
    """A master may have been paused between its start and its first takeover."""
    async with bench.database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        await uow.commit()
    store = TreeBinding(bench.database)
    assert await store.bind("t1", "here:2181/", await store.read(), even_if_alive=False)
    engine = Engine(
        bench.database, lambda _: asyncio.sleep(0), utc_now, cluster=ClusterFacts(tree=lambda: "t2")
    )
    with pytest.raises(BoundElsewhere, match="t1"):
        await engine.take({0: 10}, "m")
    assert (await epochs_of(bench))[0] == (0, None)
    assert await store.bind("t2", "here:2181/", await store.read(), even_if_alive=False)
    await engine.take({0: 10}, "m")
    assert (await epochs_of(bench))[0] == (10, "m")


def with_path(cluster: ClusterSettings, path: str) -> ClusterSettings:
    return cluster.model_copy(update={"zookeeper": cluster.zookeeper + path})


async def test_full_master_says_so(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    # A run takes no room if its worker group has no worker.
    worker = Membership(bench.session, layout.WORKERS, "w1", {"group": "default"})
    async with worker, bench.master(max_open_instances=1):
        await bench.start(workflow, "a")
        assert not await is_full(bench)
        second = asyncio.create_task(bench.start(workflow, "b"))
        async with asyncio.timeout(DEADLINE_S):
            while not await is_full(bench):
                await asyncio.sleep(0.05)
        assert not second.done()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def is_full(bench: Bench) -> bool:
    async with Members(bench.session, layout.MASTERS) as members:
        found = await members.refresh()
    return any(one.data.get("full") is True for one in found.values())
