"""A copy of a database names what the original has in storages, and removes none of it."""

import asyncio
import sqlite3
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from shoal.master.settings import UpkeepTimes
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Storage, cluster_folder
from shoal.sql import Database
from tests.integration.master.conftest import Bench
from tests.integration.master.dispatch.stored_files import put, rows
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.server import make_chroot

SOON = UpkeepTimes(resources=0.3)
KEEP: dict[str, Any] = {
    "upkeep": SOON,
    "keep_deleted_resources_days": 35.0,
    "keep_resource_versions": 1,
}
AGES = (60, 50, 40, 1)  # days; the fourth version is the newest, the third ended a day ago


@pytest.fixture
def storage(bench: Bench, tmp_path: Path) -> Storage:
    """The storage that the original has, and copies name, too."""
    url = str(tmp_path / "shared")
    bench.cluster = bench.cluster.model_copy(update={"resources_url": url})
    return Storage(url)


async def given(bench: Bench, storage: Storage) -> list[str]:
    """Store four versions of a file; return their objects, oldest first."""
    now = datetime.now(UTC)
    return [
        await put(bench.database, "a", f"content {n}", now - timedelta(days=days), storage)
        for n, days in enumerate(AGES)
    ]


def contents(storage: Storage) -> dict[str, bytes]:
    """Return all objects of resources with their contents."""
    root = Path(storage.url)
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


@asynccontextmanager
async def copied(
    request: pytest.FixtureRequest, bench: Bench, uid: str
) -> AsyncIterator[tuple[ClusterSettings, Database]]:
    """A copy of the database with a new name, and settings with a tree of its own for it."""
    original = bench.cluster.database
    async with bench.database.unit_of_work() as uow:
        await uow.cluster.uid()
        await uow.commit()
    name = f"copy_{uuid.uuid4().hex[:8]}"
    if original.startswith("sqlite"):
        file = Path(original.partition("///")[2])
        url = f"sqlite:///{file.with_name(name)}.db"
        with sqlite3.connect(file) as before, sqlite3.connect(f"{file.with_name(name)}.db") as now:
            before.backup(now)
    else:
        server = request.getfixturevalue("postgresql_server")
        url = server.create(name)
        request.addfinalizer(lambda: server.drop(name))
        dump = await asyncio.to_thread(
            subprocess.run, ["pg_dump", original], capture_output=True, check=True
        )
        await asyncio.to_thread(
            subprocess.run, ["psql", "-q", url], input=dump.stdout, stdout=-3, check=True
        )
    settings = bench.cluster.model_copy(
        update={
            "database_url": url,
            "zookeeper": bench.cluster.zookeeper.partition("/")[0]
            + make_chroot(bench.cluster.zookeeper.partition("/")[0]),
        }
    )
    async with Database(settings.database) as database:
        async with database.unit_of_work() as uow:
            # As docs/storage.md says.
            await uow.connection.execute(text("UPDATE cluster SET uid = :uid"), {"uid": uid})
            await uow.commit()
        yield settings, database


async def gone(database: Database, count: int) -> None:
    """Wait until so many rows of resources are left."""
    async with asyncio.timeout(DEADLINE_S):
        while await rows(database) != count:
            await asyncio.sleep(0.05)


async def test_upkeep_of_a_copy_removes_rows_and_nothing_of_the_originals(
    request: pytest.FixtureRequest, bench: Bench, storage: Storage
) -> None:
    await given(bench, storage)
    before = contents(storage)
    async with copied(request, bench, "copy") as (settings, database):
        async with bench.master(settings, **KEEP):
            await gone(database, 2)
        assert contents(storage) == before
        assert await rows(bench.database) == 4
        # What the copy itself writes lies apart, and goes.
        own = await put(database, "b", "new", datetime.now(UTC) - timedelta(days=60), storage)
        await put(database, "b", "newer", datetime.now(UTC) - timedelta(days=59), storage)
        assert own.startswith(f"{cluster_folder('copy')}/")
        async with bench.master(settings, **KEEP):
            await gone(database, 3)
        assert own not in contents(storage)
        assert before.items() <= contents(storage).items()
    async with bench.master(**KEEP):
        await gone(bench.database, 2)
    left = contents(storage)
    assert len(before.keys() & left.keys()) == 2, "the original's own upkeep works as ever"
