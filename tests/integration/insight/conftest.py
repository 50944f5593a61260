"""Databases of both kinds, a store, and Java for Spark."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from shoal.insight.history.store import HistoryStore
from shoal.sql import Database
from tests.support.database.databases import migrated, migrated_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database."""
    return migrated_url(request, request.param)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """A migrated database."""
    async with migrated(url, 128) as opened:
        yield opened


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> HistoryStore:
    """The store that the program, too, uses for this database."""
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        await uow.commit()
    return await asyncio.to_thread(HistoryStore, str(tmp_path / "history"), uid)


@pytest.fixture(scope="session", autouse=True)
def java(spark_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Java as ``shoal up`` gives it to its tasks."""
    with pytest.MonkeyPatch.context() as patch:
        home = spark_java_home(find_java(), tmp_path_factory.mktemp("java"))
        patch.setenv("JAVA_HOME", str(home))
        yield
