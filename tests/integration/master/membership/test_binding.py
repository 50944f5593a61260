"""A database and a tree are bound to each other; no other pair starts."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import update

from shoal.coordination import Membership, TreeKeeper, ZkSession, bind_tree
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.binding import BEAT, SILENCE, BoundTree
from shoal.coordination.cluster.layout import Binding
from shoal.coordination.errors import BindingRefused
from shoal.core.runs.records import StoredBinding
from shoal.master.membership.tree_lease import TreeLease
from shoal.sql import Database
from shoal.sql.errors import BoundElsewhere, DatabaseUnavailable
from shoal.sql.schema.tables import cluster
from shoal.sql.tree_binding import TreeBinding
from tests.integration.coordination.conftest import connect
from tests.support.database.databases import migrated_url
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, eventually
from tests.support.zookeeper.server import delete_all

SESSION_S = 2.0
SILENCE_S = SILENCE * SESSION_S
PARTITIONS = 4


@dataclass
class Site:
    """A database, and trees on one server."""

    database: Database
    store: TreeBinding
    zookeeper: str
    stack: AsyncExitStack

    async def session(
        self, path: str = "", *, session_timeout_s: float = SESSION_S, **options: Any
    ) -> ZkSession:
        """Return a session in the tree at ``path`` below the test's chroot."""
        session = connect(self.zookeeper + path, session_timeout_s=session_timeout_s, **options)
        return await self.stack.enter_async_context(session)

    async def bind(self, session: ZkSession, *, rebind: bool = False) -> BoundTree:
        async with asyncio.timeout(DEADLINE_S):
            return await bind_tree(session, PARTITIONS, self.store, rebind=rebind)

    async def set(self, **values: object) -> None:
        """Change the row of the cluster."""
        async with self.database.unit_of_work() as uow:
            await uow.connection.execute(update(cluster).values(**values))
            await uow.commit()

    @asynccontextmanager
    async def masters(self, tree: str) -> AsyncIterator[None]:
        """Let masters be alive in ``tree``."""

        async def beat() -> None:
            while True:
                await self.store.beat(tree)
                await asyncio.sleep(BEAT * SESSION_S / 4)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)


@pytest.fixture(params=["sqlite", "postgresql"])
async def site(request: pytest.FixtureRequest, zk_chroot: str) -> AsyncIterator[Site]:
    async with (
        Database(migrated_url(request, request.param)) as database,
        AsyncExitStack() as stack,
    ):
        yield Site(database, TreeBinding(database), zk_chroot, stack)


async def binding_in(session: ZkSession) -> Binding | None:
    config = await layout.find_config(session)
    return None if config is None else config.binding


async def test_new_cluster_is_bound_to_its_first_tree_and_to_no_other(site: Site) -> None:
    first, other = await site.session("/shoal"), await site.session("/typo")
    bound = await site.bind(first)
    stored = await site.store.read()
    assert bound == BoundTree(PARTITIONS, Binding(str(stored.tree), stored.cluster))
    assert await binding_in(first) == bound.binding
    assert stored.address == first.address
    assert await site.bind(await site.session("/shoal")) == bound
    with pytest.raises(BindingRefused) as refused:
        await site.bind(other)
    for named in (
        other.address,
        "no cluster yet",
        site.database.address,
        stored.cluster,
        bound.binding.tree,
        first.address,
        "--rebind",
    ):
        assert named in str(refused.value)
    assert (await other.children("/")).names == [], "nothing is made where it does not belong"
    assert await site.store.read() == stored


async def test_of_two_trees_that_are_bound_at_once_one_is(site: Site) -> None:
    sessions = [await site.session(f"/{number}") for number in range(3)]
    sessions += [await site.session(f"/{number}") for number in range(3)]
    found = await asyncio.gather(*map(site.bind, sessions), return_exceptions=True)
    bound = [one for one in found if isinstance(one, BoundTree)]
    assert len(bound) == 2
    assert bound[0] == bound[1]
    assert sum(isinstance(one, BindingRefused) for one in found) == 4
    [tree] = {one.tree for each in sessions if (one := await binding_in(each)) is not None}
    assert tree == (await site.store.read()).tree


