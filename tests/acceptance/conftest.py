"""A real local cluster for these tests: ZooKeeper, two masters, two workers, the API."""

from collections.abc import Iterator

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.support.waiting import STEADY_SESSION_S


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One cluster for all tests that do no lasting harm; its folder has a space in its name."""
    folder = tmp_path_factory.mktemp("shared cluster")
    (folder / "shoal.toml").write_text(
        f"[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\n"
        '[alert]\nhttp_allow = "127.0.0.0/8"\n'  # messages go to servers of tests
    )
    with LocalCluster(folder, slots=8, api_port=free_port()) as running:
        yield running


@pytest.fixture
def rest(cluster: LocalCluster) -> Iterator[Rest]:
    """The API of the shared cluster."""
    client = Rest(cluster.url, cluster.token)
    yield client
    client.close()
