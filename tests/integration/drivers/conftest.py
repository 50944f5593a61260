from collections.abc import Iterator

import pytest

from tests.integration.drivers.servers import Served, missing, postgresql_served
from tests.support.postgresql import PostgresqlMissing


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Served]:
    try:
        with postgresql_served() as served:
            yield served
    except PostgresqlMissing as error:
        missing(error)
