from collections.abc import AsyncIterator

import pytest

from tests.support.servers.http_server import HttpServer


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer() as server:
        yield server
