"""Resources and finished logs in a real HDFS, by its REST gateway: as in a folder and at S3."""

import pytest

from shoal.runtime.storage import Storage
from tests.hadoop.conftest import Hadoop
from tests.support.storage import LogArchiveContract, StorageContract


@pytest.fixture
def url(hadoop: Hadoop, request: pytest.FixtureRequest) -> str:
    return f"{hadoop.web}/logs/{request.node.name}"


@pytest.fixture
def storage(hadoop: Hadoop) -> Storage:
    return Storage(f"{hadoop.web}/resources")


class TestStorage(StorageContract):
    """The contract, in HDFS."""


class TestLogArchive(LogArchiveContract):
    """The contract, in HDFS."""
