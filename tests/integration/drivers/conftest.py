from collections.abc import Iterator

import pytest

from tests.integration.drivers.servers import Served, mariadb_served, postgresql_served
from tests.support.database.mariadb import MariadbMissing
from tests.support.database.postgresql import PostgresqlMissing
from tests.support.programs import lacking


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Served]:
    try:
        with postgresql_served() as served:
            yield served
    except PostgresqlMissing as error:
        lacking(error)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Served]:
    try:
        with mariadb_served() as served:
            yield served
    except MariadbMissing as error:
        lacking(error)
