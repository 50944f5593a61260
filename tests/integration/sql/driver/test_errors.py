"""What a caller sees when the database is in trouble, and what it must never see."""

import asyncio
import os
import stat
import traceback
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from shoal.sql import Database, UnitOfWork
from shoal.sql.driver.translation import translate
from shoal.sql.errors import (
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    InvalidDatabaseUrl,
    InvalidValue,
    NotFound,
    StatementFailed,
    TransactionConflict,
)
from tests.integration.sql.given import NOW, definition, published
from tests.support.waiting import DEADLINE_S

PASSWORD = "s3cret-Pa55"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite:////var/lib/shoal.db", "sqlite"),
        ("sqlite:///relative.db", "sqlite"),
        ("postgresql://user:a%40b/c@host/db", "postgresql"),
        ("postgres://host/db", "postgresql"),
        ("postgresql+psycopg://user@/db?host=/run/postgresql", "postgresql"),
    ],
)
def test_usual_urls_are_understood(url: str, kind: str) -> None:
    assert Database(url).kind == kind


@pytest.mark.parametrize(
    "url",
    [
        f"oracle://user:{PASSWORD}@host/db",
        f"postgresql://user:{PASSWORD}@host:port/db",
        f"postgresql://user:x@{PASSWORD}@host/db",
        f"postgresql://us/er:{PASSWORD}@host/db",
        f"user:{PASSWORD}@host",
        f"postgresql://user:x#{PASSWORD}?y@host:1:2/db",
        "sqlite://",
        "sqlite:///:memory:",
        "",
    ],
)
def test_bad_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(InvalidDatabaseUrl) as caught:
        Database(url)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


async def test_password_is_in_no_error_and_no_repr() -> None:
    url = f"postgresql://user:{PASSWORD}@127.0.0.1:1/db"
    async with Database(url) as database:
        with pytest.raises(DatabaseUnavailable) as caught:
            await database.ping()
        assert caught.value.retriable
        assert PASSWORD not in "".join(traceback.format_exception(caught.value))
        assert PASSWORD not in repr(database) + repr(vars(database))


