from tests.integration.drivers.conftest import postgresql as postgresql
