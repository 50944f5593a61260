"""SQLite in the event loop's own thread: what is long keeps nobody else waiting."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text, update

from shoal.sql import Database
from shoal.sql.errors import BrokenReference, SqlError
from shoal.sql.schema.tables import project
from tests.integration.sql.driver.turns import Turns
from tests.integration.sql.given import LATER, LONG, NOW
from tests.support.waiting import DEADLINE_S, eventually

_MANY_PROJECTS = text(
    "INSERT INTO project (name, description, parameters, created_at)"
    " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    " SELECT 'p' || i, '', '{}', 0 FROM n"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path}/shoal.db"


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """A migrated database with two reading connections."""
    async with Database(url, pool_size=2) as opened:
        await opened.migrate()
        yield opened


@pytest.mark.parametrize("read_only", [True, False])
async def test_others_run_while_a_long_query_does(database: Database, read_only: bool) -> None:
    async with Turns() as turns, database.unit_of_work(read_only=read_only) as uow:
        before = turns.count
        assert await uow.connection.scalar(LONG) == 300_000
        assert turns.count - before >= 5


async def test_long_query_takes_nothing_back(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure("p", NOW)
        assert await uow.connection.scalar(LONG) == 300_000
        await uow.projects.ensure("q", NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert len(await uow.projects.list()) == 2


async def test_change_that_returns_rows_is_not_stopped(database: Database) -> None:
    statement = update(project).values(description="changed").returning(project.c.name)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(_MANY_PROJECTS, is_long=True)
        await uow.projects.ensure("p", NOW)
        assert len(await uow.connection.changed(statement)) == 20_001
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.projects.get("p")).description == "changed"


async def test_nothing_is_stored_once_a_change_was_stopped(database: Database) -> None:
    """SQLite undoes the transaction then; what came next would be stored without the rest."""
    statement = update(project).values(description="changed").returning(project.c.name)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(_MANY_PROJECTS, is_long=True)
        with pytest.raises(SqlError):
            await uow.connection.rows(statement)  # a change, asked as if it were a query
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.projects.list() == []


async def test_snapshot_stays_when_a_query_turns_out_to_be_long(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as reader:
        assert await reader.projects.list() == []
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            await uow.commit()
        assert await reader.connection.scalar(LONG) == 300_000
        assert await reader.projects.list() == []


async def test_others_run_while_many_rows_are_written(database: Database) -> None:
    rows = [{"name": f"p{i}", "at": 0} for i in range(20_000)]
    insert = text(
        "INSERT INTO project (name, description, parameters, created_at)"
        " VALUES (:name, '', '{}', :at)"
    )
    async with Turns() as turns, database.unit_of_work() as uow:
        before = turns.count
        await uow.connection.execute(insert, rows)
        assert turns.count - before >= 5
        await uow.commit()


async def test_one_short_transaction_after_the_other_lets_others_run(database: Database) -> None:
    others = asyncio.create_task(asyncio.sleep(0))
    async with asyncio.timeout(DEADLINE_S):
        while not others.done():
            async with database.unit_of_work(read_only=True) as uow:
                assert await uow.projects.list() == []


async def test_writers_that_commit_nothing_let_others_run(database: Database) -> None:
    others = asyncio.create_task(asyncio.sleep(0))
    async with asyncio.timeout(DEADLINE_S):
        while not others.done():
            async with database.unit_of_work() as uow:
                await uow.projects.ensure("p", NOW)


@pytest.mark.parametrize("read_only", [True, False])
async def test_caller_that_goes_away_during_a_long_query_leaves_its_connection(
    database: Database, read_only: bool
) -> None:
    async def ask() -> None:
        async with database.unit_of_work(read_only=read_only) as uow:
            if not read_only:
                await uow.projects.ensure("p", NOW)
            await uow.connection.scalar(LONG)

    for _ in range(3):  # more than there are connections
        asking = asyncio.create_task(ask())
        await asyncio.sleep(0.005)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
        assert await uow.projects.list() == []


async def test_caller_that_goes_away_at_once_leaves_its_turn(url: str) -> None:
    async with Database(url, pool_size=1) as database:

        async def connect() -> None:
            async with database.unit_of_work(read_only=True):
                pass

        for _ in range(3):
            connecting = asyncio.create_task(connect())
            await asyncio.sleep(0)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
        async with asyncio.timeout(DEADLINE_S):
            await database.migrate()
            await database.ping()
    await eventually(lambda: not _threads())


async def test_commit_whose_caller_goes_away_is_made_or_not(database: Database) -> None:
    async def write(name: str) -> None:
        async with database.unit_of_work() as uow:
            await uow.projects.ensure(name, NOW)
            await uow.commit()

    for number in range(20):
        writing = asyncio.create_task(write(f"p{number:02}"))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
    async with asyncio.timeout(DEADLINE_S):
        await write("last")
    async with database.unit_of_work(read_only=True) as uow:
        names = [one.name for one in await uow.projects.list(limit=100)]
    assert "last" in names
    assert len(set(names)) == len(names)


async def test_commit_that_is_refused_leaves_the_next_writer_nothing(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        await uow.connection.execute(
            text(
                "INSERT INTO secret (project_id, name, ciphertext, created_at, updated_at)"
                " VALUES (99, 's', '', 0, 0)"
            )
        )
        with pytest.raises(BrokenReference):
            await uow.commit()
    async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
        await uow.projects.ensure("p", LATER)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.name for one in await uow.projects.list()] == ["p"]


async def test_lock_of_another_process_keeps_only_its_waiter(database: Database, url: str) -> None:
    async def write() -> None:
        async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            await uow.commit()

    async with Database(url) as other, Turns() as turns:
        async with other.unit_of_work():
            writing = asyncio.create_task(write())
            before = turns.count
            async with database.unit_of_work(read_only=True) as uow:
                assert await uow.projects.list() == []
            await eventually(lambda: turns.count - before > 100)
            assert not writing.done()
        await writing


async def test_threads_end_with_the_database(url: str) -> None:
    async with Database(url) as database:
        await database.migrate()
        async with database.unit_of_work(read_only=True):
            assert _threads()
    await eventually(lambda: not _threads())


def _threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "sqlite"]


async def test_a_second_opening_leaves_the_locks_of_the_first_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shoal.db'}"
    async with Database(url) as first:
        await first.migrate()
        async with first.unit_of_work(read_only=True) as uow:
            assert await uow.projects.list() == []
        async with Database(url) as second, second.unit_of_work(read_only=True) as uow:
            assert await uow.projects.list() == []
        # Another process that takes itself for the last one removes the log when it ends.
        script = "c = sqlite3.connect({!r}); c.execute('SELECT * FROM project'); c.close()"
        path = str(tmp_path / "shoal.db")
        code = f"import sqlite3; {script.format(path)}"
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=True)
        opened = _open_files()
        assert [one for one in opened if one.startswith(path) and "(deleted)" in one] == []


def _open_files() -> list[str]:
    """Return what this process has open, as far as it still has."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(one))
    return found
