"""Resources and finished logs in a real HDFS, by its REST gateway: as in a folder and at S3."""

import pytest

from shoal.runtime.storage import Storage
from tests.hadoop.conftest import Hadoop
from tests.unit.runtime.test_log_archive import (
    test_copy_that_breaks_off_is_no_log as test_copy_that_breaks_off_is_no_log,
)
from tests.unit.runtime.test_log_archive import (
    test_instances_are_listed_by_thousands_and_removed_whole as test_instances_are_listed,
)
from tests.unit.runtime.test_log_archive import (
    test_log_comes_back_in_ranges as test_log_comes_back_in_ranges,
)
from tests.unit.runtime.test_log_archive import (
    test_log_that_has_grown_takes_the_place_of_the_old_one as test_log_that_has_grown,
)
from tests.unit.runtime.test_storage import (
    test_object_comes_back_as_it_was_written as test_object_comes_back,
)
from tests.unit.runtime.test_storage import (
    test_object_is_removed_and_may_be_gone_already as test_object_is_removed,
)
from tests.unit.runtime.test_storage import (
    test_upload_that_breaks_off_leaves_nothing_after_its_removal as test_broken_upload,
)

__all__ = [
    "test_broken_upload",
    "test_copy_that_breaks_off_is_no_log",
    "test_instances_are_listed",
    "test_log_comes_back_in_ranges",
    "test_log_that_has_grown",
    "test_object_comes_back",
    "test_object_is_removed",
]


@pytest.fixture
def url(hadoop: Hadoop, request: pytest.FixtureRequest) -> str:
    return f"{hadoop.web}/logs/{request.node.name}"


@pytest.fixture
def storage(hadoop: Hadoop) -> Storage:
    return Storage(f"{hadoop.web}/resources")
