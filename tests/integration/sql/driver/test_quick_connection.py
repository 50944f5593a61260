"""PostgreSQL whose answers are waited for without the event loop, if they come at once."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import text

from shoal.sql import Database
from tests.integration.sql.driver.turns import Turns
from tests.integration.sql.given import NOW
from tests.support.waiting import DEADLINE_S

LONG = text("SELECT pg_sleep(0.1)")


@pytest.fixture
async def database(postgresql_copy: str) -> AsyncIterator[Database]:
    """A migrated database with one connection."""
    async with Database(postgresql_copy, pool_size=1) as opened:
        yield opened


async def test_others_run_while_an_answer_takes_long(database: Database) -> None:
    async with Turns() as turns, database.unit_of_work(read_only=True) as uow:
        before = turns.count
        await uow.connection.rows(LONG)
        assert turns.count - before >= 5
        assert await uow.projects.list() == []


async def test_one_short_transaction_after_the_other_lets_others_run(database: Database) -> None:
    others = asyncio.create_task(asyncio.sleep(0))
    async with asyncio.timeout(DEADLINE_S):
        while not others.done():
            async with database.unit_of_work(read_only=True) as uow:
                assert await uow.projects.list() == []


async def test_caller_that_goes_away_leaves_a_connection_that_works(database: Database) -> None:
    async def ask() -> None:
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            await uow.connection.rows(text("SELECT pg_sleep(100)"))

    for _ in range(3):
        asking = asyncio.create_task(ask())
        await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
        assert await uow.projects.list() == []


async def test_many_rows_of_values_arrive_whole(database: Database) -> None:
    rows = [{"name": f"p{i}", "text": "x" * 1_000} for i in range(5_000)]
    insert = text(
        "INSERT INTO project (name, description, parameters, created_at)"
        " VALUES (:name, :text, '{}', now())"
    )
    count = text("SELECT count(*), sum(length(description)) FROM project")
    async with database.unit_of_work() as uow:
        await uow.connection.execute(insert, rows)
        assert tuple((await uow.connection.rows(count))[0]) == (5_000, 5_000_000)


async def test_server_that_ended_idle_connections_is_not_noticed(
    database: Database, postgresql_copy: str
) -> None:
    for name in ("a", "b"):
        async with database.unit_of_work() as uow:
            await uow.projects.ensure(name, NOW)
            await uow.commit()
        with psycopg.connect(postgresql_copy, autocommit=True) as other:
            ended = other.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
        assert ended == [(True,)]
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.name for one in await uow.projects.list()] == ["a", "b"]