async def test_tree_of_another_cluster_is_refused_until_it_is_taken_over_knowingly(
    site: Site,
) -> None:
    session = await site.session()
    theirs = await site.bind(session)
    await site.set(uid="another", tree=None)
    with pytest.raises(BindingRefused, match=theirs.binding.cluster) as refused:
        await site.bind(session)
    assert "cluster another" in str(refused.value)
    async with Membership(session, layout.MASTERS, "m1", {}):
        with pytest.raises(BindingRefused, match=r"1 masters .* \(m1\); stop them"):
            await site.bind(session, rebind=True)
    assert await binding_in(session) == theirs.binding
    ours = await site.bind(session, rebind=True)
    assert ours.binding.cluster == "another"
    assert ours.binding.tree != theirs.binding.tree
    assert await binding_in(session) == ours.binding
    assert (await site.store.read()).tree == ours.binding.tree


async def test_wiped_tree_is_bound_anew_when_its_masters_are_gone(
    site: Site, zk_chroot: str
) -> None:
    before = await site.bind(await site.session())
    await asyncio.to_thread(delete_all, zk_chroot)
    began_s = time.monotonic()
    after = await site.bind(await site.session())
    assert time.monotonic() - began_s >= SILENCE_S
    assert after.binding.cluster == before.binding.cluster
    assert after.binding.tree != before.binding.tree


async def test_empty_tree_is_refused_while_masters_work_elsewhere(site: Site) -> None:
    """As on another ensemble, with the same path."""
    session = await site.session()
    await site.set(tree="theirs", tree_address=f"elsewhere:2181{session.path}")
    async with site.masters("theirs"):
        with pytest.raises(BindingRefused, match="masters there are at work"):
            await site.bind(session)
    assert (await site.store.read()).tree == "theirs"
    assert await binding_in(session) is None


async def test_wiped_tree_that_its_members_restore_stays_what_it_was(
    site: Site, zk_chroot: str
) -> None:
    session = await site.session()
    before = await site.bind(session)
    async with (
        site.masters(before.binding.tree),
        TreeKeeper(session, PARTITIONS, before.binding, reread_s=SILENCE_S / 4),
    ):
        await asyncio.to_thread(delete_all, zk_chroot)
        assert await site.bind(await site.session()) == before


async def test_restored_database_follows_the_tree_of_its_path(site: Site) -> None:
    session = await site.session()
    bound = await site.bind(session)
    await site.set(tree="of the backup", tree_address=session.address)
    assert await site.bind(session) == bound
    assert (await site.store.read()).tree == bound.binding.tree


async def test_cluster_is_moved_to_another_path_knowingly(site: Site) -> None:
    before = await site.bind(await site.session("/before"))
    after = await site.session("/after")
    lease = TreeLease(site.store, lambda: before.binding.tree, _nothing, SESSION_S)
    async with asyncio.timeout(DEADLINE_S):
        beating = asyncio.create_task(lease.run())
        beats = (await site.store.read()).beats
        while (await site.store.read()).beats < beats + 2:
            assert not beating.done()
            await asyncio.sleep(0.05)
        bound = await site.bind(after, rebind=True)
        # Masters of the tree before end: they would own what they may not write.
        with pytest.raises(BoundElsewhere, match=bound.binding.tree) as ended:
            await beating
    assert after.address in str(ended.value)
    assert (await site.store.read()).tree == bound.binding.tree
    with pytest.raises(BindingRefused):
        await site.bind(await site.session("/before"))


async def _nothing() -> None:
    pass


async def test_one_of_many_masters_beats(site: Site) -> None:
    """If each of them beat, there would be nearly as many beats as looks."""
    bound = await site.bind(await site.session())
    first = (await site.store.read()).beats
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1

    leases = [TreeLease(site.store, lambda: bound.binding.tree, look, 1.0) for _ in range(5)]
    running = [asyncio.create_task(lease.run()) for lease in leases]
    async with asyncio.timeout(DEADLINE_S):
        while looks < 50:
            await asyncio.sleep(BEAT / 10)
    for one in running:
        one.cancel()
    assert 1 <= (await site.store.read()).beats - first <= 35


