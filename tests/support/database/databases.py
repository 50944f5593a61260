"""Fixtures: databases of a test's own that are migrated, as copies of one.

Migrating takes longer than most of the tests that need it done.

Tests that run on SQLite and on PostgreSQL can be divided between two runs, see ``turns``.
"""

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.sql import Database
from tests.support.database.postgresql import PostgresqlServer, has_server
from tests.support.database.turns import Turn, current_turn


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other run."""
    if (turn := current_turn()) is None or not (turn is Turn.SECOND or has_server()):
        return  # without PostgreSQL, both turns run on SQLite
    is_second = turn is Turn.SECOND
    dropped = [item for item in items if _is_on_sqlite(item) != is_second]
    items[:] = [item for item in items if _is_on_sqlite(item) == is_second]
    config.hook.pytest_deselected(items=dropped)


def _is_on_sqlite(item: pytest.Item) -> bool:
    """Return whether a parameter of the test is "sqlite", and not only a part of one."""
    called = getattr(item, "callspec", None)
    return called is not None and "sqlite" in called.params.values()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database to copy. It is closed, so that all of it is in this file."""
    path = tmp_path_factory.mktemp("migrated") / "shoal.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite database."""
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"


@pytest.fixture(scope="session")
def migrated_template(postgresql_server: PostgresqlServer) -> Iterator[str]:
    """The name of a PostgreSQL database to copy."""
    name = f"test_migrated_{uuid.uuid4().hex[:12]}"
    _migrate(postgresql_server.create(name))
    yield name
    postgresql_server.drop(name)


@pytest.fixture
def migrated_postgresql_url(
    postgresql_server: PostgresqlServer, migrated_template: str
) -> Iterator[str]:
    """The URL of a migrated PostgreSQL database."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield postgresql_server.create(name, migrated_template)
    postgresql_server.drop(name)


def migrated_url(request: pytest.FixtureRequest, kind: str) -> str:
    """Return the URL of a migrated database, "sqlite" or "postgresql"; no other is made ready."""
    fixtures = {"sqlite": "sqlite_url", "postgresql": "migrated_postgresql_url"}
    url: str = request.getfixturevalue(fixtures[kind])
    return url


@asynccontextmanager
async def migrated(url: str, partitions: int = 0) -> AsyncIterator[Database]:
    """Open a migrated database, and let it have so many partitions."""
    async with Database(url) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(partitions)
            await uow.commit()
        yield database


def _migrate(url: str) -> None:
    async def migrate() -> None:
        async with Database(url) as database:
            await database.migrate()

    # The loop of an asynchronous fixture may be running in this thread.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, migrate()).result()
