"""A database for each kind, for tests of what payloads hold."""

from collections.abc import AsyncIterator

import pytest

from shoal.sql import Database
from tests.support.database.databases import migrated_url


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with Database(migrated_url(request, request.param)) as opened:
        yield opened