async def test_values_of_a_failed_statement_are_in_no_error(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure("p", NOW)
        with pytest.raises(InvalidValue) as caught:
            await uow.connection.execute(
                text("UPDATE project SET description = :secret, id = :id"),
                {"secret": PASSWORD, "id": 10**30},
            )
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


async def test_answering_database_passes_the_check(database: Database) -> None:
    await database.ping()


async def test_unit_of_work_without_commit_changes_nothing(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure("p", NOW)
    with pytest.raises(NotFound):
        async with database.unit_of_work() as uow:
            await _fail_halfway(uow)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.projects.list() == []


async def _fail_halfway(uow: UnitOfWork) -> None:
    await uow.projects.ensure("p", NOW)
    await uow.commands.get(1)
    await uow.commit()


async def test_committed_unit_of_work_is_over(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.commit()
        with pytest.raises(RuntimeError, match="open a new unit of work"):
            await uow.projects.list()


async def test_reader_cannot_write(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        with pytest.raises((StatementFailed, DatabaseUnavailable), match="read"):
            await uow.projects.ensure("p", NOW)


async def test_reader_sees_one_moment_and_blocks_no_writer(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as reader:
        assert await reader.projects.list() == []
        async with database.unit_of_work() as writer:
            await writer.projects.ensure("p", NOW)
            await asyncio.wait_for(writer.commit(), DEADLINE_S)
        assert await reader.projects.list() == []
    async with database.unit_of_work(read_only=True) as reader:
        assert len(await reader.projects.list()) == 1


async def test_cancelled_unit_of_work_lets_others_write(database: Database) -> None:
    inside = asyncio.Event()

    async def stay() -> None:
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            inside.set()
            await asyncio.Event().wait()

    staying = asyncio.create_task(stay())
    await inside.wait()
    staying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await staying
    async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
        assert await uow.projects.list() == []
        await uow.projects.ensure("p", NOW)
        await uow.commit()


@pytest.mark.parametrize("same_process", [True, False])
async def test_writer_that_is_cancelled_while_it_waits_keeps_no_connection(
    ready_url: str, same_process: bool
) -> None:
    async with Database(ready_url, pool_size=2) as one, Database(ready_url) as two:

        async def write() -> None:
            async with one.unit_of_work() as uow:
                await uow.partitions.raise_epoch(0, 1, "waiting")
                await uow.commit()

        async with (one if same_process else two).unit_of_work() as first:
            await first.fence({0: 0})
            await first.connection.check()
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await write()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(write(), write())


async def test_lock_of_another_process_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/shoal.db"
    async with Database(url) as one, Database(url) as two:
        await one.migrate()
        with monkeypatch.context() as patch:
            patch.setattr("shoal.sql.driver.sqlite.pool.LOCK_PATIENCE_S", 0.2)
            async with one.unit_of_work():
                with pytest.raises(TransactionConflict) as caught:
                    async with two.unit_of_work():
                        pass
        assert caught.value.retriable

        async def write() -> None:
            async with two.unit_of_work() as uow:
                await uow.projects.ensure("p", NOW)
                await uow.commit()

        async with one.unit_of_work() as uow:
            waiting = asyncio.create_task(write())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(waiting), 0.3)
            await uow.projects.ensure("q", NOW)
            await uow.commit()
        await asyncio.wait_for(waiting, DEADLINE_S)


async def test_more_writers_than_connections_wait_for_their_turn(ready_url: str) -> None:
    async with Database(ready_url, pool_size=2) as database:

        async def write(number: int) -> None:
            async with database.unit_of_work() as uow:
                await uow.projects.ensure(f"p{number:02}", NOW)
                await uow.commit()

        await asyncio.gather(*(write(number) for number in range(20)))
        async with database.unit_of_work(read_only=True) as uow:
            assert len(await uow.projects.list(limit=100)) == 20


async def test_lost_connection_is_retriable_and_the_next_one_works(postgresql_copy: str) -> None:
    async with Database(postgresql_copy) as database:
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            with psycopg.connect(postgresql_copy, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with pytest.raises(DatabaseUnavailable) as caught:
                await uow.projects.list()
        assert caught.value.retriable
        async with database.unit_of_work() as uow:
            assert await uow.projects.list() == []


async def test_deadlock_is_a_retriable_conflict(postgresql_copy: str) -> None:
    async with Database(postgresql_copy) as database:
        async with database.unit_of_work() as uow:
            for name in ("a", "b"):
                await uow.projects.ensure(name, NOW)
            await uow.commit()
        both = asyncio.Barrier(2)

        async def cross(first: str, second: str) -> None:
            async with database.unit_of_work() as uow:
                await uow.projects.set_description(first, "x")
                await both.wait()
                await uow.projects.set_description(second, "x")
                await uow.commit()

        outcomes = await asyncio.gather(cross("a", "b"), cross("b", "a"), return_exceptions=True)
    (conflict,) = [one for one in outcomes if one is not None]
    assert isinstance(conflict, TransactionConflict)
    assert conflict.retriable


async def test_server_ends_a_transaction_whose_process_stands_still(postgresql_copy: str) -> None:
    """So a stopped owner cannot keep its successor waiting: its locks go with its session."""
    async with Database(postgresql_copy) as database, database.unit_of_work() as uow:
        settings = await uow.connection.rows(
            text(
                "SELECT name, setting || unit AS value FROM pg_settings WHERE name IN"
                " ('idle_in_transaction_session_timeout', 'lock_timeout')"
            )
        )
        assert {row.name: row.value for row in settings} == {
            "idle_in_transaction_session_timeout": "10000ms",
            "lock_timeout": "30000ms",
        }
        await uow.partitions.require({0: 0})
        await uow.connection.execute(text("SET idle_in_transaction_session_timeout = '100ms'"))
        async with (
            asyncio.timeout(DEADLINE_S),
            Database(postgresql_copy) as successor,
            successor.unit_of_work() as other,
        ):
            await other.partitions.raise_epoch(0, 1, "successor")
            await other.commit()
        with pytest.raises(DatabaseUnavailable):
            await uow.projects.list()


async def test_sqlite_files_are_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "shoal.db"
    async with Database(f"sqlite:///{file}") as database:
        await database.migrate()
        await published(database, definition("without"))
        for path in file.parent.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_sqlite_commits_are_durable_and_keys_checked(tmp_path: Path) -> None:
    async with Database(f"sqlite:///{tmp_path}/shoal.db") as database:
        for read_only in (False, True):
            async with database.unit_of_work(read_only=read_only) as uow:
                for pragma, value in (
                    ("journal_mode", "wal"),
                    ("synchronous", 2),
                    ("foreign_keys", 1),
                    ("busy_timeout", 0),
                ):
                    assert await uow.connection.scalar(text(f"PRAGMA {pragma}")) == value


async def test_file_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "shoal.db"
    file.write_bytes(os.urandom(8192))
    with pytest.raises(DatabaseDamaged, match=r"shoal\.db"):
        async with Database(f"sqlite:///{file}"):
            pass
    with pytest.raises(DatabaseUnavailable, match="proc"):
        async with Database("sqlite:////proc/nowhere/shoal.db"):
            pass


@pytest.mark.parametrize(
    ("said", "is_refused"),
    [
        ('FATAL:  password authentication failed for user "shoal"', True),
        ('FATAL:  role "nobody" does not exist', True),
        ('FATAL:  database "unknown" does not exist', True),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "shoal"', True),
        ("fe_sendauth: no password supplied", True),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  sorry, too many clients already", False),
        ("Connection refused", False),
    ],
)
def test_who_is_never_let_in_is_told_from_who_comes_too_early(said: str, is_refused: bool) -> None:
    text = f'connection failed: connection to server at "127.0.0.1", port 5432 failed: {said}'
    found = translate(OperationalError("", {}, psycopg.OperationalError(text)))
    assert isinstance(found, DatabaseUnavailable)
    assert isinstance(found, DatabaseRefused) is is_refused
