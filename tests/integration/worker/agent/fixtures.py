"""Fixtures for tests of the agent; a test module names this file in its ``pytest_plugins``."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.proto.channels import Channels
from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, cluster_settings
from tests.support.fake_master import FakeMaster, TaskTable


@pytest.fixture
def cluster(tmp_path: Path, zk_chroot: str) -> ClusterSettings:
    """A cluster of its own, with a space in its data folder's name."""
    data = tmp_path / "shoal data"
    data.mkdir()
    create_identity(data / "tls")
    return cluster_settings(data, zk_chroot)


@pytest.fixture
async def master(cluster: ClusterSettings) -> AsyncIterator[FakeMaster]:
    async with FakeMaster(cluster.zookeeper, TlsFiles.of(cluster), TaskTable()) as master:
        yield master


@pytest.fixture
async def worker(cluster: ClusterSettings, master: FakeMaster) -> AsyncIterator[InProcessWorker]:
    async with InProcessWorker(cluster) as worker:
        yield worker


@pytest.fixture
async def channels(cluster: ClusterSettings) -> AsyncIterator[Channels]:
    async with Channels(TlsFiles.of(cluster)) as channels:
        yield channels
