"""A worker works for one cluster: its folder holds logs and results by that cluster's ids."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.coordination import ZkSession, prepare
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.layout import Binding
from shoal.coordination.errors import BindingRefused
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.worker.home.cluster_file import ClusterFile
from shoal.worker.home.spool import Spool
from tests.integration.worker.agent.kit import InProcessWorker, cluster_settings, the_worker
from tests.support.waiting import DEADLINE_S, eventually

OURS, THEIRS = Binding("t1", "cluster-1"), Binding("t2", "cluster-2")
HOME = Path("workers/w/1")


@pytest.fixture
def cluster(tmp_path: Path, zk_chroot: str) -> ClusterSettings:
    create_identity(tmp_path / "tls")
    return cluster_settings(tmp_path, zk_chroot)


@pytest.fixture
async def session(cluster: ClusterSettings) -> AsyncIterator[ZkSession]:
    async with ZkSession(cluster.zookeeper, session_timeout_s=30.0) as session:
        yield session


async def bind(session: ZkSession, binding: Binding) -> None:
    await session.set(layout.CONFIG, layout.config(4, binding))


async def registered(session: ZkSession) -> list[str]:
    return (await session.children(layout.WORKERS)).names


async def test_worker_starts_in_the_trees_of_one_cluster_alone(
    session: ZkSession, cluster: ClusterSettings
) -> None:
    await prepare(session, 4, OURS)
    file = ClusterFile(cluster.data / HOME / "cluster")
    for _ in range(2):
        async with InProcessWorker(cluster):
            await the_worker(session)
            assert file.read() == "cluster-1"
        async with asyncio.timeout(DEADLINE_S):
            while await registered(session):
                await asyncio.sleep(0.02)
    Spool(cluster.data / HOME / "spool").write("7", {"attempt": 7})
    await bind(session, THEIRS)
    with pytest.raises(BindingRefused) as refused:
        async with InProcessWorker(cluster) as worker, asyncio.timeout(DEADLINE_S):
            await worker.task
    for named in ("cluster-1", "cluster-2", cluster.zookeeper, str(cluster.data / HOME)):
        assert named in str(refused.value)
    assert await registered(session) == []
    assert [one.id for one in Spool(cluster.data / HOME / "spool").pending()] == ["7"]
    # Another id of the tree is no other cluster: it was wiped, and bound anew.
    await bind(session, Binding("t9", "cluster-1"))
    async with InProcessWorker(cluster):
        await the_worker(session)


async def test_results_of_another_cluster_are_discarded_when_a_worker_is_bound_anew(
    session: ZkSession, cluster: ClusterSettings
) -> None:
    await prepare(session, 4, THEIRS)
    (cluster.data / HOME).mkdir(parents=True)
    file = ClusterFile(cluster.data / HOME / "cluster")
    file.write("cluster-1")
    spool = Spool(cluster.data / HOME / "spool")
    spool.write("7", {"attempt": 7})
    async with InProcessWorker(cluster.model_copy(update={"rebind": True})):
        await the_worker(session)
        assert file.read() == "cluster-2"
        assert spool.pending() == []


async def test_worker_of_a_cluster_waits_for_its_tree_to_be_bound(
    session: ZkSession, cluster: ClusterSettings
) -> None:
    (cluster.data / HOME).mkdir(parents=True)
    ClusterFile(cluster.data / HOME / "cluster").write("cluster-1")
    async with InProcessWorker(cluster):
        async with asyncio.timeout(DEADLINE_S):
            while not await session.exists(layout.CONFIG):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
        assert await registered(session) == []
        await bind(session, OURS)
        await the_worker(session)


async def test_new_worker_joins_a_tree_that_is_bound_later(
    session: ZkSession, cluster: ClusterSettings
) -> None:
    file = ClusterFile(cluster.data / HOME / "cluster")
    async with InProcessWorker(cluster):
        await the_worker(session)
        assert file.read() is None
        await bind(session, OURS)
        await eventually(file.read)
        assert file.read() == "cluster-1"


async def test_worker_ends_when_its_tree_is_bound_to_another_cluster(
    session: ZkSession, cluster: ClusterSettings
) -> None:
    await prepare(session, 4, OURS)
    worker = InProcessWorker(cluster)
    await worker.__aenter__()
    await the_worker(session)
    await bind(session, THEIRS)
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(
            BindingRefused, match="cluster-2 while this process of cluster cluster-1"
        ):
            await worker.task
