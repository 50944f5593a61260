from tests.integration.drivers.conftest import mariadb as mariadb
from tests.integration.drivers.conftest import postgresql as postgresql