async def test_own_work_is_recognised_when_the_answer_was_lost(site: Site) -> None:
    session = await site.session(session_timeout_s=STEADY_SESSION_S)

    class Lossy(TreeBinding):
        async def bind(self, *args: Any, **options: Any) -> bool:
            await super().bind(*args, **options)
            raise DatabaseUnavailable("the connection was lost during commit")

    async with asyncio.timeout(SILENCE * session.timeout_s):  # it waits for no silence
        bound = await bind_tree(session, PARTITIONS, Lossy(site.database))
    assert await binding_in(session) == bound.binding


async def test_process_that_died_between_both_writes_is_followed(site: Site) -> None:
    class Dying(TreeBinding):
        async def bind(self, *args: Any, **options: Any) -> bool:
            await super().bind(*args, **options)
            raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await bind_tree(await site.session(), PARTITIONS, Dying(site.database))
    reserved = (await site.store.read()).tree
    bound = await site.bind(await site.session())
    assert bound.binding.tree not in (None, reserved)


async def test_beat_since_it_was_read_prevents_binding(site: Site) -> None:
    session = await site.session()
    await site.set(tree="theirs", tree_address=session.address)
    seen: StoredBinding = await site.store.read()
    await site.store.beat("another tree")
    assert (await site.store.read()) == seen
    await site.store.beat("theirs")
    assert not await site.store.bind("ours", session.address, seen, even_if_alive=False)
    assert await site.store.bind("ours", session.address, seen, even_if_alive=True)
    assert not await site.store.bind("third", session.address, seen, even_if_alive=True)
    assert (await site.store.read()).tree == "ours"


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
async def test_binding_survives_lost_connections(
    site: Site, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    site.zookeeper = zk_proxied
    session = await site.session("/shoal")

    async def break_off() -> None:
        while True:
            zk_proxy.drop()
            await asyncio.sleep(0.15)

    breaking = asyncio.create_task(break_off())
    try:
        binding = asyncio.create_task(site.bind(session))
        await asyncio.sleep(2.0)
    finally:
        breaking.cancel()
    bound = await binding
    assert await session.retry(lambda: binding_in(session)) == bound.binding


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "data", [b"", layout.config(PARTITIONS), b'{"version": 1, "partitions": 9}', None]
)
async def test_keeper_restores_the_binding(site: Site, data: bytes | None) -> None:
    session = await site.session()
    bound = await site.bind(session)
    async with TreeKeeper(session, PARTITIONS, bound.binding, reread_s=0.2):
        if data is None:
            await session.delete(layout.CONFIG)
        else:
            await session.set(layout.CONFIG, data)
        wanted = layout.config(PARTITIONS, bound.binding)
        await until(lambda: _is(session, wanted))


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
async def test_keeper_leaves_the_tree_of_another_cluster_alone(site: Site) -> None:
    session = await site.session()
    bound = await site.bind(session)
    theirs = layout.config(PARTITIONS, Binding("t", "another"))
    async with TreeKeeper(session, PARTITIONS, bound.binding, reread_s=0.1) as keeper:
        await session.set(layout.CONFIG, theirs)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(BindingRefused, match="cluster another"):
                await keeper.until_foreign()
        await session.delete(layout.claim_bucket(0))
        await asyncio.sleep(0.5)
        assert (await session.get(layout.CONFIG)).data == theirs
        assert not await session.exists(layout.claim_bucket(0))
        # A new id of the same cluster is taken over: whether the database agrees is asked there.
        again = Binding("new", bound.binding.cluster)
        await session.set(layout.CONFIG, layout.config(PARTITIONS, again))
        await eventually(lambda: keeper.binding == again)


async def _is(session: ZkSession, data: bytes) -> bool:
    return (
        await session.exists(layout.CONFIG) is not None
        and (await session.get(layout.CONFIG)).data == data
    )


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await condition():
            await asyncio.sleep(0.02)
