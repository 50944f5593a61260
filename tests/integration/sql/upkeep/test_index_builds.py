"""Indexes of tables with rows are built after the migration, while others write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from psycopg import sql
from sqlalchemy import Connection
from structlog.testing import capture_logs

from shoal.sql import Database
from shoal.sql.schema.migrate import BUILD_LOCK_KEY, FOLDER, revisions
from tests.integration.sql.given import PARTITIONS, created, published
from tests.support.waiting import DEADLINE_S

INDEX = "ix_workflow_instance_root_id"
SHOWN = f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{INDEX}')"
BUILT = "SELECT 1 FROM pg_stat_progress_create_index WHERE datname = current_database()"


@pytest.fixture
async def database(postgresql_url: str) -> AsyncIterator[Database]:
    """A database with rows."""
    async with Database(postgresql_url) as opened:
        await opened.migrate()
        async with opened.unit_of_work() as uow:
            await uow.partitions.ensure(PARTITIONS)
            await uow.commit()
        await created(opened, await published(opened))
        yield opened


def _downgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.downgrade(config, revisions()[revisions().index("0034") - 1])


@pytest.fixture
async def old_database(database: Database) -> Database:
    """The same before the revision that adds the index."""
    async with database.unit_of_work() as uow:
        await uow.connection.run_sync(_downgrade)
        await uow.commit()
    return database


@asynccontextmanager
async def session(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A session of another application, in no transaction before it begins one."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as opened:
        yield opened


async def ask(other: psycopg.AsyncConnection[Any], statement: str) -> list[Any]:
    """Return the rows of a statement, which waits for no lock."""
    async with asyncio.timeout(DEADLINE_S):
        return [one for (one,) in await (await other.execute(sql.SQL(statement))).fetchall()]


async def test_index_of_a_table_with_rows_is_built_while_others_write(
    old_database: Database, plain_url: str
) -> None:
    async with session(plain_url) as reader, session(plain_url) as writer:
        # A build waits for all older snapshots: so it is under way until this one ends.
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await ask(reader, "SELECT count(*) FROM shoal_revision")
        migrating = asyncio.create_task(old_database.migrate())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not migrating.done() and not await ask(writer, BUILT):
                    await asyncio.sleep(0.01)
            assert not migrating.done()
            assert await ask(writer, "SELECT version_num FROM shoal_revision") == [revisions()[-1]]
            assert await ask(writer, "UPDATE workflow_instance SET priority = 1 RETURNING 1") == [1]
            await reader.execute("ROLLBACK")
            async with asyncio.timeout(DEADLINE_S):
                await migrating
        finally:
            migrating.cancel()
            await asyncio.gather(migrating, return_exceptions=True)
        assert await ask(writer, SHOWN) == [True]


async def test_processes_that_migrate_at_once_do_not_wait_for_each_other_in_a_circle(
    old_database: Database, plain_url: str
) -> None:
    """One builds, which waits for the snapshots of all that wait for it inside a statement."""
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(old_database.migrate() for _ in range(4)))
    async with session(plain_url) as other:
        assert await ask(other, SHOWN) == [True]


async def test_interrupted_build_is_dropped_and_done_again(
    database: Database, plain_url: str
) -> None:
    async with session(plain_url) as other:
        [before] = await ask(other, f"SELECT '{INDEX}'::regclass::oid")
        await other.execute(
            f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass"
        )
        assert await ask(other, SHOWN) == [False]
        await database.migrate()
        assert await ask(other, SHOWN) == [True]
        assert await ask(other, f"SELECT '{INDEX}'::regclass::oid") != [before]


async def test_second_process_does_not_wait_for_the_one_that_builds(
    old_database: Database, plain_url: str
) -> None:
    """Its statement would have a snapshot, for whose end the build would wait."""
    async with session(plain_url) as other:
        await ask(other, f"SELECT pg_advisory_lock({BUILD_LOCK_KEY})::text")
        with capture_logs() as logs:
            await old_database.migrate()
        assert [one["event"].partition(";")[0] for one in logs] == [
            "another process builds indexes of the database"
        ]
        assert await ask(other, SHOWN) == []
        await ask(other, f"SELECT pg_advisory_unlock({BUILD_LOCK_KEY})")
        await old_database.migrate()
        assert await ask(other, SHOWN) == [True]


async def test_build_that_fails_is_reported_and_ends_no_start(
    database: Database, plain_url: str
) -> None:
    async with session(plain_url) as other:
        await other.execute(f"DROP INDEX {INDEX}")
        await other.execute(f"CREATE VIEW {INDEX} AS SELECT 1")  # has its name
        with capture_logs() as logs:
            await database.migrate()
        [warning] = [one for one in logs if one["log_level"] == "warning"]
        assert (warning["index"], warning["table"]) == (INDEX, "workflow_instance")
        await other.execute(f"DROP VIEW {INDEX}")
        await database.migrate()
        assert await ask(other, SHOWN) == [True]


@pytest.fixture
def plain_url(postgresql_url: str) -> str:
    """The URL as psycopg takes it."""
    scheme, _, rest = postgresql_url.partition("://")
    return f"{scheme.partition('+')[0]}://{rest}"
