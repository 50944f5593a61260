"""Every test here runs on both databases, each with a fresh one: a copy of one that is ready."""

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.sql import Database
from tests.integration.sql.given import PARTITIONS
from tests.support.database.postgresql import PostgresqlServer


async def _make_ready(url: str) -> None:
    async with Database(url) as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(PARTITIONS)
            await uow.commit()


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: PostgresqlServer) -> Iterator[str]:
    """The name of a database that is ready."""
    name = f"test_template_{uuid.uuid4().hex[:12]}"
    asyncio.run(_make_ready(postgresql_server.create(name)))
    yield name
    postgresql_server.drop(name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database that is ready, and closed, so that it is all in this file."""
    path = tmp_path_factory.mktemp("template") / "shoal.db"
    asyncio.run(_make_ready(f"sqlite:///{path}"))
    return path


@pytest.fixture
def postgresql_copy(postgresql_server: PostgresqlServer, postgresql_template: str) -> Iterator[str]:
    """The URL of a PostgreSQL database that is ready."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield postgresql_server.create(name, postgresql_template)
    postgresql_server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a folder/shoal.db"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def ready_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated database with ``PARTITIONS`` partitions."""
    if request.param == "sqlite":
        file = shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path)
        return f"sqlite:///{file}"
    url: str = request.getfixturevalue("postgresql_copy")
    return url


@pytest.fixture
async def database(ready_url: str) -> AsyncIterator[Database]:
    """A migrated database with ``PARTITIONS`` partitions."""
    async with Database(ready_url) as opened:
        yield opened
