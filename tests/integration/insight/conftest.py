"""Databases of both kinds, a store, and what reads it without our own code."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.insight.history.store import HistoryStore
from shoal.sql import Database
from tests.support.databases import migrated_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database."""
    return migrated_url(request, request.param)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """A migrated database."""
    async with Database(url) as opened:
        async with opened.unit_of_work() as uow:
            await uow.partitions.ensure(128)
            await uow.commit()
        yield opened


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> HistoryStore:
    """The store that the program, too, uses for this database."""
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        await uow.commit()
    return await asyncio.to_thread(HistoryStore, str(tmp_path / "history"), uid)
